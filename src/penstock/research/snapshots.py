"""Snapshots of tasks at a version of their log; one read serves all waiters."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from penstock.engine.waiters import Waiters
from penstock.errors import StoreUnavailable, TaskNotFound
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
from penstock.research.views import SearchView, TaskView, Trouble

log = logging.getLogger("penstock.research")

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
    _views: dict[tuple[int, int], TaskView] = field(default_factory=dict)
    """Made once for all who ask the same, as long as its budget does not run by the clock."""

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


class TaskSnapshots:
    def __init__(self, tools: ResearchDeps) -> None:
        self._tools = tools
        self._waiters: Waiters[tuple[str, str, int], Snapshot] = Waiters(tools.queue, self._changed)

    async def close(self) -> None:
        await self._waiters.close()

    async def get(self, tenant: str, task: str) -> Snapshot:
        """The task now."""
        # The version first: what changes after it is told again.
        (version,) = await self._tools.queue.versions([(tenant, log_of(task))])
        return await self._read(tenant, task, version)

    async def after(self, tenant: str, task: str, version: int, timeout: float) -> Snapshot | None:
        """The task once its version is over that; None: it was not in this time."""
        try:
            return await self._waiters.wait((tenant, task, version), timeout)
        except TimeoutError:
            return None

    async def _changed(
        self, keys: list[tuple[str, str, int]]
    ) -> dict[tuple[str, str, int], Snapshot]:
        tasks = list({key[:2] for key in keys})
        logs = [(tenant, log_of(task)) for tenant, task in tasks]
        newest = dict(zip(tasks, await self._tools.queue.versions(logs), strict=True))
        changed = {key: newest[key[:2]] for key in keys if newest[key[:2]] > key[2]}
        read = await asyncio.gather(
            *(self._try(*one, newest[one]) for one in {key[:2] for key in changed})
        )
        found = {(one.record.task.tenant, one.record.task.id): one for one in read if one}
        return {key: found[key[:2]] for key in changed if key[:2] in found}

    async def _try(self, tenant: str, task: str, version: int) -> Snapshot | None:
        try:
            return await self._read(tenant, task, version)
        except StoreUnavailable as error:  # whoever waits is told when it is back
            log.debug("cannot check for waiters: %s", error)
            return None

    async def _read(self, tenant: str, task: str, version: int) -> Snapshot:
        queue, name = self._tools.queue, log_of(task)
        record = await self._tools.store.record(tenant, task)
        if record is None:
            raise TaskNotFound(task)
        (stopped,) = await queue.stopped([(tenant, name)])
        status = status_of(record.searches, stopped=stopped)
        waiting: list[str] = []
        if status is TaskStatus.RUNNING and record.searches:
            where = JobFilter(tenant=tenant, log=name, states=[JobState.QUEUED])
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
