"""The tools that the conformance suite of MCP asks for by name, on the real queue and by way of the
real server. Those that any app could have are tools of this app (`@app.tool`).

The rest test the protocol itself: they ask the client before anything is stored, refuse clients
without tasks, or ask while they run. Those are jobs, too: what one asks its client, and what it is
answered, is in its log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.server import require_client_extension
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    TextContent,
)

import penstock.mcp.server
from penstock import Penstock
from penstock.engine.context import JobContext
from penstock.mcp.results import TASK
from penstock.mcp.tasks import TaskWork, WorkStatus
from penstock.mcp.tool_view import (
    TASKS,
    McpServices,
    ReadAccess,
    ToolView,
    WriteAccess,
    tenant_view_for,
)
from penstock.model.access import KeyScope
from penstock.model.ids import new_id
from penstock.model.job import Job, JobState
from tests.support.mcp_fixture_tools import NAME, PICTURE, RESOURCE, SOUND, WORDS, question
from tests.support.mcp_fixture_tools import TOOLS as PLAIN

MAX_WAIT = 60.0

app = Penstock()


# Jobs


@app.tool(timeout=120)
async def slow_compute(seconds: float = 1, label: str = "") -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return f"computed for {seconds:g} s"


@app.tool(max_retries=0)
async def protocol_error_job() -> None:
    """Break, not at once: what is over at once is no task."""
    await asyncio.sleep(1)
    raise MCPError(INTERNAL_ERROR, "the protocol broke")


@app.tool
async def test_tool_with_progress(ctx: JobContext) -> str:
    """Tell how far it is."""
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        await ctx.progress(part, f"{part:.0%}")
        await asyncio.sleep(1.1)  # who follows a job looks once a second
    return "done"


@app.tool
def test_simple_text() -> TextContent:
    """Show a text."""
    return WORDS


@app.tool
def test_image_content() -> ImageContent:
    """Show a picture."""
    return PICTURE


@app.tool
def test_audio_content() -> AudioContent:
    """Play a sound."""
    return SOUND


@app.tool
def test_embedded_resource() -> EmbeddedResource:
    """Show a resource."""
    return RESOURCE


@app.tool
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Show several things."""
    return [WORDS, PICTURE, RESOURCE]


@app.tool
def test_error_handling() -> CallToolResult:
    """Say that it has failed."""
    return CallToolResult(content=[WORDS], is_error=True)


@app.job("fixture.failing")
async def failing(ctx: JobContext) -> dict[str, Any]:
    return {"text": "this tool always fails", "error": True}


@app.job("fixture.asking", timeout=120)
async def asking(ctx: JobContext, asked: dict[str, str]) -> dict[str, Any]:
    """Ask the client, and go on when everything is answered."""
    log = ctx.job.log
    assert log is not None
    told = await app.changes(log, tenant=ctx.tenant)
    if not any(one.what == "asked" for one in told):  # in an earlier run
        await app.queue.note(ctx.tenant, log, "asked", {key: _form(asked[key]) for key in asked})
    given: dict[str, Any] = {}
    since = 0
    while not asked.keys() <= given.keys():
        async with ctx.parked():
            told = await app.changes(log, since, tenant=ctx.tenant, wait=MAX_WAIT)
        for one in told:
            since = one.version
            given |= one.data if one.what == "given" else {}
    return {"text": f"{len(given)} answers: {given}"}


def _form(message: str) -> dict[str, Any]:
    return question(message, "name").model_dump(mode="json", by_alias=True, exclude_none=True)


# Jobs as MCP tasks


class JobWork(TaskWork):
    kind = "job"

    async def standing(self, tenant_view: ToolView, name: str) -> WorkStatus:
        job = await tenant_view.job(name)
        asked = await _unanswered(tenant_view, job)
        lasts = tenant_view.app.config.engine.retention_seconds
        said: dict[str, Any] = {}
        match job.state:
            case JobState.COMPLETED:
                status, said = "completed", {"result": _result(job)}
            case JobState.CANCELLED:
                status = "cancelled"
            case _ if asked:
                status, said = "input_required", {"asked": asked}
            case _:
                status = "working"
        changed = job.finished_at or job.started_at or job.enqueued_at
        return WorkStatus(
            status,  # type: ignore[arg-type]
            job.state,
            job.enqueued_at,
            changed,
            lasts_seconds=lasts,
            **said,
        )

    async def cancel(self, tenant_view: ToolView, name: str) -> None:
        await tenant_view.cancel(name)

    async def give(self, tenant_view: ToolView, name: str, answers: Mapping[str, Any]) -> None:
        job = await tenant_view.job(name)
        open_ones = await _unanswered(tenant_view, job)
        if known := {key: answers[key] for key in answers if key in open_ones}:
            await tenant_view.app.queue.note(tenant_view.tenant, str(job.log), "given", known)


async def _unanswered(tenant_view: ToolView, job: Job) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    for one in await tenant_view.changes(str(job.log), 0, 1000):
        if one.what == "asked":
            asked |= one.data
        elif one.what == "given":
            asked = {key: asked[key] for key in asked if key not in one.data}
    return asked


def _result(job: Job) -> CallToolResult:
    told = job.result or {}
    return _text(str(told["text"]), is_error="error" in told)


def _text(text: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], **more)


async def _run(tenant_view: ToolView, kind: str, **payload: Any) -> CallToolResult:
    """A job of that kind: as a task, or waited for."""
    job = await tenant_view.enqueue(kind, payload, log=f"fixture:{new_id()}")
    if tenant_view.tasks:
        return _text("", _meta={TASK: WORK.task_id(job.id)})
    return _result(await tenant_view.wait(job.id, MAX_WAIT))


# Tools

Call = Context[McpServices, Any]


async def greet(tenant_view: ReadAccess, name: str = "World") -> CallToolResult:
    """Greet, and never as a task."""
    return _text(f"Hello, {name}!")


async def failing_job(tenant_view: WriteAccess, context: Call) -> CallToolResult:
    """Fail; only as a task."""
    require_client_extension(context.request_context, TASKS)
    return await _run(tenant_view, "fixture.failing")


async def confirm_delete(tenant_view: WriteAccess, filename: str) -> CallToolResult:
    """Ask before it deletes, which it does not."""
    return await _run(tenant_view, "fixture.asking", asked={"confirm": f"Delete {filename}?"})


async def multi_input(tenant_view: WriteAccess) -> CallToolResult:
    """Ask two things."""
    return await _run(
        tenant_view, "fixture.asking", asked={"first": "Your name?", "second": "Sure?"}
    )


async def test_tool_with_task(context: Call) -> CallToolResult | InputRequiredResult:
    """Ask before the task is made."""
    require_client_extension(context.request_context, TASKS)
    tenant_view = tenant_view_for(context.request_context, KeyScope.WRITE)
    given = context.input_responses or {}
    if "user_name" not in given:
        return InputRequiredResult(input_requests=dict(NAME))
    return await _run(tenant_view, "fixture.greeting", given=str(given["user_name"]))


@app.job("fixture.greeting")
async def greeting(ctx: JobContext, given: str) -> dict[str, Any]:
    return {"text": f"Hello, {given}"}


WORK = JobWork()
TOOLS = (
    greet,
    failing_job,
    confirm_delete,
    multi_input,
    test_tool_with_task,
)


class Fixtures(penstock.mcp.server.PenstockMCP):
    def __init__(self, service: McpServices, families: Collection[str] | None = None) -> None:
        tools = [Tool.from_function(one, structured_output=False) for one in TOOLS]
        super().__init__(service, [*PLAIN, *tools], [WORK], families)


# The server makes its MCP server by this name when the first request comes.
setattr(penstock.mcp.server, "PenstockMCP", Fixtures)  # noqa: B010
