"""Server-sent events from the logs, with heartbeats.

Every event but `bye` has the id to resume after it. `change` is an entry of a log, `reset` a
snapshot for a reader whose id is too old or of another time, `bye` the end of the stream but not
of what it tells of: come again with the last id.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.aio import end_tasks
from penstock.errors import QueueError, StoreUnavailable
from penstock.model.server import ServerConfig
from penstock.server.answer_json import written
from penstock.server.draining import Draining, left

log = logging.getLogger("penstock.server")

RETRY_MS = 1000

HELLO = f": here\nretry: {RETRY_MS}\n\n".encode()
BEAT = b": still here\n\n"


def event(name: str, data: Any, id: str | None = None) -> bytes:
    head = b"" if id is None else b"id: " + id.encode() + b"\n"
    return head + b"event: " + name.encode() + b"\ndata: " + written(data) + b"\n\n"


class EventStream(Response):
    """A response that lasts until its events end, its reader disconnects, or the server stops."""

    def __init__(
        self,
        events: AsyncGenerator[bytes],
        draining: Draining,
        counted: AbstractContextManager[None],
        config: ServerConfig,
        allowed: Callable[[], Awaitable[bool]],
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(media_type="text/event-stream")
        self._more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._events = events
        self._draining = draining
        self._counted = counted
        self._config = config
        self._allowed = allowed  # still: asked with every sign of life, or instead of one

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._counted:
            telling = asyncio.create_task(self._tell(send), name="penstock-stream")
            leaving = asyncio.create_task(left(receive), name="penstock-stream-reader")
            try:
                await asyncio.wait([telling, leaving], return_when=asyncio.FIRST_COMPLETED)
                if telling.done():
                    telling.result()
            finally:
                await end_tasks([task for task in (telling, leaving) if not task.done()])

    async def _tell(self, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [
                    (b"content-type", b"text/event-stream; charset=utf-8"),
                    (b"cache-control", b"no-store"),
                    (b"x-accel-buffering", b"no"),
                    *self._more,
                ],
            }
        )
        coming: asyncio.Task[bytes | None] | None = None
        try:
            await self._send(send, HELLO)
            over = time.monotonic() + self._config.stream_seconds
            look_at = time.monotonic() + self._config.heartbeat_seconds
            while True:
                if time.monotonic() >= look_at:
                    look_at = time.monotonic() + self._config.heartbeat_seconds
                    if not await self._allowed():
                        await self._send(
                            send, event("bye", {"why": "the API key is no longer valid"})
                        )
                        break
                coming = coming or asyncio.create_task(_next(self._events))
                left = over - time.monotonic()
                patience = max(0.0, min(self._config.heartbeat_seconds, left))
                if await self._draining.first(coming, patience):
                    task, coming = coming, None
                    try:
                        came = task.result()
                    except (QueueError, StoreUnavailable) as error:
                        log.warning("closing a stream: %s", type(error).__name__)
                        came = event("bye", {"why": "the queue or the store is unreachable"})
                        over = 0.0
                    if came is None:
                        break
                    await self._send(send, came)
                    if not over:
                        break
                elif self._draining.begun or left <= 0:
                    why = (
                        "the server is stopping"
                        if self._draining.begun
                        else "the maximum duration was reached"
                    )
                    await self._send(send, event("bye", {"why": why}))
                    break
                else:
                    await self._send(send, BEAT)
            await self._send(send, b"", more=False)
        except TimeoutError:
            log.info("dropped a stream whose client does not read")
        finally:
            if coming is not None:
                await end_tasks([coming])
            await self._events.aclose()

    async def _send(self, send: Send, data: bytes, *, more: bool = True) -> None:
        async with asyncio.timeout(self._config.stall_seconds):
            await send({"type": "http.response.body", "body": data, "more_body": more})


async def _next(source: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(source, None)
