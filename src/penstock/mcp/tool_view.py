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
from penstock.mcp.waiting import MAX_WAIT, Stopping
from penstock.model.access import Caller, KeyScope
from penstock.model.ids import child_id

if TYPE_CHECKING:
    from penstock.app import Penstock


T = TypeVar("T")

TASKS = "io.modelcontextprotocol/tasks"
"""The extension whose clients take tasks."""


async def admit_all(tenant: str) -> None:
    """For who has no limit to what is queued."""


@dataclass(slots=True, frozen=True)
class McpServices:
    """Dependencies shared by all calls."""

    app: Penstock
    caller_of: Callable[[Any], Caller]
    """Who makes an HTTP request; on stdio there is none, and the caller is always the same."""
    stopping: Stopping
    admit: Callable[[str], Awaitable[None]] = admit_all
    """Raises Refused where there is no room for more work of a tenant."""
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    """Around every wait, for who counts them."""


class ToolView(TenantView):
    def __init__(self, service: McpServices, caller: Caller, *, tasks: bool) -> None:
        super().__init__(service.app, caller.tenant)
        self.caller = caller
        self.tasks = tasks
        """Whether the client takes an MCP task for what is not done yet, and asks by itself."""
        self._service = service

    async def admit(self) -> None:
        """Before anything is made: Refused where the queue is full."""
        await self._service.admit(self.tenant)

    async def unless_stopping(self, wait: Awaitable[T]) -> T | None:
        """What is waited for; None when the server is told to stop first."""
        with self._service.waiting():
            return await self._service.stopping.unless(wait)

    def patience(self, asked: float) -> float:
        """How long a tool waits. Not at all, where the client takes a task instead."""
        return 0.0 if self.tasks else min(asked, MAX_WAIT)


def tenant_view_for(asked: ServerRequestContext[McpServices, Any], *scopes: KeyScope) -> ToolView:
    """Refused where the caller lacks one of the scopes; without any they were asked for before."""
    caller = asked.lifespan_context.caller_of(asked.request)
    for scope in scopes:
        if (lacks := caller.lacks(scope)) is not None:
            raise CallRefused("forbidden", lacks)
    return ToolView(asked.lifespan_context, caller, tasks=takes_tasks(asked))


def takes_tasks(asked: ServerRequestContext[McpServices, Any]) -> bool:
    """The extension is one of the new era; there each request tells what its client can do."""
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
"""Has something made of what is stored, and is told it."""


Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=255,
        description="A name of your own for this call: repeated with it, it makes nothing new.",
    ),
]


def id_for(tenant_view: ToolView, tool: str, key: str | None) -> str | None:
    """The id of what a tool makes for a key; None: a new one."""
    return None if key is None else child_id(f"{tenant_view.tenant}\x1fmcp {tool}", "once", key, 1)


async def check_same(
    tenant_view: ToolView, key: str | None, question: str, stored: str, *others: tuple[Any, Any]
) -> None:
    """Refused where the key has made something else before, however long ago. What is stored is
    masked. `others`: what else was asked for, and is stored."""
    if key is None:
        return
    (masked,) = await tenant_view.documents.mask([" ".join(question.split())])
    if masked != stored:
        raise CallRefused("key-reused", "this key was used for another question; take a new one")
    if any(asked != kept for asked, kept in others):
        raise CallRefused("key-reused", "this key was used with other arguments; take a new one")
