"""Helpers of asyncio: cancels tasks reliably, tells the event loop from threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

AGAIN_SECONDS = 0.5


def on_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this is called from that event loop, and not from a thread."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    """Call a function on that event loop; at once where this is it."""
    if on_loop(loop):
        function(*args)
    else:
        loop.call_soon_threadsafe(function, *args)


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel them until they have ended. Once is not always enough: code that catches an error
    just as the cancellation arrives, in a library too, can swallow it and go on."""
    left = {task for task in tasks if not task.done()}  # the loop of others may be closed
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
