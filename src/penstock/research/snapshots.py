"""Snapshots of tasks at a version of their log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from penstock.engine.snapshots import SnapshotWaiters
from penstock.errors import TaskNotFound
from penstock.model.job import JobState
from penstock.model.research import TaskRecord, TaskStatus
from penstock.ports.queue import JobFilter
from penstock.research.job_ids import log_of
from penstock.research.jobs import ResearchDeps
from penstock.research.status import (
    Results,
    budget_of,
    progress_of,
    results_of,
    search_views,
    status_of,
    troubles_of,
)
from penstock.wire.tasks import SearchView, TaskView, Trouble

LOOK = 20
"""Maximum queued jobs to ask what they wait for."""
SMALL = 300
"""Maximum findings to sort on the event loop; more are sorted in a thread."""
NEXT_WAIT = 50.0


@dataclass(slots=True, frozen=True)
class Snapshot:
    """A task at one version, and everything derived from it."""

    record: TaskRecord
    version: int
    stopped: bool
    status: TaskStatus
    results: Results
    searches: tuple[SearchView, ...]
    errors: tuple[Trouble, ...]
    waiting_for: tuple[str, ...]
    _views: dict[tuple[int, int], TaskView] = field(default_factory=dict)
    """Cached for identical requests, as long as the budget does not depend on the clock."""

    @property
    def finished(self) -> bool:
        return self.status in (TaskStatus.COMPLETED, TaskStatus.FAILED)

    def view(self, start: int, limit: int, now: float) -> TaskView:
        if view := self._views.get((start, limit)):
            return view
        view = self._view(start, limit, now)
        if self.record.task.ends_at is None:
            self._views[start, limit] = view
        return view

    def _view(self, start: int, limit: int, now: float) -> TaskView:
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


class TaskSnapshots(SnapshotWaiters[Snapshot]):
    def __init__(self, tools: ResearchDeps) -> None:
        super().__init__(tools.queue)
        self._tools = tools

    def log_of(self, name: str) -> str:
        return log_of(name)

    async def read(self, tenant: str, name: str, version: int) -> Snapshot:
        queue, log = self._tools.queue, log_of(name)
        record = await self._tools.store.record(tenant, name)
        if record is None:
            raise TaskNotFound(name)
        (stopped,) = await queue.stopped([(tenant, log)])
        status = status_of(record.searches, stopped=stopped)
        waiting: list[str] = []
        if status is TaskStatus.RUNNING and record.searches:
            where = JobFilter(tenant=tenant, log=log, states=[JobState.QUEUED])
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
