"""How long the event loop is kept from everything else: in CPU time of its thread, which does not
depend on what else the machine does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

TICK_SECONDS = 0.001


class Bursts:
    longest = 0.0
    """Seconds of CPU between two turns that the probe has had."""


@asynccontextmanager
async def bursts() -> AsyncIterator[Bursts]:
    """Measured for as long as the block lasts."""
    seen = Bursts()

    async def probe() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(TICK_SECONDS)
            seen.longest = max(seen.longest, time.thread_time() - before)

    probing = asyncio.create_task(probe())
    try:
        yield seen
        await asyncio.sleep(TICK_SECONDS)  # the last burst is seen when it is over
    finally:
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
