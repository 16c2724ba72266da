"""The Tasks extension of the protocol.

A client that supports tasks gets one instead of waiting for a tool's work, and polls its status.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import HEADER_MISMATCH, CallToolRequestParams, CallToolResult, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from penstock.errors import TaskNotFound
from penstock.mcp.errors import in_protocol
from penstock.mcp.results import TASK
from penstock.mcp.tool_view import TASKS, McpServices, ToolView, tenant_view_for
from penstock.mcp.work import TaskWork, WorkStatus
from penstock.model.access import KeyScope

MISSING = "there is no such task"
"""A missing task and another tenant's look the same."""

IntakeRequest = ServerRequestContext[McpServices, Any]
T = TypeVar("T")


class NamedTask(RequestParams):
    task_id: str = Field(max_length=2000)


class Update(NamedTask):
    input_responses: dict[str, Any]


class TasksExtension(Extension):
    """The extension on both transports, for clients of the protocol version that has it."""

    identifier = TASKS

    def __init__(self, work: Sequence[TaskWork]) -> None:
        self._work = {one.kind: one for one in work}

    def methods(self) -> Sequence[MethodBinding]:
        modern = frozenset(MODERN_PROTOCOL_VERSIONS)
        return [
            MethodBinding("tasks/get", NamedTask, self._get, modern),
            MethodBinding("tasks/update", Update, self._update, modern),
            MethodBinding("tasks/cancel", NamedTask, self._cancel, modern),
        ]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: IntakeRequest, call_next: CallNext
    ) -> HandlerResult:
        """Replace a result that names a task by that task. The work behind it is durable by now."""
        result = await call_next(ctx)
        if not isinstance(result, CallToolResult) or TASK not in (result.meta or {}):
            return result
        assert result.meta is not None
        task_id = str(result.meta[TASK])
        work, name = self._find(task_id)
        standing = await in_protocol(work.standing(tenant_view_for(ctx), name), MISSING)
        return {"resultType": "task", **_task(task_id, standing)}

    async def _get(self, ctx: IntakeRequest, params: NamedTask) -> HandlerResult:
        standing = await self._do(ctx, params, KeyScope.READ, lambda work: work.standing)
        return {**_task(params.task_id, standing), **_outcome(standing)}

    async def _update(self, ctx: IntakeRequest, params: Update) -> HandlerResult:
        given = params.input_responses
        await self._do(ctx, params, KeyScope.WRITE, lambda work: _giving(work, given))
        return {}

    async def _cancel(self, ctx: IntakeRequest, params: NamedTask) -> HandlerResult:
        await self._do(ctx, params, KeyScope.WRITE, lambda work: work.cancel)
        return {}

    async def _do(
        self,
        ctx: IntakeRequest,
        params: NamedTask,
        scope: KeyScope,
        what: Callable[[TaskWork], Callable[[ToolView, str], Awaitable[T]]],
    ) -> T:
        require_client_extension(ctx, TASKS)
        _check_header(ctx, params.task_id)

        async def do() -> T:
            work, name = self._find(params.task_id)
            return await what(work)(tenant_view_for(ctx, scope), name)

        return await in_protocol(do(), MISSING)

    def _find(self, task_id: str) -> tuple[TaskWork, str]:
        kind, _, name = task_id.partition(".")
        if kind not in self._work or not name:
            raise TaskNotFound(task_id)
        return self._work[kind], name


def _giving(work: TaskWork, given: dict[str, Any]) -> Callable[[ToolView, str], Awaitable[None]]:
    return lambda tenant_view, name: work.give(tenant_view, name, given)


def _check_header(ctx: IntakeRequest, task_id: str) -> None:
    """Check the header that names the task over HTTP, for proxies that route by it; the SDK checks
    only the core's methods."""
    headers = getattr(ctx.request, "headers", None)
    if headers is not None and decode_header_value(headers.get(MCP_NAME_HEADER)) != task_id:
        said = f"the header {MCP_NAME_HEADER} is to be the taskId of the request"
        raise MCPError(code=HEADER_MISMATCH, message=said)


def _task(task_id: str, standing: WorkStatus) -> dict[str, Any]:
    lasts = standing.lasts_seconds
    return {
        "taskId": task_id,
        "status": standing.status,
        "statusMessage": standing.said,
        "createdAt": _moment(standing.created_at),
        "lastUpdatedAt": _moment(standing.changed_at),
        "ttlMs": None if lasts is None else round(lasts * 1000),
        "pollIntervalMs": round(standing.poll_seconds * 1000),
    }


def _outcome(standing: WorkStatus) -> dict[str, Any]:
    if standing.result is not None:
        return {"result": standing.result.model_dump(mode="json", by_alias=True, exclude_none=True)}
    if standing.error is not None:
        return {"error": dict(standing.error)}
    return {"inputRequests": dict(standing.asked)} if standing.asked else {}


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
