"""The tool that tells how a research task stands, and waits for news of it."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from penstock.mcp.answers import NOTICE, Answer, Cursor, Notice, Untrusted, more
from penstock.mcp.cutting import fitting
from penstock.mcp.desk import ReadDesk, Service, ToolDesk
from penstock.mcp.tools.define import define
from penstock.mcp.tools.tasks import Status, TaskId
from penstock.mcp.waiting import Wait, patience
from penstock.model.fence import fenced
from penstock.research.views import TaskView

MOST_LISTED = 50
FEW = 5
"""Items of the lists that are not the one asked for."""
ABSTRACT_SHOWN = 400
"""Characters of an abstract in the text; the structure has it whole."""
BEAT_SECONDS = 10.0
"""A client that wants to hear of progress is told this often that the wait goes on."""

Shown = Literal["results", "errors", "searches"]


class Work(BaseModel):
    title: str
    url: str
    authors: list[str]
    year: int | None
    doi: str | None
    arxiv_id: str | None
    abstract: str | None
    open_access_url: str | None
    providers: list[str] = Field(description="Who found it.")
    queries: list[str] = Field(description="Which queries found it.")
    page: Literal["read", "waiting", "failed", "none"] = Field(
        description="Whether its text was read: `read`, and get_page has it."
    )
    collection: str | None
    document: str | None = Field(description="What get_page takes, with `collection`.")
    untrusted: Untrusted = True


class Trouble(BaseModel):
    query: str
    provider: str | None
    url: str | None
    reason: str


class SearchLine(BaseModel):
    id: str
    number: int
    query: str
    state: Literal["queued", "running", "completed", "failed"]
    providers: list[str]
    found: int = Field(description="Results so far.")
    reason: str | None = Field(description="Why it failed, or what cut it short.")


class Budget(BaseModel):
    pages: int | None
    pages_used: int
    seconds: float | None
    seconds_left: float | None


class TaskState(Answer):
    task_id: str
    question: str
    status: Status
    progress: str = Field(description="Finished searches of all: `2/3`.")
    results: list[Work] = Field(description="What was found so far, each work once.")
    total_results: int
    errors: list[Trouble] = Field(description="What went wrong; the rest goes on.")
    total_errors: int
    searches: list[SearchLine]
    total_searches: int
    show: Shown = Field(description="The list that `cursor` goes through.")
    cursor: Cursor
    waiting_for: list[str] = Field(description="What its queued jobs wait for.")
    budget: Budget
    version: int = Field(description="Give it as `since` to be told of the next change.")
    next_poll: float | None = Field(
        description="Seconds that `wait` should be next; null: it is finished."
    )
    notice: Notice = NOTICE

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


def _search_line(search: SearchLine) -> str:
    line = f"- {search.number}. {search.query!r} {search.state}, {search.found} results"
    return f"{line}: {search.reason}" if search.reason else line


async def get_status(
    desk: ReadDesk,
    context: Context[Service, Any],
    task_id: TaskId,
    wait: Wait = 0,
    since: Annotated[
        int | None,
        Field(ge=0, description="`version` of the answer before: wait for what is newer."),
    ] = None,
    show: Annotated[
        Shown, Field(description="Which list to go through; of the others the first few are told.")
    ] = "results",
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED, description="Items of that list.")] = 20,
    cursor: Annotated[
        str | None,
        Field(pattern="^[0-9]{1,9}$", description="Of the answer before: what comes next."),
    ] = None,
) -> Annotated[CallToolResult, TaskState]:
    """Tell how a task stands: status, progress, what was found and what went wrong so far. With
    `wait` it answers as soon as anything changes, at once if the task is finished. To follow a
    task, call it with `wait` = 50 and `since` = the `version` of the answer before, until `status`
    is `completed`, `failed` or `paused`. Results come before the end: read them meanwhile with
    get_page. `failed` means that every search failed; `errors` says why. Results whose `page` is
    `read` have their text stored; the others have only what providers told. An error of one page
    or provider does not stop the rest."""
    start = int(cursor or 0)
    works = {"limit": limit, "cursor": cursor} if show == "results" else {"limit": FEW}
    view = await _news(desk, context, task_id, patience(wait), since, works)

    async def ask(count: int) -> TaskState:
        whole = view
        if show == "results" and count != limit:
            whole = await desk.task(task_id, limit=count, cursor=cursor)
        return _state(whole, show, start, count)

    return (await fitting(ask, limit)).result()


async def _news(
    desk: ToolDesk,
    context: Context[Service, Any],
    task_id: str,
    seconds: float,
    since: int | None,
    works: dict[str, Any],
) -> TaskView:
    """The task as soon as it has changed, and in any case after `seconds`; as it is when the server
    is told to stop."""
    meta = context.request_context.meta or {}
    if seconds == 0 or "progress_token" not in meta:
        waiting = desk.task(task_id, wait=seconds, since=since, **works)
        told = await desk.unless_stopping(waiting) if seconds else await waiting
        return told or await desk.task(task_id, **works)
    begun = time.monotonic()
    view = await desk.task(task_id, **works)
    seen = view.version if since is None else since
    while True:
        spent = time.monotonic() - begun
        done = view.version > seen or view.next_poll is None or spent >= seconds
        await context.report_progress(min(spent, seconds), seconds, _progress(view))
        if done:
            return view
        pause = min(BEAT_SECONDS, seconds - spent)
        told = await desk.unless_stopping(desk.task(task_id, wait=pause, since=seen, **works))
        if told is None:
            return await desk.task(task_id, **works)
        view = told


def _progress(view: TaskView) -> str:
    told = f"{view.progress} searches finished, {view.total_results} results"
    return f"{told}; waiting for {view.waiting_for[0]}" if view.waiting_for else told


def _state(view: TaskView, show: Shown, start: int, count: int) -> TaskState:
    told, end = view.as_dict(), start + count
    totals = {f"total_{name}": len(told[name]) for name in ("errors", "searches")}
    if show != "results":
        told["cursor"] = str(end) if end < len(told[show]) else None
    for name in ("errors", "searches"):
        told[name] = told[name][start:end] if name == show else told[name][:FEW]
    return TaskState.model_validate({**told, **totals, "show": show})


TOOLS = (define(get_status, "Follow a research task", reads=True),)
