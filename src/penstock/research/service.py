"""`app.research`: research tasks and their results."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence
from typing import Literal

from penstock.documents.jobs import Enqueue
from penstock.engine.assembly import Chore
from penstock.errors import TaskNotFound, TaskStopped, ValidationError
from penstock.model.ids import new_ids
from penstock.model.job import JobState, Priority, PriorityName
from penstock.model.research import UNFINISHED, ResearchTask, Search, TaskStatus
from penstock.ports.research import NewSearch
from penstock.research.estimate import estimate
from penstock.research.export import FORMATS, export
from penstock.research.job_ids import (
    FIND,
    SEARCH,
    SEARCH_LANE,
    job_id,
    log_of,
    new_task_id,
    query_key,
    start,
)
from penstock.research.jobs import ResearchDeps
from penstock.research.reader import page_text
from penstock.research.reconcile import TaskReconciler
from penstock.research.snapshots import Snapshot, TaskSnapshots
from penstock.research.status import progress_of, status_of
from penstock.wire.tasks import Mode, PageText, Queued, Resumed, StoppedTask, TaskLine, TaskView

Format = Literal["markdown", "json", "bibtex"]

MAX_WAIT = 300.0
MAX_QUERIES = 100
"""Maximum queries in one call."""
MAX_SEARCHES = 1000
"""Maximum searches of one task."""
MAX_RESULTS = 100
"""Maximum results per query."""
MAX_LISTED = 1000
QUERY_LIMIT = 1000
QUESTION_LIMIT = 10_000
MAX_SECONDS = 30 * 86400.0
RECENT = 50
"""Recent searches used to estimate the duration of the next."""


class Research:
    """The research tasks of an app. Their work is done by jobs; see `search_run`.

    Unknown ids, and those of other tenants, raise TaskNotFound; invalid arguments raise
    ValidationError, with a message that says what is valid.
    """

    def __init__(
        self, tools: ResearchDeps, enqueue: Enqueue, providers: tuple[str, ...], parallel: int
    ) -> None:
        self._tools = tools
        self._enqueue = enqueue
        self._parallel = parallel
        self._snapshots = TaskSnapshots(tools)
        self.providers = providers
        """Default providers, in order."""

    @property
    def known(self) -> tuple[str, ...]:
        """All available providers, in order."""
        return tuple(self._tools.providers)

    async def open(self) -> None:
        """Do nothing: queue, store and documents are already open."""

    async def close(self) -> None:
        await self._snapshots.close()
        await self._tools.providers.close()

    def chores(self, kinds: Container[str]) -> list[Chore]:
        """Background work of a process that searches. Raises ConfigError if it cannot be done:
        better not to start than to fail every search."""
        if FIND in kinds:
            self._tools.providers.check()
        return [TaskReconciler(self._tools, self._enqueue)] if SEARCH in kinds else []

    async def create(
        self,
        question: str,
        *,
        budget_pages: int | None = None,
        budget_seconds: float | None = None,
        tenant: str = "default",
        task_id: str | None = None,
    ) -> ResearchTask:
        """Create a task without searches: running, 0/0. `task_id`, 32 hex digits, makes it
        idempotent: an existing task with that id is returned."""
        question = _tidy(question)
        if not 0 < len(question) <= QUESTION_LIMIT:
            raise ValidationError(f"a question must be 1 to {QUESTION_LIMIT:,} characters")
        if budget_pages is not None and budget_pages < 0:
            raise ValidationError("budget_pages must be 0 or more; omit it for no limit")
        if budget_seconds is not None and not 0 < budget_seconds <= MAX_SECONDS:
            raise ValidationError("budget_seconds must be over 0 and at most 30 days")
        (masked,) = await self._tools.documents.mask([question])
        return await self._tools.store.create(
            ResearchTask(
                tenant=tenant,
                id=task_id or new_task_id(),
                question=masked,
                created_at=self._tools.now(),
                budget_pages=budget_pages,
                budget_seconds=budget_seconds,
                seconds_left=budget_seconds,
            )
        )

    async def queue_searches(
        self,
        task_id: str,
        queries: Sequence[str],
        *,
        max_results: int = 10,
        priority: PriorityName = "medium",
        providers: Sequence[str] | None = None,
        tenant: str = "default",
    ) -> Queued:
        """Add searches to a task; returns at once. Queries it already has are skipped and
        counted. Raises TaskStopped while it is paused: resume it first."""
        new = await self._new_searches(queries, max_results, Priority.parse(priority), providers)
        await self._refuse_stopped(tenant, task_id)
        added = await self._tools.store.add_searches(
            tenant, task_id, new, MAX_SEARCHES, self._tools.now()
        )
        if added is None:
            raise TaskNotFound(task_id)
        # Estimated before they are in their lines, so that they are not counted twice.
        seconds = await self._estimate(tenant, added.searches)
        for search in added.searches:
            await start(self._enqueue, search)
        return Queued(
            task_id=task_id,
            queued=len(added.searches),
            skipped=len(added.skipped),
            search_ids=tuple(search.ref.id for search in added.searches),
            estimated_time=seconds,
        )

    def check_searches(
        self, queries: Sequence[str], max_results: int, providers: Sequence[str] | None
    ) -> tuple[str, ...]:
        """Return the providers to query; raises ValidationError for what `queue_searches` would
        reject."""
        if not 0 < len(queries) <= MAX_QUERIES:
            raise ValidationError(f"queue 1 to {MAX_QUERIES} queries at a time")
        if not all(0 < len(_tidy(query)) <= QUERY_LIMIT for query in queries):
            raise ValidationError(f"a query must be 1 to {QUERY_LIMIT:,} characters")
        if not 0 < max_results <= MAX_RESULTS:
            raise ValidationError(f"max_results must be 1 to {MAX_RESULTS}")
        asked = tuple(dict.fromkeys(self.providers if providers is None else providers))
        unknown = [name for name in asked if name not in self._tools.providers]
        if unknown or not asked:
            there = ", ".join(self._tools.providers)
            what = f"there is no provider {unknown[0]!r}" if unknown else "name a provider"
            raise ValidationError(f"{what}; there are: {there}")
        return asked

    async def _new_searches(
        self,
        queries: Sequence[str],
        max_results: int,
        priority: Priority,
        providers: Sequence[str] | None,
    ) -> list[NewSearch]:
        asked = self.check_searches(queries, max_results, providers)
        tidy = [_tidy(query) for query in queries]
        masked = await self._tools.documents.mask(tidy)
        return [
            NewSearch(one, query_key(query, asked), query, max_results, priority, asked)
            for one, query in zip(new_ids(len(masked)), masked, strict=True)
        ]

    async def _refuse_stopped(self, tenant: str, task_id: str) -> None:
        """Raise if the task is stopped, before anything is stored. If it is stopped a moment later,
        the searches stay unfinished, like its others."""
        if await self._tools.store.get(tenant, task_id) is None:
            raise TaskNotFound(task_id)
        if await self._is_stopped(tenant, task_id):
            raise TaskStopped(task_id)

    async def _is_stopped(self, tenant: str, task_id: str) -> bool:
        (stopped,) = await self._tools.queue.stopped([(tenant, log_of(task_id))])
        return stopped

    async def _estimate(self, tenant: str, searches: Sequence[Search]) -> float:
        tools = self._tools
        lanes = {lane.name: lane for lane in await tools.queue.lanes()}
        asked = [[tools.provider(name).lane for name in one.providers] for one in searches]
        parallel = lanes[SEARCH_LANE].max_parallel if SEARCH_LANE in lanes else self._parallel
        taken = await tools.store.seconds_taken(tenant, RECENT)
        return estimate(asked, lanes, parallel, taken, tools.now())

    async def status(
        self,
        task_id: str,
        *,
        wait: float = 0.0,
        since: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
        tenant: str = "default",
    ) -> TaskView:
        """Return the current state of a task. With `wait`, wait up to that many seconds (300 at
        most) for a change after version `since`, or after now; returns at once if there was one,
        or if the task is finished. At most `limit` results, from `cursor` on."""
        if not 0 <= wait <= MAX_WAIT:
            raise ValidationError(f"wait must be 0 to {MAX_WAIT:g} s")
        if not 0 <= limit <= MAX_LISTED:
            raise ValidationError(f"limit must be 0 to {MAX_LISTED}")
        start_at = _position(cursor)
        snapshot = await self._snapshots.get(tenant, task_id)
        seen = snapshot.version if since is None else since
        if wait > 0 and not snapshot.finished and seen >= snapshot.version:
            snapshot = await self._snapshots.after(tenant, task_id, seen, wait) or snapshot
        return snapshot.view(start_at, limit, self._tools.now())

    async def stop(
        self, task_id: str, *, mode: Mode = "graceful", tenant: str = "default"
    ) -> StoppedTask:
        """Stop a task; returns at once. Queued searches are cancelled and no new ones accepted.
        Graceful: running ones finish, with the pages they find, and are stored. Immediate: they
        are cancelled, and not stored."""
        if mode not in ("graceful", "immediate"):
            raise ValidationError("mode must be graceful or immediate")
        tools, at_once = self._tools, mode == "immediate"
        before = await self._snapshots.get(tenant, task_id)
        if before.finished:
            return self._stopped(before, mode, 0, 0)
        if at_once:  # first: nothing that a running job brings is stored from here on
            await tools.store.stop(tenant, task_id, tools.now(), refuse=True)
        log = log_of(task_id)
        done = await tools.queue.stop(tenant, log, running=at_once, whole=not at_once)
        if not at_once:
            await tools.store.stop(tenant, task_id, tools.now(), refuse=False)
        after = await self._snapshots.get(tenant, task_id)
        running = 0 if at_once else done.running
        return self._stopped(after, mode, done.cancelled, running)

    def _stopped(self, snapshot: Snapshot, mode: Mode, cancelled: int, running: int) -> StoppedTask:
        left = sum(one.state in UNFINISHED for one in snapshot.record.searches)
        return StoppedTask(
            task_id=snapshot.record.task.id,
            mode=mode,
            status=snapshot.status,
            cancelled=cancelled,
            running=running,
            searches_done=len(snapshot.record.searches) - left,
            searches_left=left,
            resumable=snapshot.status is TaskStatus.PAUSED,
        )

    async def resume(self, task_id: str, *, tenant: str = "default") -> Resumed:
        """Resume the unfinished searches. Harmless for a task that is not paused."""
        tools = self._tools
        before = await self._snapshots.get(tenant, task_id)
        queued = 0
        if before.stopped:
            again = await self._again(before.record.searches)
            await tools.store.resume(tenant, task_id, tools.now())
            await tools.queue.reopen(tenant, log_of(task_id))
            for search in again:
                await start(self._enqueue, search)
            queued = len(again)
        after = await self._snapshots.get(tenant, task_id)
        return Resumed(task_id, after.status, queued)

    async def _again(self, searches: Sequence[Search]) -> list[Search]:
        """Select the searches that need a new job: not those whose job is still running, and not
        those that already have a new run."""
        left = [search for search in searches if search.state in UNFINISHED]
        jobs = await self._tools.queue.get([job_id(search) for search in left])
        again: list[Search] = []
        for search in left:
            job = jobs.get(job_id(search))
            if job is None:
                again.append(search)
            elif job.state is not JobState.RUNNING:
                restarted = await self._tools.store.restart(search.ref, search.run)
                again += [] if restarted is None else [restarted]
        return again

    async def tasks(
        self, *, tenant: str = "default", limit: int = 100, before: str | None = None
    ) -> list[TaskLine]:
        """List tasks, newest first; `before` is the id of the last one of the previous page."""
        if not 0 < limit <= MAX_LISTED:
            raise ValidationError(f"limit must be 1 to {MAX_LISTED}")
        found = await self._tools.store.tasks(tenant, limit, before)
        logs = [(tenant, log_of(task.id)) for task, _ in found]
        stopped = await self._tools.queue.stopped(logs) if logs else []
        return [
            TaskLine(
                task_id=task.id,
                question=task.question,
                status=status_of(searches, stopped=paused),
                progress=progress_of(searches),
                created_at=task.created_at,
            )
            for (task, searches), paused in zip(found, stopped, strict=True)
        ]

    async def page(
        self,
        document: str,
        *,
        collection: str | None = None,
        limit: int = 20_000,
        cursor: str | None = None,
        tenant: str = "default",
    ) -> PageText:
        """Return the text of a page that was read (`Work.document`, or its URL), or of any
        document. Without `collection`, web pages are searched first, then all collections; raises
        ValidationError if several have it. At most `limit` characters, from `cursor` on. Raises
        DocumentNotFound."""
        if not 0 < limit <= 1_000_000:
            raise ValidationError("limit must be 1 to 1,000,000 characters")
        return await page_text(
            self._tools.documents, tenant, collection, document, _position(cursor), limit
        )

    async def export(
        self, task_id: str, format: Format = "markdown", *, tenant: str = "default"
    ) -> str:
        """Export a task as one text."""
        if format not in FORMATS:
            raise ValidationError(f"format must be one of {', '.join(FORMATS)}")
        snapshot = await self._snapshots.get(tenant, task_id)
        whole = snapshot.view(0, len(snapshot.results.works), self._tools.now())
        return await asyncio.to_thread(export, whole, format)


def _tidy(text: str) -> str:
    return " ".join(text.split())


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 12:
        raise ValidationError("invalid cursor; use the `cursor` of an earlier response")
    return int(cursor)
