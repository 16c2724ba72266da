"""Sends progress notifications to clients, throttled."""

from __future__ import annotations

import time
from typing import Any

import anyio
from mcp.server.mcpserver import Context

from penstock.mcp.tool_view import McpServices

BEAT_SECONDS = 10.0
"""How often it is told that a wait goes on, and looked whether it has to, when nothing happens."""
PACE_SECONDS = 0.25
"""At least this long between two of them, whatever happens."""


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
