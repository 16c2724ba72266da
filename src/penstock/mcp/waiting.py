"""Waiting tools: time limit, progress notifications, and the end of waits at a stop."""

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
"""Some clients give up a call after 60 s."""

Wait = Annotated[
    float,
    Field(
        ge=0,
        le=MAX_ASKED,
        description=f"Seconds to wait; it returns after {MAX_WAIT:g} at the latest.",
    ),
]


BEAT_SECONDS = 10.0
"""Interval of progress notifications, and of checks whether to go on, when nothing happens."""
PACE_SECONDS = 0.25
"""Minimum interval between notifications."""

T = TypeVar("T")


class CallProgress:
    """Progress of one call that waits up to `seconds`: elapsed time, and the last event."""

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
        """How long to wait for events at a time."""
        return min(BEAT_SECONDS, self.left)

    async def tell(self, message: str | None) -> None:
        """Send a notification; waits if the last one is too recent. Events that happen meanwhile
        are combined, and none is lost."""
        if not self._wanted:
            return
        await anyio.sleep(max(0.0, self._told + PACE_SECONDS - time.monotonic()))
        self._told = time.monotonic()
        await self._context.report_progress(self._seconds - self.left, self._seconds, message)


class Stopping:
    """Signals a stop, once. Waits run in the caller's own task, so that a cancelled call leaves
    nothing behind."""

    def __init__(self) -> None:
        self.begun = False
        self._waits: set[anyio.CancelScope] = set()

    def begin(self) -> None:
        self.begun = True
        for wait in self._waits:
            wait.cancel()

    async def unless(self, work: Awaitable[T]) -> T | None:
        """Await `work`; None if the stop comes first, which cancels it: only for waits."""
        with anyio.CancelScope() as wait:
            self._waits.add(wait)
            try:
                if self.begun:
                    wait.cancel()
                return await work
            finally:
                self._waits.discard(wait)
        return None
