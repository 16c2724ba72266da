"""The Tasks extension of the protocol.

A client that supports tasks gets one instead of waiting for a tool's work, and polls its status.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import HEADER_MISMATCH, CallToolRequestParams, CallToolResult, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from penstock.errors import TaskNotFound
from penstock.mcp.errors import CallRefused, in_protocol
from penstock.mcp.results import TASK
from penstock.mcp.tool_view import TASKS, McpServices, ToolView, tenant_view_for
from penstock.model.access import KeyScope

SOON_SECONDS = 1.0
LATER_SECONDS = 5.0
"""Poll intervals: for work that takes seconds, and for work that takes minutes."""


@dataclass(slots=True, frozen=True)
class WorkStatus:
    """The status of such work."""

    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    said: str
    created_at: float
    changed_at: float
    poll_seconds: float = SOON_SECONDS
    lasts_seconds: float | None = None
    """How long it is kept after `created_at`; None: until it is deleted."""
    result: CallToolResult | None = None
    """Result of completed work: what the tool would have returned."""
    error: Mapping[str, Any] | None = None
    """Protocol error of failed work, as JSON-RPC. Tools report their errors as results."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Questions that the client has to answer, by key."""


class TaskWork(ABC):
    """One kind of work. `name` is the part of a task's id after the kind; if the tenant has nothing
    of that name, the service's own error is raised."""

    kind: str
    tools: tuple[str, ...] = ()
    """The tools that begin such work: a key that may call none of them does not see it."""
    ended_by: tuple[str, ...] = ()
    """The tools that end it, if others do: a key that may call none of them cannot cancel it."""

    def task_id(self, name: str) -> str:
        return f"{self.kind}.{name}"

    @abstractmethod
    async def standing(self, tenant_view: ToolView, name: str) -> WorkStatus: ...

    @abstractmethod
    async def cancel(self, tenant_view: ToolView, name: str) -> None:
        """Cancel the work; no effect if it is finished."""

    async def give(self, tenant_view: ToolView, name: str, answers: Mapping[str, Any]) -> None:
        """Accept the client's answers. Unknown keys are ignored; work that never asks ignores
        everything."""
        await self.standing(tenant_view, name)


async def changed_at(tenant_view: ToolView, log: str, version: int, created_at: float) -> float:
    """Return when a log last changed."""
    newest = await tenant_view.changes(log, version - 1, 1) if version > 0 else []
    return newest[0].at if newest else created_at


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
            tenant_view = tenant_view_for(ctx, scope)
            may_call = tenant_view.caller.may_call
            if work.tools and not any(map(may_call, work.tools)):
                raise TaskNotFound(params.task_id)
            method = what(work)
            if method == work.cancel and work.ended_by and not any(map(may_call, work.ended_by)):
                raise CallRefused("forbidden", str(tenant_view.caller.confined()))
            return await method(tenant_view, name)

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
