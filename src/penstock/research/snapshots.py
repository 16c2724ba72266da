"""Tasks as of a version of their log; one read serves all who wait for the same."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from penstock.model.errors import TaskNotFound
from penstock.model.job import JobState
from penstock.model.research import TaskRecord, TaskStatus
from penstock.ports.queue import JobFilter
from penstock.research.jobs import Tools
from penstock.research.status import (
    Results,
    budget_of,
    progress_of,
    results_of,
    search_views,
    status_of,
    troubles_of,
)
from penstock.research.tasks import log_of
from penstock.research.views import SearchView, TaskView, Trouble

KEPT = 200
LOOK = 20
"""Queued jobs that are asked what they wait for."""
SMALL = 300
"""So many findings are put in order at once; more in a thread, for that takes a while."""
NEXT_WAIT = 50.0


@dataclass(slots=True, frozen=True)
class Snapshot:
    """A task at one moment, and all that is derived from it."""

    record: TaskRecord
    version: int
    stopped: bool
    status: TaskStatus
    results: Results
    searches: tuple[SearchView, ...]
    errors: tuple[Trouble, ...]
    waiting_for: tuple[str, ...]

    @property
    def finished(self) -> bool:
        return self.status in (TaskStatus.COMPLETED, TaskStatus.FAILED)

    def view(self, start: int, limit: int, now: float) -> TaskView:
        task, works = self.record.task, self.results.works
        end = min(start + limit, len(works))
        return TaskView(
            task_id=task.id,
            question=task.question,
            status=self.status,
            progress=progress_of(self.record.searches),
            searches=self.searches,
            results=works[start:end],
            total_results=len(works),
            cursor=str(end) if end < len(works) else None,
            errors=self.errors,
            waiting_for=self.waiting_for,
            budget=budget_of(task, now),
            version=self.version,
            next_poll=None if self.finished else NEXT_WAIT,
            created_at=task.created_at,
        )


class Snapshots:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._reading: OrderedDict[tuple[str, str], tuple[int, asyncio.Task[Snapshot]]] = (
            OrderedDict()
        )

    async def get(self, tenant: str, task: str, *, shared: bool = False) -> Snapshot:
        """The task now. `shared`: as of a version that is at least the newest when this is called;
        whoever asks for the same meanwhile gets the same."""
        (version,) = await self._tools.queue.versions([(tenant, log_of(task))])
        if not shared:
            return await self._read(tenant, task, version)
        before = self._reading.get((tenant, task))
        if before is None or before[0] < version:
            reading = asyncio.create_task(self._read(tenant, task, version))
            before = self._reading[tenant, task] = (version, reading)
            self._reading.move_to_end((tenant, task))
            while len(self._reading) > KEPT:
                self._reading.popitem(last=False)
        # Shielded: the others go on when one of them leaves.
        return await asyncio.shield(before[1])

    async def _read(self, tenant: str, task: str, version: int) -> Snapshot:
        # The version first: what changes after it is told again.
        queue, log = self._tools.queue, log_of(task)
        record = await self._tools.store.record(tenant, task)
        if record is None:
            raise TaskNotFound(task)
        (stopped,) = await queue.stopped([(tenant, log)])
        status = status_of(record.searches, stopped=stopped)
        waiting: list[str] = []
        if status is TaskStatus.RUNNING and record.searches:
            where = JobFilter(tenant=tenant, task=log, states=[JobState.QUEUED])
            jobs = await queue.find(where, LOOK)
            waiting = sorted({job.waiting_for for job in jobs if job.waiting_for})
        if sum(len(answer.findings) for answer in record.answers) <= SMALL:
            results = results_of(record)
        else:
            results = await asyncio.to_thread(results_of, record)
        return Snapshot(
            record=record,
            version=version,
            stopped=stopped,
            status=status,
            results=results,
            searches=search_views(record, results.found),
            errors=troubles_of(record),
            waiting_for=tuple(waiting),
        )
