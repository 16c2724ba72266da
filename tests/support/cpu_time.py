"""What processes cost while a test looks on."""

from __future__ import annotations

import time

import psutil

from tests.support.waiting import look_on


async def cpu_share(seconds: float, *pids: int) -> float:
    """The share of one core that these processes (this one, if none is named) take together,
    threads included, during some seconds."""
    processes = [psutil.Process(pid) for pid in pids or (None,)]
    start, before = time.monotonic(), sum(map(_spent, processes))
    await look_on(seconds)
    return (sum(map(_spent, processes)) - before) / (time.monotonic() - start)


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
