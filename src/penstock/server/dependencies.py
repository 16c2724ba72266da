"""Shared by routes: the tenant view of an authorised caller, query parameters, and long polling."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Query, Request

from penstock.api.queue_depth import Depth
from penstock.api.tenant_view import TenantView
from penstock.model.access import Caller, KeyScope
from penstock.research.service import MAX_WAIT
from penstock.server.callers import check_parameters, check_still_allowed, known
from penstock.server.problems import Problem, busy

if TYPE_CHECKING:
    from penstock.app import Penstock


class CallerView(TenantView):
    """The app as a caller over HTTP sees it, and what the caller may do."""

    def __init__(self, app: Penstock, caller: Caller) -> None:
        super().__init__(app, caller.tenant)
        self.caller = caller

    @property
    def may_write(self) -> bool:
        return KeyScope.WRITE in self.caller.scopes

    @property
    def may_control(self) -> bool:
        """Whether the caller may control lanes and processes, which all tenants share."""
        return KeyScope.ADMIN in self.caller.scopes

    @property
    def signed_in(self) -> bool:
        return self.caller.key is not None


def _access(*scopes: KeyScope) -> Any:
    """Dependency: the view of a caller with these scopes, within the rate limit, of a request
    without parameters that the route does not have."""

    async def view(request: Request) -> CallerView:
        caller = await known(request)
        for scope in scopes:
            check_scope(caller, scope)
        check_parameters(request)
        return CallerView(request.app.state.penstock, caller)

    return Depends(view)


def check_scope(caller: Caller, scope: KeyScope) -> None:
    """Raise 403 unless the caller has the scope."""
    if (lacks := caller.lacks(scope)) is not None:
        raise Problem(403, "forbidden", lacks)


ToolAccess = Annotated[CallerView, _access()]
"""Access whose scope depends on what is asked for; the route checks it."""
ReadAccess = Annotated[CallerView, _access(KeyScope.READ)]
WriteAccess = Annotated[CallerView, _access(KeyScope.WRITE)]
AskAccess = Annotated[CallerView, _access(KeyScope.WRITE, KeyScope.READ)]
"""Access for routes that create something from stored data and return it."""
AdminAccess = Annotated[CallerView, _access(KeyScope.ADMIN)]


T = TypeVar("T")

Before = Annotated[str | None, Query(max_length=64, description="`next` of the previous page.")]
WaitForChange = Annotated[float, Query(ge=0, le=86400, description="Seconds to wait for a change.")]
Since = Annotated[
    int | None,
    Query(ge=0, le=2**62, description="Wait for a change after this `version`, not after now."),
]


async def poll_change(
    request: Request, wait: float, look: Callable[..., Coroutine[Any, Any, T]], since: int | None
) -> T:
    """Call `look`; with `wait`, return as soon as there is a change, or the state at the end of the
    wait."""
    found: T | None = None
    if wait:
        seconds = min(wait, request.app.state.config.wait_seconds, MAX_WAIT)
        found = await long_poll(request, look(wait=seconds, since=since))
    if found is None:  # nobody waits, or the server is told to stop
        found = await look()
    return found


async def long_poll(request: Request, waiting: Coroutine[Any, Any, T]) -> T | None:
    """Await a wait; None if the server is told to stop. Raises ClientDisconnect if the caller hangs
    up, which ends only waits, and 401 soon after the caller's key is revoked."""
    state = request.app.state
    with state.metrics.long_poll():
        found: T | None = await state.draining.unless(
            waiting,
            request.receive,
            lambda: check_still_allowed(request),
            state.config.heartbeat_seconds,
        )
    return found


FULL_SECONDS = 5.0
"""Retry-After for rejected callers."""


class Admission(Depth):
    """See `Depth`; rejects callers if there is no room."""

    async def check(self, tenant: str) -> None:
        """Raise a Problem (503) if the queue, or the tenant's share of it, is full. Counts one
        more."""
        if (why := await self.full(tenant)) is not None:
            raise busy("queue-full", why, FULL_SECONDS)
