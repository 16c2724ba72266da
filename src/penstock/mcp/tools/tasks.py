"""Tools for research tasks: create, search, stop, resume."""

from __future__ import annotations

from typing import Annotated, Literal

from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from penstock.mcp.limits import fitting
from penstock.mcp.results import Cursor, ToolResult, more
from penstock.mcp.tool_view import ReadDesk, WriteDesk
from penstock.mcp.tools.define import define
from penstock.mcp.tools.keys import Key, check_same, id_for
from penstock.model.job import PriorityName
from penstock.research.service import (
    MAX_QUERIES,
    MAX_RESULTS,
    MAX_SECONDS,
    QUERY_LIMIT,
    QUESTION_LIMIT,
    Mode,
)

MAX_LISTED = 100

TaskId = Annotated[
    str, Field(min_length=1, max_length=64, description="What create_task answered.")
]
Status = Literal["running", "completed", "failed", "paused"]


class TaskCreated(ToolResult):
    task_id: str = Field(description="Give it to every other tool of this task.")
    question: str = Field(description="As it is stored: personal data is masked.")
    status: Status
    budget_pages: int | None
    budget_seconds: float | None

    def in_words(self) -> str:
        return f"Task {self.task_id} is created. Give it searches with queue_searches."


class SearchesQueued(ToolResult):
    task_id: str
    queued: int
    skipped: int = Field(description="Queries that the task has already.")
    search_ids: list[str] = Field(description="Of those queued.")
    estimated_time: float = Field(description="Seconds until these are done, roughly.")

    def in_words(self) -> str:
        told = f"{self.queued} searches are queued, done in about {self.estimated_time:.0f} s."
        if self.skipped:
            told += f" {self.skipped} were skipped: the task has them already."
        return f'{told} Follow them with get_status(task_id="{self.task_id}", wait=50).'


class StopResult(ToolResult):
    task_id: str
    mode: Mode
    status: Status
    cancelled: int = Field(description="Jobs that will not run.")
    running: int = Field(description="Jobs that finish what they are at.")
    searches_done: int
    searches_left: int
    resumable: bool = Field(description="Whether resume_task has anything to go on with.")

    def in_words(self) -> str:
        told = (
            f"Task {self.task_id} is {self.status}: {self.searches_done} searches done, "
            f"{self.searches_left} left; {self.cancelled} jobs cancelled, {self.running} finishing."
        )
        return told + (" resume_task goes on with it." if self.resumable else "")


class TaskResumed(ToolResult):
    task_id: str
    status: Status
    queued: int = Field(description="Searches that go on.")

    def in_words(self) -> str:
        return f"Task {self.task_id} is {self.status}: {self.queued} searches go on."


class TaskLine(BaseModel):
    task_id: str
    question: str
    status: Status
    progress: str = Field(description="Finished searches of all: `2/3`.")
    created_at: float = Field(description="Seconds since 1970.")


class TaskList(ToolResult):
    tasks: list[TaskLine] = Field(description="The newest first.")
    cursor: Cursor

    def in_words(self) -> str:
        if not self.tasks:
            return "There are no research tasks yet. create_task begins one."
        lines = [f"{one.task_id} {one.status} {one.progress}: {one.question}" for one in self.tasks]
        return "\n".join(lines) + more(self.cursor)


async def create_task(
    desk: WriteDesk,
    question: Annotated[
        str,
        Field(
            min_length=1,
            max_length=QUESTION_LIMIT,
            description="What is to be found out, in a sentence or two.",
        ),
    ],
    budget_pages: Annotated[
        int | None,
        Field(ge=0, description="Pages it may read; 0: only what providers tell."),
    ] = None,
    budget_seconds: Annotated[
        float | None,
        Field(gt=0, le=MAX_SECONDS, description="For how long it may search."),
    ] = None,
    key: Key = None,
) -> Annotated[CallToolResult, TaskCreated]:
    """Begin a research task: a question whose searches, results and errors are kept together, also
    when this conversation ends. It does nothing by itself; call queue_searches next."""
    await desk.admit()
    task = await desk.research.create(
        question,
        budget_pages=budget_pages,
        budget_seconds=budget_seconds,
        tenant=desk.tenant,
        task_id=id_for(desk, "create_task", key),
    )
    budgets = (budget_pages, task.budget_pages), (budget_seconds, task.budget_seconds)
    await check_same(desk, key, question, task.question, *budgets)
    return TaskCreated(
        task_id=task.id,
        question=task.question,
        status="running",
        budget_pages=task.budget_pages,
        budget_seconds=task.budget_seconds,
    ).result()


async def queue_searches(
    desk: WriteDesk,
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
        PriorityName, Field(description="`high` goes before what others have queued.")
    ] = "medium",
    providers: Annotated[
        list[str] | None,
        Field(
            min_length=1,
            max_length=20,
            description="openalex, semantic_scholar, crossref, arxiv (papers), searxng (the web), "
            "documents (what is stored here), or others that are set up; without: the usual ones.",
        ),
    ] = None,
) -> Annotated[CallToolResult, SearchesQueued]:
    """Have a task search. It returns at once; the searches run on the server and read the pages
    they find. Follow them with get_status. More can be queued at any time, such as narrower queries
    once the first results are in. A query that the task has already is skipped."""
    await desk.admit()
    queued = await desk.research.queue_searches(
        task_id,
        queries,
        max_results=max_results_per_query,
        priority=priority,
        providers=providers,
        tenant=desk.tenant,
    )
    return SearchesQueued.model_validate(queued.as_dict()).result()


async def stop_task(
    desk: WriteDesk,
    task_id: TaskId,
    mode: Annotated[
        Mode,
        Field(
            description="`graceful`: searches that run finish. `immediate`: they are cancelled, "
            "and nothing more is stored."
        ),
    ] = "graceful",
) -> Annotated[CallToolResult, StopResult]:
    """Stop a task when its results are enough. It returns at once, and what was found stays. A
    stopped task takes no new searches until resume_task. One that is finished needs no stop."""
    stopped = await desk.research.stop(task_id, mode=mode, tenant=desk.tenant)
    return StopResult.model_validate(stopped.as_dict()).result()


async def resume_task(desk: WriteDesk, task_id: TaskId) -> Annotated[CallToolResult, TaskResumed]:
    """Go on with a stopped task: searches that were not finished run again, what was found stays.
    Harmless for a task that is not stopped."""
    await desk.admit()
    resumed = await desk.research.resume(task_id, tenant=desk.tenant)
    return TaskResumed.model_validate(resumed.as_dict()).result()


async def list_tasks(
    desk: ReadDesk,
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="How many to list.")] = 20,
    cursor: Annotated[str | None, Field(max_length=64)] = None,
) -> Annotated[CallToolResult, TaskList]:
    """List research tasks with their status and progress, the newest first. Use it to find the
    task_id of an earlier task instead of beginning the same one again."""

    async def ask(count: int) -> TaskList:
        found = await desk.research.tasks(tenant=desk.tenant, limit=count + 1, before=cursor)
        shown = found[:count]
        return TaskList(
            tasks=[TaskLine.model_validate(one.as_dict()) for one in shown],
            cursor=shown[-1].task_id if len(found) > count else None,
        )

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
