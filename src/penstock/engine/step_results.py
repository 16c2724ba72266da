"""Results of steps that are too large for the queue: kept in the blob store.

A blob is named for its content and the id of its job; so a rerun from a step has its own, and what
belongs to no job is known by its name.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from penstock import runtime
from penstock.engine.retry import reconnect_delay
from penstock.engine.step_recorder import StepRecorder
from penstock.errors import (
    BlobMissing,
    ConfigError,
    PenstockError,
    ResultTooLarge,
    StoreUnavailable,
)
from penstock.model.payload import byte_length
from penstock.model.step import STEP_RESULT_LIMIT
from penstock.ports.blobs import BlobStore, digest_of, key_of, number_of
from penstock.ports.queue import JobQueue
from penstock.ports.steps import LargeResult, StepRow, large_result

log = logging.getLogger("penstock")
T = TypeVar("T")

SWEEP_SECONDS = 600.0
"""Between two sweeps of a process that stores large results."""
ORPHAN_SECONDS = 3600.0
"""Age at which one is deleted whose job has no records: that of a younger one may be on its way."""


class StepResults:
    """Methods raise StoreUnavailable while the blob store cannot be reached."""

    def __init__(self, blobs: BlobStore, queue: JobQueue) -> None:
        self._blobs = blobs
        self._queue = queue
        self._swept_at = runtime.monotonic()
        self._sweeping: asyncio.Task[None] | None = None

    async def put(self, job_id: str, text: str) -> str:
        """Keep a result, and say what to store in its place."""
        content = text.encode()
        blob = await self._blobs.put(_once(content), most=len(content), number=job_id)
        self._sweep_sometimes()
        return str(LargeResult(digest_of(blob.key), blob.size))

    async def read(self, job_id: str, row: StepRow) -> Any:
        """The result of a step that is kept here. BlobMissing where it is gone."""
        large = large_result(row.result)
        assert large is not None
        return json.loads(await self._content(job_id, row.name, large))

    async def copy(self, source: str, target: str, rows: Iterable[StepRow]) -> None:
        """Give another job the results of these rows."""
        for row in rows:
            if (large := large_result(row.result)) is not None:
                content = await self._content(source, row.name, large)
                await self._blobs.put(_once(content), most=large.size, number=target)

    async def sweep(self) -> None:
        """Delete what belongs to no job any more."""
        deleted = await self._blobs.sweep(ORPHAN_SECONDS, self._in_use)
        if deleted:
            log.info("deleted %d large results of steps, whose jobs are gone", deleted)

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait([self._sweeping])
        await self._blobs.close()

    async def _content(self, job_id: str, name: str, large: LargeResult) -> bytes:
        try:
            async with self._blobs.local(key_of(large.digest, job_id)) as path:
                return await runtime.in_thread(path.read_bytes)
        except BlobMissing:
            raise BlobMissing(
                f"the result of step {name!r} of job {job_id} is not in the blob store any more: "
                "run the job from scratch"
            ) from None

    async def _in_use(self, keys: Sequence[str]) -> set[str]:
        known = await self._queue.last_recorded(list({number_of(key) for key in keys}))
        return {key for key in keys if number_of(key) in known}

    def _sweep_sometimes(self) -> None:
        due = runtime.monotonic() >= self._swept_at + SWEEP_SECONDS
        if due and (self._sweeping is None or self._sweeping.done()):
            self._swept_at = runtime.monotonic()
            self._sweeping = asyncio.create_task(self._try_to_sweep(), name="penstock-sweep-steps")

    async def _try_to_sweep(self) -> None:
        try:
            await self.sweep()
        except PenstockError as error:  # the next one may come through
            log.warning("cannot delete large results of steps: %s", error)


class RunResults:
    """The results of the steps of one run, as the queue takes them and gives them back."""

    def __init__(self, job_id: str, recorder: StepRecorder) -> None:
        self._job_id = job_id
        self._recorder = recorder

    async def stored(self, name: str, text: str) -> str:
        """What is stored of a result in the queue: itself, or where it is in the blob store.
        ResultTooLarge where there is none."""
        size = byte_length(text)
        if size <= STEP_RESULT_LIMIT:
            return text
        results = self._recorder.results()
        if results is None:
            raise ResultTooLarge(
                f"result of step {name!r} is {size:,} bytes, and the queue takes "
                f"{STEP_RESULT_LIMIT:,}: set `blobs`, a folder that all worker processes reach "
                "or a bucket, and larger ones are kept there; or return a reference"
            )
        return await self._reached(lambda: results.put(self._job_id, text))

    async def read(self, row: StepRow) -> Any:
        """The result of a recorded step."""
        if large_result(row.result) is None:
            return json.loads(row.result or "null")
        results = self._recorder.results()
        if results is None:
            raise ConfigError(
                f"the result of step {row.name!r} is in a blob store: set `blobs` as the process "
                "that has recorded it has"
            )
        return await self._reached(lambda: results.read(self._job_id, row))

    async def _reached(self, ask: Callable[[], Awaitable[T]]) -> T:
        """While the blob store is away it waits for it, as long as the run lasts: what was done is
        not done again for that."""
        failures = 0
        while True:
            try:
                return await ask()
            except StoreUnavailable:
                failures += 1
                await asyncio.sleep(reconnect_delay(failures, self._recorder.settings))


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
