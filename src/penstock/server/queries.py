"""Query parameters shared by several routes, and long polling."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import Query, Request

from penstock.server.callers import check_still_allowed

T = TypeVar("T")

Before = Annotated[str | None, Query(max_length=64, description="`next` of the page before.")]
WaitForChange = Annotated[
    float, Query(ge=0, le=86400, description="Seconds; answers with the first change.")
]
Since = Annotated[
    int | None,
    Query(ge=0, le=2**62, description="A `version`: for a change after it, not after now."),
]


async def long_poll(request: Request, waiting: Coroutine[Any, Any, T]) -> T | None:
    """What is waited for; None when the server is told to stop. ClientDisconnect when the caller
    has hung up: only a wait ends with that. 401 soon after the caller's key is revoked."""
    state = request.app.state
    with state.metrics.long_poll():
        found: T | None = await state.draining.unless(
            waiting,
            request.receive,
            lambda: check_still_allowed(request),
            state.config.heartbeat_seconds,
        )
    return found
