"""Tools that wait: their time limit, progress notifications, and the end of waits at a stop."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import anyio
from pydantic import Field

if TYPE_CHECKING:  # the server needs `Stopping`, whether or not the extra is installed
    from mcp.server.mcpserver import Context

    from penstock.mcp.tool_view import McpServices

MAX_ASKED = 300
MAX_WAIT = 50.0
"""Clients give a call up after 60 s, some of them."""

Wait = Annotated[
    float,
    Field(
        ge=0,
        le=MAX_ASKED,
        description=f"Seconds to wait; it answers after {MAX_WAIT:g} at the latest.",
    ),
]


BEAT_SECONDS = 10.0
"""How often it is told that a wait goes on, and looked whether it has to, when nothing happens."""
PACE_SECONDS = 0.25
"""At least this long between two of them, whatever happens."""

T = TypeVar("T")


class CallProgress:
    """Of one call that waits up to `seconds`: how much of that has gone, and what happened last."""

    def __init__(self, context: Context[McpServices, Any], seconds: float) -> None:
        self._wanted = "progress_token" in (context.request_context.meta or {})
        self._context = context
        self._seconds = seconds
        self._begun = time.monotonic()
        self._told = float("-inf")

    @property
    def left(self) -> float:
        return max(0.0, self._seconds - (time.monotonic() - self._begun))

    @property
    def pause(self) -> float:
        """How long to wait for news at a time."""
        return min(BEAT_SECONDS, self.left)

    async def tell(self, message: str | None) -> None:
        """Waits where it comes too soon after the last one: what happens meanwhile is told
        together, and nothing is left out."""
        if not self._wanted:
            return
        await anyio.sleep(max(0.0, self._told + PACE_SECONDS - time.monotonic()))
        self._told = time.monotonic()
        await self._context.report_progress(self._seconds - self.left, self._seconds, message)


class Stopping:
    """Set once. Waits run in their caller's own task, so that a call that is cancelled leaves
    nothing behind."""

    def __init__(self) -> None:
        self.begun = False
        self._waits: set[anyio.CancelScope] = set()

    def begin(self) -> None:
        self.begun = True
        for wait in self._waits:
            wait.cancel()

    async def unless(self, work: Awaitable[T]) -> T | None:
        """What `work` gives; None when the stop comes before that, and `work` is then cancelled:
        only waits go in here."""
        with anyio.CancelScope() as wait:
            self._waits.add(wait)
            try:
                if self.begun:
                    wait.cancel()
                return await work
            finally:
                self._waits.discard(wait)
        return None
