"""A thread that waits for an event loop."""

import asyncio
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from penstock.runtime.calling_thread import CallingThread
from tests.support.waiting import PATIENCE


def test_who_waits_for_a_loop_that_ends_is_told() -> None:
    """A loop that is closed drops what it was given last."""
    loop = asyncio.new_event_loop()

    async def work() -> None:
        pass

    given = work()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(CallingThread().wait, given, loop)
        while not loop._ready:  # type: ignore[attr-defined]
            pass
        loop.close()
        try:
            with pytest.raises(CancelledError):
                waiting.result(PATIENCE)
        finally:
            given.close()
