"""The tool that returns the status of a research task, and can wait for changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field, RootModel

from penstock.errors import TaskNotFound
from penstock.mcp.results import Quoting, fitting, more
from penstock.mcp.tasks import LATER_SECONDS, TaskWork, WorkStatus, changed_at
from penstock.mcp.tool_view import McpServices, ReadAccess, ToolView
from penstock.mcp.tools.define import define
from penstock.mcp.tools.tasks import TaskId
from penstock.mcp.waiting import MAX_WAIT, CallProgress, Wait
from penstock.model.research import SearchState, TaskStatus
from penstock.research.job_ids import log_of
from penstock.text.untrusted import fenced
from penstock.wire.tasks import SearchView, TaskView, Trouble, Work
from penstock.wire.view import made

MAX_LISTED = 50
LISTED = 20
FEW = 5
"""Items of the lists that were not requested."""
ABSTRACT_SHOWN = 400
"""Maximum characters of an abstract in the text; the structure has all of it."""

Shown = Literal["results", "errors", "searches"]


@dataclass(slots=True, frozen=True)
class TaskState(TaskView, Quoting):
    total_errors: int
    total_searches: int
    show: Shown
    """The list that `cursor` pages through."""

    def in_words(self) -> str:
        told = (
            f"{self.status}, {self.progress} searches finished, {self.total_results} results, "
            f"{self.total_errors} errors."
        )
        if self.waiting_for:
            told += f" Waiting for: {'; '.join(self.waiting_for)}."
        if self.next_poll is not None:
            told += f" For news call get_status with since={self.version}, wait={self.next_poll:g}."
        lines = {
            "results": [_result_line(work) for work in self.results],
            "errors": [_error_line(error) for error in self.errors],
            "searches": [_search_line(search) for search in self.searches],
        }
        for name in dict.fromkeys((self.show, "errors")):
            if lines[name]:
                total = getattr(self, f"total_{name}")
                source = f"task {self.task_id}: {len(lines[name])} of {total} {name}"
                told += "\n" + fenced("\n".join(lines[name]), source)
        return told + more(self.cursor)


def _result_line(work: Work) -> str:
    line = f"- {work.title}" + (f" ({work.year})" if work.year else "") + f" {work.url}"
    if work.page == "read":
        line += f" [read: get_page document={work.document!r} collection={work.collection!r}]"
    elif work.page != "none":
        line += f" [page {work.page}]"
    if work.abstract and work.page != "read":  # else the page itself is there
        short = work.abstract[:ABSTRACT_SHOWN]
        line += f"\n  {short}..." if short != work.abstract else f"\n  {short}"
    return line


def _error_line(error: Trouble) -> str:
    where = error.url or error.provider or "search"
    return f"- {where}, query {error.query!r}: {error.reason}"


def _search_line(search: SearchView) -> str:
    line = f"- {search.number}. {search.query!r} {search.state}, {search.found} results"
    return f"{line}: {search.reason}" if search.reason else line


async def get_status(
    tenant_view: ReadAccess,
    context: Context[McpServices, Any],
    task_id: TaskId,
    wait: Wait = 0,
    since: Annotated[
        int | None, Field(ge=0, description="Previous `version`: wait for a newer one.")
    ] = None,
    until: Annotated[
        Literal["news", "end"], Field(description="Any change, or the end of the current searches.")
    ] = "news",
    show: Annotated[
        Shown, Field(description="List to page through; the others are shortened.")
    ] = "results",
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="Maximum items.")] = LISTED,
    cursor: Annotated[
        str | None,
        Field(pattern="^[0-9]{1,9}$", description="From the previous result: the next page."),
    ] = None,
) -> Annotated[CallToolResult, RootModel[TaskState]]:
    """Return the status of a task: progress, results and errors so far. To follow it, call with
    `wait` = 50 and `since` = the previous `version`, until `status` is `completed`, `failed` or
    `paused`; with `until` = `end` it returns only once the searches are finished. Results whose
    `page` is `read` can be read with get_page in the meantime; for the others there is only what
    providers returned. An error of one page or provider does not stop the rest."""
    works = {"limit": limit, "cursor": cursor} if show == "results" else {"limit": FEW}
    if until == "end":
        view = await _end(tenant_view, context, task_id, tenant_view.patience(wait), works)
        if tenant_view.tasks and wait > 0 and not _over(view, len(view.searches)):
            name = SearchWork.name_of(task_id, len(view.searches))
            return await _told(tenant_view, view, show, limit, cursor, SEARCHES.task_id(name))
    else:
        view = await _news(tenant_view, context, task_id, min(wait, MAX_WAIT), since, works)
    return await _told(tenant_view, view, show, limit, cursor)


async def _told(
    tenant_view: ToolView,
    view: TaskView,
    show: Shown = "results",
    limit: int = LISTED,
    cursor: str | None = None,
    task: str | None = None,
) -> CallToolResult:
    async def ask(count: int) -> TaskState:
        whole = view
        if show == "results" and count != limit:
            whole = await tenant_view.task(view.task_id, limit=count, cursor=cursor)
        return _state(whole, show, int(cursor or 0), count)

    return (await fitting(ask, limit)).result(task)


async def _news(
    tenant_view: ToolView,
    context: Context[McpServices, Any],
    task_id: str,
    seconds: float,
    since: int | None,
    works: dict[str, Any],
) -> TaskView:
    """Wait for a change of the task, for `seconds`, or until the server is told to stop; returns it
    as it is then."""
    view, progress = await tenant_view.task(task_id, **works), CallProgress(context, seconds)
    seen = view.version if since is None else since
    while True:
        if seconds:
            await progress.tell(_progress(view))
        if view.version > seen or view.next_poll is None or not progress.left:
            return view
        waiting = tenant_view.task(task_id, wait=progress.pause, since=seen, **works)
        told = await tenant_view.unless_stopping(waiting)
        if told is None:
            return await tenant_view.task(task_id, **works)
        view = told


async def _end(
    tenant_view: ToolView,
    context: Context[McpServices, Any],
    task_id: str,
    seconds: float,
    works: dict[str, Any],
) -> TaskView:
    """Wait until the current searches of the task have ended, for `seconds`, or until the server is
    told to stop; returns it as it is then."""
    view, progress = await tenant_view.task(task_id, **works), CallProgress(context, seconds)
    count = len(view.searches)
    while not _over(view, count) and progress.left:
        await progress.tell(_progress(view))
        waiting = tenant_view.task(task_id, wait=progress.pause, since=view.version, **works)
        told = await tenant_view.unless_stopping(waiting)
        if told is None:
            return await tenant_view.task(task_id, **works)
        view = told
    return view


def _over(view: TaskView, count: int) -> bool:
    """Whether the first `count` searches have ended, unless a stop is resumed."""
    ended = (SearchState.COMPLETED, SearchState.FAILED)
    first = [one for one in view.searches if one.number <= count]
    return view.status is TaskStatus.PAUSED or all(one.state in ended for one in first)


def _progress(view: TaskView) -> str:
    told = f"{view.progress} searches finished, {view.total_results} results"
    return f"{told}; waiting for {view.waiting_for[0]}" if view.waiting_for else told


def _state(view: TaskView, show: Shown, start: int, count: int) -> TaskState:
    end = start + count
    lists = {"errors": view.errors, "searches": view.searches}
    shown: dict[str, Any] = {f"total_{name}": len(some) for name, some in lists.items()}
    for name, some in lists.items():
        shown[name] = some[start:end] if name == show else some[:FEW]
        if name == show:
            shown["cursor"] = str(end) if end < len(some) else None
    return made(TaskState, view, show=show, **shown)


class SearchWork(TaskWork):
    """The searches that a research task had when the wait began, as an MCP task. Later searches do
    not count, so that a finished task stays finished."""

    kind = "research"
    tools = ("get_status",)
    ended_by = ("stop_task",)

    @staticmethod
    def name_of(task_id: str, searches: int) -> str:
        return f"{task_id}.{searches}"

    async def standing(self, tenant_view: ToolView, name: str) -> WorkStatus:
        task_id, count = _parts(name)
        view = await tenant_view.task(task_id, limit=LISTED)
        over = _over(view, count)
        return WorkStatus(
            "completed" if over else "working",
            _progress(view),
            view.created_at,
            await changed_at(tenant_view, log_of(task_id), view.version, view.created_at),
            LATER_SECONDS,
            result=await _told(tenant_view, view) if over else None,
        )

    async def cancel(self, tenant_view: ToolView, name: str) -> None:
        """Stop the research task: results stay, and it can be resumed."""
        await tenant_view.research.stop(_parts(name)[0], tenant=tenant_view.tenant)


def _parts(name: str) -> tuple[str, int]:
    task_id, _, count = name.rpartition(".")
    if not (task_id and count.isascii() and count.isdigit() and len(count) < 9):
        raise TaskNotFound(name)
    return task_id, int(count)


SEARCHES = SearchWork()
TOOLS = (define(get_status, "Follow a research task", reads=True),)
