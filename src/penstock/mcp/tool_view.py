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
from pydantic import Field

from penstock.api.tenant_view import TenantView
from penstock.mcp.errors import CallRefused
from penstock.mcp.waiting import Stopping
from penstock.model.access import Caller, KeyScope
from penstock.model.ids import child_id

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
    def __init__(
        self, service: McpServices, caller: Caller, *, tasks: bool, elicits: bool = False
    ) -> None:
        super().__init__(service.app, caller.tenant)
        self.caller = caller
        self.tasks = tasks
        """Whether the client accepts an MCP task for unfinished work, and polls it."""
        self.elicits = elicits
        """Whether the client can ask its user."""
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
        return 0.0 if self.tasks else min(asked, self.app.config.server.mcp_wait_seconds)


def tenant_view_for(asked: ServerRequestContext[McpServices, Any], *scopes: KeyScope) -> ToolView:
    """Return the caller's view; raises CallRefused if the caller lacks one of the scopes. Without
    any, they were checked before."""
    caller = asked.lifespan_context.caller_of(asked.request)
    for scope in scopes:
        if (lacks := caller.lacks(scope)) is not None:
            raise CallRefused("forbidden", lacks)
    declared = asked.session.client_capabilities
    elicits = declared is not None and declared.elicitation is not None
    return ToolView(asked.lifespan_context, caller, tasks=takes_tasks(asked), elicits=elicits)


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


Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=255,
        description="Idempotency key: repeating the call with it creates nothing new.",
    ),
]


def id_for(tenant_view: ToolView, tool: str, key: str | None) -> str | None:
    """Derive the id of what a tool creates from a key; None: a new id."""
    return None if key is None else child_id(f"{tenant_view.tenant}\x1fmcp {tool}", "once", key, 1)


async def check_same(
    tenant_view: ToolView, key: str | None, question: str, stored: str, *others: tuple[Any, Any]
) -> None:
    """Raise CallRefused if the key was used for something else, however long ago. Stored texts are
    masked. `others`: further arguments that are stored."""
    if key is None:
        return
    (masked,) = await tenant_view.documents.mask([" ".join(question.split())])
    if masked != stored:
        raise CallRefused("key-reused", "this key was used for another question; take a new one")
    if any(asked != kept for asked, kept in others):
        raise CallRefused("key-reused", "this key was used with other arguments; take a new one")
