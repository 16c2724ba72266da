"""Follows jobs: their records as events, how far they have come, and their end.

The log of a job is what it has recorded, in the order of the positions. Progress is a state: it is
told when it has changed, at the position of the last record. The end comes after all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from penstock.engine.retry import reconnect_delay
from penstock.engine.waiters import Waiters
from penstock.errors import JobNotFound, QueueUnavailable
from penstock.model.event import JobEvent
from penstock.model.job import Job
from penstock.model.payload import read_json
from penstock.model.settings import EngineConfig
from penstock.ports.queue import JobQueue
from penstock.ports.steps import EVENT_NAME, Recorded, StepRow

PAGE = 200
T = TypeVar("T")
Progress = tuple[float, str]
NO_PROGRESS: Progress = (0.0, "")


class _Place(NamedTuple):
    """The place of a follower: what it has been told of a job."""

    job_id: str
    position: int
    progress: Progress


class JobEvents:
    """The events of jobs, for those who follow them in this process. One read for each wake-up
    tells all of them whether there is anything new."""

    def __init__(self, queue: JobQueue, settings: EngineConfig) -> None:
        self._queue = queue
        self._settings = settings
        self._waiters: Waiters[_Place, bool] = Waiters(queue, self._changed)

    async def follow(self, job_id: str, after: int | None) -> AsyncIterator[JobEvent]:
        """The events after a position, up to the end; waits while the queue cannot be reached. None
        at all after the end. JobNotFound, also if the job is deleted meanwhile."""
        place = _Place(job_id, after or 0, NO_PROGRESS)
        while True:
            # The job first: after its end it records nothing more.
            job = await self._reached(lambda: self._job(job_id))
            async for event in self._recorded(place):
                place = place._replace(position=event.position)
                yield event
            if job.state.finished:
                last = await self._reached(lambda: self._queue.last_recorded([job_id]))
                if place.position <= last.get(job_id, 0):  # else the end was told
                    yield _end(job, place.position + 1)
                return
            told, place = place.progress, place._replace(progress=_progress(job))
            if place.progress not in (told, NO_PROGRESS):
                data = {"fraction": job.progress, "message": job.message}
                yield JobEvent(place.position, "progress", self._queue.now(), data)
            await self._waiters.wait(place, None)

    async def close(self) -> None:
        await self._waiters.close()

    async def _job(self, job_id: str) -> Job:
        found = await self._queue.get([job_id])
        if job_id not in found:
            raise JobNotFound(job_id)
        return found[job_id]

    async def _recorded(self, place: _Place) -> AsyncIterator[JobEvent]:
        after, more = place.position, True
        while more:
            page = await self._page(place.job_id, after)
            more = len(page) == PAGE
            for one in page:
                after = one.position
                yield _event(one)

    async def _page(self, job_id: str, after: int) -> list[Recorded]:
        return await self._reached(lambda: self._queue.recorded(job_id, after, PAGE))

    async def _reached(self, ask: Callable[[], Awaitable[T]]) -> T:
        failures = 0
        while True:
            try:
                return await ask()
            except QueueUnavailable:
                failures += 1
                await asyncio.sleep(reconnect_delay(failures, self._settings))

    async def _changed(self, places: Sequence[_Place]) -> dict[_Place, bool]:
        """Of which jobs there is more to tell."""
        ids = list({place.job_id for place in places})
        jobs, last = await asyncio.gather(self._queue.get(ids), self._queue.last_recorded(ids))
        changed = {}
        for place in places:
            job = jobs.get(place.job_id)
            same = job is not None and place.progress == _progress(job) and not job.state.finished
            if not same or last.get(place.job_id, 0) > place.position:
                changed[place] = True
        return changed


def _progress(job: Job) -> Progress:
    return job.progress, job.message


def _event(recorded: Recorded) -> JobEvent:
    position, row = recorded
    at = row.finished_at or row.started_at
    if row.name == EVENT_NAME:
        return JobEvent(position, "emitted", at, read_json(row.result or "null"))
    return JobEvent(position, "step" if row.details is None else "receipt", at, _step(row))


def _step(row: StepRow) -> dict[str, Any]:
    took = None if row.finished_at is None else max(0.0, row.finished_at - row.started_at)
    told = {name: getattr(row, name) for name in ("name", "occurrence", "lane", "attempts")}
    return {**told, "seconds": took}


def _end(job: Job, position: int) -> JobEvent:
    data = {"state": str(job.state), "result": job.result, "error": job.error}
    return JobEvent(position, "end", job.finished_at or job.enqueued_at, data)
