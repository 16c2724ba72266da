"""Tools for research tasks: create, search, stop, resume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field, RootModel

from penstock.mcp.results import Fitted, ToolResult, fitting, more
from penstock.mcp.tool_view import ReadAccess, WriteAccess
from penstock.mcp.tools.define import define
from penstock.mcp.tools.keys import Key, check_same, id_for
from penstock.model.job import PriorityName
from penstock.research.service import (
    MAX_QUERIES,
    MAX_RESULTS,
    MAX_SECONDS,
    QUERY_LIMIT,
    QUESTION_LIMIT,
)
from penstock.wire.tasks import Budget, Mode, Queued, Resumed, StoppedTask, TaskLine
from penstock.wire.view import made

MAX_LISTED = 100

TaskId = Annotated[str, Field(min_length=1, max_length=64, description="From create_task.")]


@dataclass(slots=True, frozen=True)
class TaskCreated(TaskLine, ToolResult):
    budget: Budget

    def in_words(self) -> str:
        return f"Task {self.task_id} is created. Give it searches with queue_searches."


@dataclass(slots=True, frozen=True)
class SearchesQueued(Queued, ToolResult):
    def in_words(self) -> str:
        told = f"{self.queued} searches are queued, done in about {self.estimated_time:.0f} s."
        if self.skipped:
            told += f" {self.skipped} were skipped: the task has them already."
        return f'{told} Follow them with get_status(task_id="{self.task_id}", wait=50).'


@dataclass(slots=True, frozen=True)
class StopResult(StoppedTask, ToolResult):
    def in_words(self) -> str:
        told = (
            f"Task {self.task_id} is {self.status}: {self.searches_done} searches done, "
            f"{self.searches_left} left; {self.cancelled} jobs cancelled, {self.running} finishing."
        )
        return told + (" resume_task goes on with it." if self.resumable else "")


@dataclass(slots=True, frozen=True)
class TaskResumed(Resumed, ToolResult):
    def in_words(self) -> str:
        return f"Task {self.task_id} is {self.status}: {self.queued} searches go on."


@dataclass(frozen=True, kw_only=True)
class TaskList(Fitted):
    tasks: Sequence[TaskLine]
    """Newest first."""

    def in_words(self) -> str:
        if not self.tasks:
            return "There are no research tasks yet. create_task begins one."
        lines = [f"{one.task_id} {one.status} {one.progress}: {one.question}" for one in self.tasks]
        return "\n".join(lines) + more(self.cursor)


async def create_task(
    tenant_view: WriteAccess,
    question: Annotated[
        str,
        Field(
            min_length=1,
            max_length=QUESTION_LIMIT,
            description="What to find out, in a sentence or two.",
        ),
    ],
    budget_pages: Annotated[
        int | None, Field(ge=0, description="Maximum pages to read; 0: only what providers return.")
    ] = None,
    budget_seconds: Annotated[
        float | None, Field(gt=0, le=MAX_SECONDS, description="Maximum time to search.")
    ] = None,
    key: Key = None,
) -> Annotated[CallToolResult, RootModel[TaskCreated]]:
    """Create a research task: a question whose searches, results and errors are stored together,
    even after this conversation ends. It does nothing by itself; call queue_searches next."""
    await tenant_view.admit()
    task = await tenant_view.research.create(
        question,
        budget_pages=budget_pages,
        budget_seconds=budget_seconds,
        tenant=tenant_view.tenant,
        task_id=id_for(tenant_view, "create_task", key),
    )
    budgets = (budget_pages, task.budget_pages), (budget_seconds, task.budget_seconds)
    await check_same(tenant_view, key, question, task.question, *budgets)
    return made(TaskCreated, await tenant_view.task(task.id)).result()


async def queue_searches(
    tenant_view: WriteAccess,
    task_id: TaskId,
    queries: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=QUERY_LIMIT)]],
        Field(
            min_length=1,
            max_length=MAX_QUERIES,
            description="Several short ones find more than one long one.",
        ),
    ],
    max_results_per_query: Annotated[int, Field(ge=1, le=MAX_RESULTS)] = 10,
    priority: Annotated[
        PriorityName, Field(description="`high` runs before other queued work.")
    ] = "medium",
    providers: Annotated[
        list[str] | None,
        Field(
            min_length=1,
            max_length=20,
            description="openalex, semantic_scholar, crossref, arxiv (papers), searxng (the web), "
            "documents (stored here), or others that are configured. Default: the configured ones.",
        ),
    ] = None,
) -> Annotated[CallToolResult, RootModel[SearchesQueued]]:
    """Start searches of a task. It returns at once; the searches run on the server and read the
    pages they find. Follow them with get_status. More can be queued at any time, such as narrower
    queries once the first results are in. A query that the task already has is skipped."""
    await tenant_view.admit()
    queued = await tenant_view.research.queue_searches(
        task_id,
        queries,
        max_results=max_results_per_query,
        priority=priority,
        providers=providers,
        tenant=tenant_view.tenant,
    )
    return made(SearchesQueued, queued).result()


async def stop_task(
    tenant_view: WriteAccess,
    task_id: TaskId,
    mode: Annotated[
        Mode,
        Field(
            description="`graceful`: running searches finish. `immediate`: they are cancelled, "
            "and nothing more is stored."
        ),
    ] = "graceful",
) -> Annotated[CallToolResult, RootModel[StopResult]]:
    """Stop a task when its results are sufficient. It returns at once, and results are kept. A
    stopped task takes no new searches until resume_task. A finished task needs no stop."""
    stopped = await tenant_view.research.stop(task_id, mode=mode, tenant=tenant_view.tenant)
    return made(StopResult, stopped).result()


async def resume_task(
    tenant_view: WriteAccess, task_id: TaskId
) -> Annotated[CallToolResult, RootModel[TaskResumed]]:
    """Resume a stopped task: unfinished searches run again, results are kept. No effect on a task
    that is not stopped."""
    await tenant_view.admit()
    resumed = await tenant_view.research.resume(task_id, tenant=tenant_view.tenant)
    return made(TaskResumed, resumed).result()


async def list_tasks(
    tenant_view: ReadAccess,
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="Maximum items.")] = 20,
    cursor: Annotated[str | None, Field(max_length=64)] = None,
) -> Annotated[CallToolResult, RootModel[TaskList]]:
    """List research tasks with their status and progress, newest first. Use it to find the task_id
    of an earlier task instead of starting the same one again."""

    async def ask(count: int) -> TaskList:
        found = await tenant_view.research.tasks(
            tenant=tenant_view.tenant, limit=count + 1, before=cursor
        )
        shown = found[:count]
        return TaskList(tasks=shown, cursor=shown[-1].task_id if len(found) > count else None)

    return (await fitting(ask, limit)).result()


BEGIN = (
    define(create_task, "Begin a research task"),
    define(queue_searches, "Queue searches", repeatable=True, outside=True),
)
STEER = (
    define(stop_task, "Stop a task", repeatable=True),
    define(resume_task, "Resume a task", repeatable=True, outside=True),
    define(list_tasks, "List research tasks", reads=True),
)
