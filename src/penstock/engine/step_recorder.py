"""Records steps: writes of all jobs of a process that come together share a commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from penstock.engine.retry import reconnect_delay
from penstock.engine.run import Run
from penstock.errors import QueueUnavailable
from penstock.model.settings import EngineConfig
from penstock.ports.queue import JobQueue, StepWrite
from penstock.ports.steps import RECEIPT_SECRET, StepRow

if TYPE_CHECKING:
    from penstock.engine.step_results import StepResults

MOST_TOGETHER = 100
MOST_BYTES = 4 * 1024 * 1024
"""Of one commit, about: others want to write as well."""


class _Waiting(NamedTuple):
    run: Run
    row: StepRow
    stored: asyncio.Future[bool]

    @property
    def wanted(self) -> bool:
        """Whether its run goes on. Not whether somebody waits: what was done is worth a record
        also where the handler has given up waiting for it."""
        return self.run.interrupted is None and self.run.ended is None


class StepRecorder:
    """Writes steps to the queue, one batch at a time: what comes meanwhile goes with the next."""

    def __init__(
        self,
        queue: JobQueue,
        settings: EngineConfig,
        results: Callable[[], StepResults | None] = lambda: None,
    ) -> None:
        self.settings = settings
        self.results = results
        """Where results are kept that are too large; None: nowhere."""
        self._queue = queue
        self._waiting: list[_Waiting] = []
        self._under_way: asyncio.Future[list[bool]] | None = None
        self._soon: asyncio.Handle | None = None
        """The begin of the next write, where that is not at once."""
        self._together = 0
        """How many the last write had."""
        self._failures = 0
        self._secret: bytes | None = None

    async def secret(self) -> bytes:
        """What requests are hashed with."""
        if self._secret is None:
            self._secret = await self._queue.secret(RECEIPT_SECRET)
        return self._secret

    async def load(self, run: Run) -> list[StepRow]:
        """What earlier runs of the job have recorded."""
        return await self._queue.steps(run.lease.id)

    async def write(self, run: Run, row: StepRow) -> bool:
        """Store a step; False if the run holds its job no more. While the queue is away it waits
        for it, as long as the run lasts."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(_Waiting(run, row, stored))
        if self._under_way is None and self._soon is None:
            if self._together == 1:  # steps come one after another: it would wait for nobody
                self._begin()
            else:  # those that come in the same turn of the event loop go together
                self._soon = loop.call_soon(self._begin)
        return await stored

    async def close(self) -> None:
        """End what is under way. No run is left that would wait for it."""
        if self._soon is not None:
            self._soon.cancel()
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.wait([self._under_way])

    def _begin(self) -> None:
        self._soon = None
        batch = self._take()
        self._together = len(batch)
        writes = [StepWrite(one.run.lease, one.row) for one in batch]
        try:
            self._under_way = asyncio.ensure_future(batch[0].run.member.record(writes))
        except Exception as error:
            self._under_way = asyncio.get_running_loop().create_future()
            self._under_way.set_exception(error)
        self._under_way.add_done_callback(partial(self._end, batch))

    def _end(self, batch: list[_Waiting], written: asyncio.Future[list[bool]]) -> None:
        self._under_way = None
        if written.cancelled():  # the end of everything
            return
        loop, error = asyncio.get_running_loop(), written.exception()
        if isinstance(error, QueueUnavailable):
            self._failures += 1
            self._put_back(batch, error)
            if self._waiting:
                pause = reconnect_delay(self._failures, self.settings)
                self._soon = loop.call_later(pause, self._begin)
                return
        self._failures = 0
        for n, one in enumerate(batch):
            if one.stored.done():  # whoever waited was cancelled
                continue
            if error is None:
                one.stored.set_result(written.result()[n])
            else:
                one.stored.set_exception(error)
        if self._waiting:
            self._begin()

    def _take(self) -> list[_Waiting]:
        """The next batch: of one membership, which is that of all, but for the moment after a
        lapse."""
        member, size = self._waiting[0].run.member, 0
        batch: list[_Waiting] = []
        while self._waiting and self._waiting[0].run.member is member:
            if len(batch) == MOST_TOGETHER or size > MOST_BYTES:
                break
            batch.append(self._waiting.pop(0))
            size += len(batch[-1].row.result or "")
        return batch

    def _put_back(self, batch: list[_Waiting], error: QueueUnavailable) -> None:
        for one in batch:
            if not one.wanted and not one.stored.done():
                one.stored.set_exception(error)
        self._waiting[:0] = [one for one in batch if one.wanted]
