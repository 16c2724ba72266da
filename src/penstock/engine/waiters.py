"""Waits for jobs and logs: one query per wake-up serves all waiters."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from penstock.aio import end_tasks
from penstock.errors import (
    JobNotFound,
    QueueError,
    QueueUnavailable,
    QueueUnusable,
    ValidationError,
    WaitTimeout,
)
from penstock.model.job import Job
from penstock.ports.queue import JobQueue, Topic, Wakeup

logger = logging.getLogger("penstock")

Key = TypeVar("Key")
Found = TypeVar("Found")

LOST_WAKEUP_SECONDS = 1.0
PAUSE_SECONDS = 0.002
PAUSE_PER_WAITER = 2e-6
"""Between two looks, so that many waiters on a busy queue do not read it without end."""


class Waiters(Generic[Key, Found]):
    """Futures by key, resolved by one loop that runs only while somebody waits."""

    def __init__(
        self, queue: JobQueue, look: Callable[[list[Key]], Awaitable[dict[Key, Found]]]
    ) -> None:
        self._queue = queue
        self._look = look
        self._waiting: dict[Key, set[asyncio.Future[dict[Key, Found]]]] = {}
        self._of_several: set[asyncio.Future[dict[Key, Found]]] = set()
        """Those that wait for more than one key."""
        self._listener: Wakeup | None = None
        self._loop: asyncio.Task[None] | None = None

    async def wait(self, key: Key, timeout: float | None) -> Found:
        """What the look finds for `key`; TimeoutError after `timeout` seconds."""
        return (await self.wait_any([key], timeout))[key]

    async def wait_any(self, keys: Sequence[Key], timeout: float | None) -> dict[Key, Found]:
        """What the look finds for the first of `keys`, and others that it finds with it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[dict[Key, Found]] = loop.create_future()
        if self._listener is None:
            self._listener = self._queue.listen(Topic.FINISHED)
            self._loop = asyncio.create_task(self._run(self._listener), name="penstock-waiters")
        for key in keys:
            self._waiting.setdefault(key, set()).add(future)
        if len(keys) > 1:
            self._of_several.add(future)
        self._listener.ring()  # it may be finished already
        # Not asyncio.timeout: when thousands are woken at once, what it does for each is seen.
        timer = None if timeout is None else loop.call_later(timeout, _expire, future)
        try:
            return await future
        finally:
            if timer is not None:
                timer.cancel()
            self._of_several.discard(future)
            for key in keys:
                if futures := self._waiting.get(key):
                    futures.discard(future)
                    if not futures:
                        del self._waiting[key]

    async def close(self) -> None:
        if self._loop is not None:
            await end_tasks([self._loop])

    async def _run(self, listener: Wakeup) -> None:
        try:
            while self._waiting:
                await listener.wait(LOST_WAKEUP_SECONDS)
                await self._resolve()
                await asyncio.sleep(PAUSE_SECONDS + PAUSE_PER_WAITER * len(self._waiting))
        finally:
            # No await between the look at `_waiting` and this: whoever comes next finds no
            # listener and starts a new loop.
            self._listener = None
            listener.close()

    async def _resolve(self) -> None:
        if not self._waiting:
            return
        try:
            found = await self._look(list(self._waiting))
        except (QueueUnavailable, QueueUnusable) as error:
            logger.debug("cannot check for waiters: %s", error)
            return
        except QueueError as error:  # it is not open: waiting would bring nothing
            for future in set().union(*self._waiting.values()):
                if not future.done():
                    future.set_exception(error)
            return
        answers: dict[asyncio.Future[dict[Key, Found]], dict[Key, Found]] = {}
        for key, value in found.items():
            alone = {key: value}  # the same for all who wait for no other
            for future in self._waiting.pop(key, ()):
                if future in self._of_several:
                    answers.setdefault(future, {})[key] = value
                elif not future.done():
                    future.set_result(alone)
        for future, answer in answers.items():
            if not future.done():
                future.set_result(answer)


def check_timeout(timeout: Any) -> None:
    """Refuse what is no time to wait for."""
    if timeout is not None and (not isinstance(timeout, int | float) or timeout != timeout):
        raise ValidationError(f"timeout is a number of seconds, or None, not {timeout!r:.60}")


def _expire(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())


class JobWaiters(Waiters[str, Job | None]):
    """Wait for jobs to finish; None is found for one that is gone."""

    def __init__(self, queue: JobQueue) -> None:
        super().__init__(queue, self._finished)

    async def job(self, job_id: str, timeout: float | None) -> Job:
        """The job once it is finished."""
        check_timeout(timeout)
        try:
            job = await self.wait(job_id, timeout)
        except TimeoutError:
            raise WaitTimeout(f"job {job_id} was not finished after {timeout:g} s") from None
        if job is None:
            raise JobNotFound(job_id)
        return job

    async def _finished(self, ids: list[str]) -> dict[str, Job | None]:
        done = await self._queue.finished(ids)
        jobs = await self._queue.get(done) if done else {}
        return {job_id: jobs.get(job_id) for job_id in done}


LogVersion = tuple[str, str, int]
"""A tenant, a log of it (or what has that log), and a version that it is to pass."""


class LogWaiters(Waiters[LogVersion, int]):
    """Wait for a log to pass a version."""

    def __init__(self, queue: JobQueue) -> None:
        super().__init__(queue, self._newest)

    async def passed(self, tenant: str, log: str, since: int, timeout: float | None) -> bool:
        """True once the log's version is over `since`, False after `timeout` seconds."""
        try:
            await self.wait((tenant, log, since), timeout)
        except TimeoutError:
            return False
        return True

    async def _newest(self, keys: list[LogVersion]) -> dict[LogVersion, int]:
        logs = list({(tenant, log) for tenant, log, _ in keys})
        newest = dict(zip(logs, await self._queue.versions(logs), strict=True))
        return {key: newest[key[:2]] for key in keys if newest[key[:2]] > key[2]}
