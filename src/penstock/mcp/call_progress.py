"""Tells a client how far a call is: what its tool emits, its steps, its progress."""

from __future__ import annotations

import json
from typing import Any

import anyio
from mcp.server.mcpserver import Context

from penstock.mcp.tool_view import McpServices, ToolView
from penstock.mcp.waiting import BEAT_SECONDS, PACE_SECONDS
from penstock.model.event import JobEvent

MAX_MESSAGE = 1000
"""Characters of a message."""
LEAST = 1e-6
"""Progress only grows: by so much where nothing is known of it."""


class JobProgress:
    """The progress of one call, as its client is told while it waits."""

    def __init__(self, context: Context[McpServices, Any]) -> None:
        self.wanted = "progress_token" in (context.request_context.meta or {})
        self._context = context
        self._fraction = 0.0
        self._told = 0.0
        self._words: list[str] = []
        self._news = anyio.Event()

    async def follow(self, tenant_view: ToolView, job_id: str) -> None:
        """Tell what happens in a job, at most four times a second, until it ends."""
        async with anyio.create_task_group() as telling:
            telling.start_soon(self._tell)
            async for event in tenant_view.follow(job_id, 0):
                self._note(event)
            telling.cancel_scope.cancel()
        if self._words:
            await self._send()

    def _note(self, event: JobEvent) -> None:
        match event.kind:
            case "emitted":
                told = event.data
                text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
            case "progress":
                self._fraction = event.data["fraction"]
                text = event.data["message"] or f"{self._fraction:.0%}"
            case "step":
                text = f"done: {event.data['name']}"
            case _:
                return
        self._words.append(text[:MAX_MESSAGE])
        self._news.set()

    async def _tell(self) -> None:
        while True:
            with anyio.move_on_after(BEAT_SECONDS):
                await self._news.wait()
            self._news = anyio.Event()
            await self._send()
            await anyio.sleep(PACE_SECONDS)

    async def _send(self) -> None:
        words, self._words = self._words, []
        self._told = max(self._told + LEAST, self._fraction)
        await self._context.report_progress(self._told, 1.0, "\n".join(words) or None)
