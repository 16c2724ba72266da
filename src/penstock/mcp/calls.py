"""Calls of an app's tools over MCP: jobs that are waited for, and named where that takes long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

import anyio
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    CallToolResult,
    ContentBlock,
    ElicitRequest,
    ElicitRequestFormParams,
    TextContent,
)
from pydantic import TypeAdapter

from penstock.api.questions import answer_question, open_question
from penstock.api.tool_calls import ToolCalls
from penstock.errors import WaitTimeout
from penstock.mcp.call_progress import JobProgress
from penstock.mcp.errors import ToolFailure
from penstock.mcp.results import TASK
from penstock.mcp.tasks import TaskWork, WorkStatus
from penstock.mcp.tool_view import McpServices, ToolView
from penstock.mcp.waiting import MAX_WAIT
from penstock.model.job import Job, JobState
from penstock.model.question import ACCEPT, JobQuestion
from penstock.wire.calls import error_line

if TYPE_CHECKING:
    from penstock.engine.tools import AppTool

PENDING: dict[str, Any] = {
    "description": "Not finished yet.",
    "type": "object",
    "properties": {"call_id": {"type": "string"}, "next": {"type": "string"}},
    "required": ["call_id", "next"],
}
"""Schema of what a call returns that is not over: as much of it as a model needs."""
SOON_SECONDS = 0.5
"""A call that ends so soon needs no task."""
PROTOCOL_ERROR = "MCPError"
"""A tool that raises one is answered by an error of the protocol."""

_BLOCKS: TypeAdapter[list[ContentBlock]] = TypeAdapter(list[ContentBlock])


def calls_of(tenant_view: ToolView) -> ToolCalls:
    return ToolCalls(tenant_view, tenant_view.caller)


async def answered(
    tenant_view: ToolView, context: Context[McpServices, Any], job: Job, wait: float
) -> CallToolResult:
    """What a call returns after at most so many seconds: its result; or a task, for a client that
    takes tasks; or else how to go on."""
    patience = min(wait, SOON_SECONDS) if tenant_view.tasks else tenant_view.patience(wait)
    job = await _over(tenant_view, context, job, patience)
    if job.state.finished:
        if (broken := _protocol_error(job)) is not None:
            raise MCPError(broken["code"], broken["message"])
        return result_of(tenant_view.app.tools[job.kind], job)
    task = WORK.task_id(job.id) if tenant_view.tasks and wait > 0 else None
    return _pending(job, await open_question(tenant_view, job), task)


async def _over(
    tenant_view: ToolView, context: Context[McpServices, Any], job: Job, seconds: float
) -> Job:
    """The job once it has ended, or as it is after `seconds`, or when the server stops."""
    if job.state.finished or seconds <= 0:
        return job
    progress = JobProgress(context)

    async def end() -> None:
        if progress.wanted:
            with anyio.move_on_after(seconds):
                await progress.follow(tenant_view, job.id)
        else:
            with suppress(WaitTimeout):
                await tenant_view.wait(job.id, seconds)

    await tenant_view.unless_stopping(end())
    return await tenant_view.job(job.id)


def result_of(tool: AppTool, job: Job) -> CallToolResult:
    """The result of a finished call."""
    if job.state is JobState.COMPLETED:
        return _completed(tool, job.result)
    if job.state is JobState.CANCELLED:
        return ToolFailure("cancelled", f"the call of {tool.name} was cancelled").result()
    return ToolFailure("tool-failed", error_line(job)).result()


def _completed(tool: AppTool, result: Any) -> CallToolResult:
    if returns_result(tool):
        return CallToolResult.model_validate(result)
    if returns_content(tool):
        return CallToolResult(
            content=_BLOCKS.validate_python(result if isinstance(result, list) else [result])
        )
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=tool.structured(result)
    )


def returns_result(tool: AppTool) -> bool:
    """Whether a tool makes the result of the protocol itself."""
    return tool.returns is CallToolResult


def returns_content(tool: AppTool) -> bool:
    """Whether a tool returns blocks of content, such as a picture: one, or a list of them."""
    return _is_content(tool.returns)


def _is_content(annotation: Any) -> bool:
    inner = get_args(annotation)
    if get_origin(annotation) is list or isinstance(annotation, UnionType):
        return all(map(_is_content, inner))
    return isinstance(annotation, type) and issubclass(annotation, get_args(ContentBlock))


def _pending(job: Job, question: JobQuestion | None, task: str | None) -> CallToolResult:
    call = f'get_result(call_id="{job.id}", wait={MAX_WAIT:g})'
    far = f" ({job.progress:.0%}{f': {job.message}' if job.message else ''})" * (job.progress > 0)
    waits = f" It waits for {job.waiting_for}." * bool(job.waiting_for)
    if question is not None:
        waits = (
            f" It asks a person: {question.message!r}. Tell the user to answer on the dashboard, "
            f"at /jobs/{job.id}; do not answer for them."
        )
    said = (
        f"The call of {job.kind} is {job.state}{far} and goes on by itself.{waits} Do not make it "
        f"again: call {call} until the result is there."
    )
    told = {
        "call_id": job.id,
        "state": str(job.state),
        "progress": job.progress,
        "message": job.message,
        "next": call,
    }
    return CallToolResult(
        content=[TextContent(type="text", text=said)],
        structured_content=told,
        _meta=None if task is None else {TASK: task},
    )


def _protocol_error(job: Job) -> dict[str, Any] | None:
    """The protocol's error that a tool has raised."""
    if job.state is not JobState.FAILED or job.error is None:
        return None
    if job.error.get("type") != PROTOCOL_ERROR:
        return None
    return {"code": INTERNAL_ERROR, "message": str(job.error.get("message"))}


def _elicitation(question: JobQuestion) -> dict[str, Any]:
    """A question as a client is asked it."""
    form = ElicitRequestFormParams(message=question.message, requested_schema=question.schema)
    return ElicitRequest(params=form).model_dump(mode="json", by_alias=True, exclude_none=True)


class CallWork(TaskWork):
    """A call of an app's tool, as an MCP task."""

    kind = "call"

    async def standing(self, tenant_view: ToolView, name: str) -> WorkStatus:
        job = await calls_of(tenant_view).call(name)
        tool = tenant_view.app.tools[job.kind]
        changed = job.finished_at or job.started_at or job.enqueued_at
        said = job.message or job.waiting_for or str(job.state)
        if not job.state.finished:
            question = await open_question(tenant_view, job)
            if question is None:
                return WorkStatus("working", said, job.enqueued_at, changed)
            if not tenant_view.elicits:
                said = f"asks a person on the dashboard: {question.message}"
                return WorkStatus("working", said, job.enqueued_at, changed)
            asked = {question.id: _elicitation(question)}
            return WorkStatus(
                "input_required", question.message, job.enqueued_at, changed, asked=asked
            )
        engine = tenant_view.app.config.engine
        kept = job.state is not JobState.FAILED  # dead letters stay until they are discarded
        lasts = changed - job.enqueued_at + engine.retention_seconds if kept else None
        if job.state is JobState.CANCELLED:
            return WorkStatus("cancelled", said, job.enqueued_at, changed, lasts_seconds=lasts)
        if (error := _protocol_error(job)) is not None:
            return WorkStatus(
                "failed", said, job.enqueued_at, changed, lasts_seconds=lasts, error=error
            )
        result = result_of(tool, job)
        return WorkStatus(
            "completed", said, job.enqueued_at, changed, lasts_seconds=lasts, result=result
        )

    async def give(self, tenant_view: ToolView, name: str, answers: Mapping[str, Any]) -> None:
        job = await calls_of(tenant_view).call(name)
        question = await open_question(tenant_view, job)
        if question is None or question.id not in answers:
            return
        given = answers[question.id]
        accepted = isinstance(given, Mapping) and given.get("action") == ACCEPT
        content = (given.get("content") or {}) if accepted else None  # checked by who takes it
        await answer_question(tenant_view, job, question.id, content)

    async def cancel(self, tenant_view: ToolView, name: str) -> None:
        await calls_of(tenant_view).cancel(name)


WORK = CallWork()
