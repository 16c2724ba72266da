"""What a tool can reach: the app as its caller may see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Resolve

from penstock.desk import Desk
from penstock.mcp.errors import Refused
from penstock.mcp.stopping import Stopping
from penstock.model.access import Caller, KeyScope

if TYPE_CHECKING:
    from penstock.app import Penstock

T = TypeVar("T")


async def admit_all() -> None:
    """For who has no limit to what is queued."""


@dataclass(slots=True, frozen=True)
class Service:
    """What all calls share."""

    app: Penstock
    caller_of: Callable[[Any], Caller]
    """Who makes an HTTP request; on stdio there is none, and the caller is always the same."""
    stopping: Stopping
    admit: Callable[[], Awaitable[None]] = admit_all
    """Raises Refused where there is no room for more work."""
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    """Around every wait, for who counts them."""


class ToolDesk(Desk):
    def __init__(self, service: Service, caller: Caller) -> None:
        super().__init__(service.app, caller.tenant)
        self.caller = caller
        self._service = service

    async def admit(self) -> None:
        """Before anything is made: Refused where the queue is full."""
        await self._service.admit()

    async def unless_stopping(self, wait: Awaitable[T]) -> T | None:
        """What is waited for; None when the server is told to stop first."""
        with self._service.waiting():
            return await self._service.stopping.unless(wait)


def _desk(context: Context[Service, Any], scope: KeyScope) -> ToolDesk:
    asked = context.request_context
    caller = asked.lifespan_context.caller_of(asked.request)
    if (lacks := caller.lacks(scope)) is not None:
        raise Refused("forbidden", lacks)
    return ToolDesk(asked.lifespan_context, caller)


# Asynchronous, though they wait for nothing: others are run in a thread.


async def _reading(context: Context[Service, Any]) -> ToolDesk:
    return _desk(context, KeyScope.READ)


async def _writing(context: Context[Service, Any]) -> ToolDesk:
    return _desk(context, KeyScope.WRITE)


ReadDesk = Annotated[ToolDesk, Resolve(_reading)]
WriteDesk = Annotated[ToolDesk, Resolve(_writing)]
