"""A tool's view of the app, as its caller may see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Resolve
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from penstock.api.tenant_view import TenantView
from penstock.mcp.errors import CallRefused
from penstock.mcp.waiting import MAX_WAIT, Stopping
from penstock.model.access import Caller, KeyScope

if TYPE_CHECKING:
    from penstock.app import Penstock

T = TypeVar("T")

TASKS = "io.modelcontextprotocol/tasks"
"""Name of the extension for tasks."""


async def admit_all(tenant: str) -> None:
    """Admit everything: there is no limit on queued work."""


@dataclass(slots=True, frozen=True)
class McpServices:
    """Dependencies shared by all calls."""

    app: Penstock
    caller_of: Callable[[Any], Caller]
    """Returns the caller of an HTTP request; on stdio there is none, and the caller is always the
    same."""
    stopping: Stopping
    admit: Callable[[str], Awaitable[None]] = admit_all
    """Raises CallRefused if a tenant has no room for more work."""
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    """Context manager around every wait, to count them."""


class ToolView(TenantView):
    def __init__(self, service: McpServices, caller: Caller, *, tasks: bool) -> None:
        super().__init__(service.app, caller.tenant)
        self.caller = caller
        self.tasks = tasks
        """Whether the client accepts an MCP task for unfinished work, and polls it."""
        self._service = service

    async def admit(self) -> None:
        """Raise CallRefused if the queue is full; call it before anything is created."""
        await self._service.admit(self.tenant)

    async def unless_stopping(self, wait: Awaitable[T]) -> T | None:
        """Await `wait`; None if the server is told to stop first."""
        with self._service.waiting():
            return await self._service.stopping.unless(wait)

    def patience(self, asked: float) -> float:
        """How long a tool waits: not at all if the client accepts a task instead."""
        return 0.0 if self.tasks else min(asked, MAX_WAIT)


def tenant_view_for(asked: ServerRequestContext[McpServices, Any], *scopes: KeyScope) -> ToolView:
    """Return the caller's view; raises CallRefused if the caller lacks one of the scopes. Without
    any, they were checked before."""
    caller = asked.lifespan_context.caller_of(asked.request)
    for scope in scopes:
        if (lacks := caller.lacks(scope)) is not None:
            raise CallRefused("forbidden", lacks)
    return ToolView(asked.lifespan_context, caller, tasks=takes_tasks(asked))


def takes_tasks(asked: ServerRequestContext[McpServices, Any]) -> bool:
    """Whether the client accepts tasks. Only the new protocol version has them, and there each
    request lists the client's capabilities."""
    if asked.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    declared = asked.session.client_capabilities
    return declared is not None and TASKS in (declared.extensions or {})


# Asynchronous, though they wait for nothing: others are run in a thread.


async def _reading(context: Context[McpServices, Any]) -> ToolView:
    return tenant_view_for(context.request_context, KeyScope.READ)


async def _writing(context: Context[McpServices, Any]) -> ToolView:
    return tenant_view_for(context.request_context, KeyScope.WRITE)


async def _asking(context: Context[McpServices, Any]) -> ToolView:
    return tenant_view_for(context.request_context, KeyScope.WRITE, KeyScope.READ)


ReadAccess = Annotated[ToolView, Resolve(_reading)]
WriteAccess = Annotated[ToolView, Resolve(_writing)]
AskAccess = Annotated[ToolView, Resolve(_asking)]
"""Access for tools that create something from stored data and return it."""
