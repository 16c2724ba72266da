"""MCP over HTTP: the application that a web server calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.transport_security import TransportSecuritySettings

from penstock.mcp.server import PenstockMCP

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


class Endpoint:
    """Handles requests. It is stateless: new clients have no sessions, and old ones are given none,
    so any server may handle the next request."""

    def __init__(self, server: PenstockMCP, most_bytes: int) -> None:
        server.streamable_http_app(
            stateless_http=True,
            max_request_body_size=most_bytes,
            # Host and Origin are checked for the whole server, before anything gets here.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._manager = server.session_manager

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept requests inside the block; can be entered once."""
        ready, over = asyncio.Event(), asyncio.Event()

        async def run() -> None:
            async with self._manager.run():
                ready.set()
                await over.wait()

        # In a task of its own: the SDK's task group would wrap whatever the block raises.
        running = asyncio.create_task(run(), name="penstock-mcp")
        await ready.wait()
        try:
            yield
        finally:
            over.set()
            await running

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)
