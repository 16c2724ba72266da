"""Shared by routes: the tenant view of an authorised caller, query parameters, and long polling."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request

from penstock.api.tenant_view import TenantView
from penstock.model.access import Caller
from penstock.research.service import MAX_WAIT
from penstock.server.callers import Admin, PermitHolder, Reader, Writer, check_still_allowed


def _tenant_view(request: Request, caller: Caller) -> TenantView:
    return TenantView(request.app.state.penstock, caller.tenant)


# Asynchronous, though they wait for nothing: others are run in a thread.


async def _reading(request: Request, caller: Reader) -> TenantView:
    return _tenant_view(request, caller)


async def _writing(request: Request, caller: Writer) -> TenantView:
    return _tenant_view(request, caller)


async def _asking(request: Request, caller: PermitHolder) -> TenantView:
    return _tenant_view(request, caller)


async def _controlling(request: Request, caller: Admin) -> TenantView:
    return _tenant_view(request, caller)


ReadAccess = Annotated[TenantView, Depends(_reading)]
WriteAccess = Annotated[TenantView, Depends(_writing)]
AskAccess = Annotated[TenantView, Depends(_asking)]
AdminAccess = Annotated[TenantView, Depends(_controlling)]


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
