"""Live pages: their live part is rendered when something changes in the queue, at most four times a
second, and sent if it differs.

The id of an event is the hash of what it shows. So a reader who comes again, perhaps to another
server, is sent the part as it is now, unless that is what they have.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.aio import end_tasks
from penstock.errors import PenstockError
from penstock.ports.queue import JobQueue, Topic, Wakeup
from penstock.server.dashboard.page_route import LIVE
from penstock.server.dashboard.pages import page, part
from penstock.server.events import EventStream, stream
from penstock.server.problems import Problem, problem_of

LEAST_SECONDS = 0.25
"""Minimum interval between two events of a stream."""
LOOK_SECONDS = 2.0
"""Polling interval: ages grow, and not every change sends a notification."""
HEARD = (Topic.READY, Topic.FINISHED, Topic.SCHEDULED)
REST = 4
"""A slow part is rendered less often: the pause is this many times its rendering time."""

Render = Callable[[], Awaitable[str]]


async def screen(
    request: Request,
    template: str,
    title: str | Callable[[dict[str, Any]], str],
    look: Callable[[], Awaitable[dict[str, Any]]],
    wrong: Problem | None = None,
    **form: Any,
) -> Response:
    """A screen, with what `look` finds: its page, or below `/live/` the stream of its live part.
    What is wrong with its address is told before a stream begins. A page with a `form` is shown
    again if something is `wrong` with what was sent."""
    seen = await look()
    if request.url.path.startswith(LIVE):
        return live(request, f"parts/{template}", look)
    title = title if isinstance(title, str) else title(seen)
    status = 200 if wrong is None else wrong.status
    return page(request, template, status, title=title, wrong=wrong, **form, **seen)


def live(
    request: Request, template: str, look: Callable[[], Awaitable[dict[str, Any]]]
) -> EventStream:
    """Stream the live part of a page, from a template and a function that returns its values."""

    async def render() -> str:
        return part(request, template, **await look())

    seen = request.headers.get("last-event-id")
    return stream(request, _parts(request, render, seen))


async def _parts(request: Request, render: Render, seen: str | None) -> AsyncGenerator[bytes]:
    queue: JobQueue = request.app.state.penstock.queue
    wakeups = [queue.listen(topic) for topic in HEARD]
    try:
        while True:
            begun = time.monotonic()
            html = await _rendered(request, render)
            now = hashlib.sha256(html.encode("utf-8", "replace")).hexdigest()[:32]
            if now != seen:
                seen = now
                yield message(html, now)
            spent = time.monotonic() - begun
            await asyncio.sleep(max(LEAST_SECONDS, REST * spent))  # what comes meanwhile is one
            await _any_of(wakeups, LOOK_SECONDS)
    finally:
        for wakeup in wakeups:
            wakeup.close()


async def _rendered(request: Request, render: Render) -> str:
    try:
        return await render()
    except PenstockError as error:
        problem = problem_of(error)
        if problem is None or problem.status != 404:
            raise  # the stream ends with it, and its reader comes again
        return part(request, "parts/gone.html", problem=problem)


async def _any_of(wakeups: Sequence[Wakeup], timeout: float) -> None:
    waits = [asyncio.create_task(one.wait(timeout)) for one in wakeups]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end_tasks(waits)


def message(html: str, id: str) -> bytes:
    """Build an event without a name: htmx puts its data in place."""
    lines = html.replace("\r", "").encode("utf-8", "replace").split(b"\n")
    return b"id: " + id.encode() + b"\n" + b"".join(b"data: " + x + b"\n" for x in lines) + b"\n"
