"""Interrupts runs: at their deadline, with one timer for all, or on request."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from penstock.engine.outcomes import Endings
from penstock.engine.run import Interrupt, Run
from penstock.engine.running import Running

CANCEL_SECONDS = 1.0
"""How long an interrupted handler may take to clean up; after that its job is settled."""


class Watchdog:
    """One timer, set to the earliest deadline; a timer per run costs more than most runs."""

    def __init__(self, running: Running, endings: Endings, now: Callable[[], float]) -> None:
        self._running = running
        self._endings = endings
        self._now = now
        self._next = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, run: Run) -> None:
        at = run.next_look
        if at < self._next:
            self._set(at)

    def interrupt(self, run: Run, reason: Interrupt) -> None:
        """Cut the run short, and give its handler up if it has not ended after CANCEL_SECONDS.
        Must not be called from inside the handler's own task."""
        if run.interrupted is None:
            run.interrupt(reason)
            loop = asyncio.get_running_loop()
            loop.call_later(CANCEL_SECONDS, self._endings.give_up, run)

    def interrupt_all(self, reason: Interrupt) -> None:
        for run in list(self._running.runs.values()):
            self.interrupt(run, reason)

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
        for run in list(self._running.runs.values()):
            if run.interrupted is not None:
                continue
            at = run.next_look
            if at <= now:
                self.interrupt(run, overdue(run, now))
            else:
                earliest = min(earliest, at)
        if earliest < math.inf:
            self._set(earliest)


def overdue(run: Run, now: float) -> Interrupt:
    """Why a run whose time is over is cut short."""
    absolute = run.lease.deadline
    late = absolute is not None and absolute <= now
    return Interrupt.DEADLINE if late else Interrupt.TIMEOUT
