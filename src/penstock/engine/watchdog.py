"""Interrupts runs that exceed their deadline, with one timer for all."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable

from penstock.engine.run import Interrupt, Run


class Watchdog:
    """One timer, set to the earliest deadline; a timer per run costs more than most runs."""

    def __init__(self, runs: Callable[[], Iterable[Run]], now: Callable[[], float]) -> None:
        self._runs = runs
        self._now = now
        self._next = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, run: Run) -> None:
        at = run.next_look
        if at < self._next:
            self._set(at)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = at
        delay = max(0.0, at - self._now())
        self._timer = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._next, self._timer = math.inf, None
        now = self._now()
        earliest = math.inf
        for run in list(self._runs()):
            if run.interrupted is not None:
                continue
            at = run.next_look
            if at <= now:
                run.interrupt(overdue(run, now))
            else:
                earliest = min(earliest, at)
        if earliest < math.inf:
            self._set(earliest)


def overdue(run: Run, now: float) -> Interrupt:
    """Why a run whose time is over is cut short."""
    absolute = run.lease.deadline
    late = absolute is not None and absolute <= now
    return Interrupt.DEADLINE if late else Interrupt.TIMEOUT
