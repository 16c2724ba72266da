"""How long the event loop is kept from everything else: in CPU time of its thread, which does not
depend on what else the machine does."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import patch

COUNTED = 200_000
COUNTED_SECONDS = 0.012
"""Of CPU, to count so far: on a machine of 2026 with two virtual cores, both of them idle."""


def slowness() -> float:
    """How much longer this machine needs just now than that one, for it is slower or its cores are
    shared; never less than 1."""
    before = time.thread_time()
    count = 0
    while count < COUNTED:
        count += 1
    return max(1.0, (time.thread_time() - before) / COUNTED_SECONDS)


class Bursts:
    longest = 0.0
    """Seconds of CPU that the longest callback took: until it is over, nothing else has a turn."""


@asynccontextmanager
async def bursts() -> AsyncIterator[Bursts]:
    """Measured for as long as the block lasts, callbacks of this thread only."""
    seen = Bursts()
    thread, run = threading.get_ident(), asyncio.Handle._run

    def _run(self: asyncio.Handle) -> None:  # the name by which a blocked loop is looked into
        if threading.get_ident() != thread:
            run(self)
            return
        before = time.thread_time()
        run(self)
        seen.longest = max(seen.longest, time.thread_time() - before)

    # What all the tests have loaded is not for the collector to go through in a callback.
    gc.freeze()
    try:
        with patch.object(asyncio.Handle, "_run", _run):
            await asyncio.sleep(0)  # this callback has begun before
            yield seen
            await asyncio.sleep(0)  # the last is seen when it is over
    finally:
        gc.unfreeze()
