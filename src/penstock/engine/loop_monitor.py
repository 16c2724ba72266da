"""Measures the lag of the event loop, and detects from a thread the job that blocks it."""

from __future__ import annotations

import asyncio
import logging
import sys
import sysconfig
import threading
from asyncio.events import Handle
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from penstock import runtime
from penstock.engine.background import Service
from penstock.engine.events import EngineEvents
from penstock.engine.log_fields import of_lease
from penstock.engine.run import Run, current
from penstock.engine.running import Running
from penstock.ports.queue import Lease

log = logging.getLogger("penstock")

BLOCKED_SECONDS = 1.0
"""A job that does not suspend for so long is named."""
REMEMBERED_SECONDS = 60.0
"""How long it is told afterwards: a server in the same process can tell nothing before."""
NOT_THEIRS = tuple(
    {str(Path(__file__).parents[1]), *(sysconfig.get_path(of) for of in ("stdlib", "purelib"))}
)
ADVICE = (
    "await something that does not block, use asyncio.to_thread, or write the handler as a plain "
    "def, which runs in a thread"
)

PAUSE = 0.25
"""Between two looks; what blocks the loop for less is seen in part."""
RECENT = 40
"""Looks that are remembered: 10 seconds of them."""


class LoopWatch:
    """Looks four times a second which task the event loop runs. The same one at two looks, with no
    turn of the loop between them, has kept it to itself."""

    def __init__(
        self, lag: LoopLag, running: Running, events: EngineEvents, now: Callable[[], float]
    ) -> None:
        """For the running event loop, whose turns `lag` counts."""
        self._lag = lag
        self._running = running
        self._events = events
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._seen: tuple[int, asyncio.Task[Any] | None] = (0, None)
        self._since = 0.0
        self._run: Run | None = None
        self._told = False
        self._status: dict[str, Any] | None = None

    def start(self) -> None:
        self._ticking = runtime.start_ticking("penstock-loop", self.run, PAUSE)

    async def stop(self) -> None:
        await self._ticking.stop()

    @property
    def status(self) -> dict[str, Any] | None:
        """The job that blocks the event loop or has lately done so: job, kind, since, where, and
        the seconds it took, None while it lasts."""
        status = self._status
        if status is not None and status["seconds"] is not None:
            over_at = status["since"] + status["seconds"]
            return status if self._now() < over_at + REMEMBERED_SECONDS else None
        return status

    def blocked_since(self, run: Run) -> float | None:
        """Since when this run, on whose behalf the event loop is at work now, has blocked it."""
        return self._since if self._run is run and self._seen[0] == self._lag.turns else None

    def run(self) -> float:
        self._look()
        return PAUSE

    def _look(self) -> None:
        now, seen = self._now(), (self._lag.turns, asyncio.current_task(self._loop))
        if seen[1] is None or seen != self._seen:
            if self._told:
                self._over(now)
            self._seen, self._since, self._run, self._told = seen, now, None, False
            return
        if self._run is None:
            self._run = self._run_of(seen[1])
        if self._run is not None and not self._told and now - self._since >= BLOCKED_SECONDS:
            self._tell(self._run, now)

    def _run_of(self, task: asyncio.Task[Any]) -> Run | None:
        """The run whose handler the task is, or which started the task."""
        for run in list(self._running.runs.values()):
            if run.task is task:
                return run
        for frame in self._frames():
            # Where the loop is asyncio's own, its callbacks are run there, each in its context.
            if frame.f_code is Handle._run.__code__:
                found: Run | None = frame.f_locals["self"]._context.get(current)
                return found if found is not None and self._running.has(found) else None
        return None

    def _tell(self, run: Run, now: float) -> None:
        self._told = True
        lease, where = run.lease, self._place()
        run.blocked_at = where
        self._status = _status(lease, self._since, where)
        log.warning(
            "job %s (%s) has blocked the event loop for %.1f s, at %s: no other job of this "
            "process can run meanwhile; %s",
            *(lease.id, lease.kind, now - self._since, where, ADVICE),
            extra=of_lease(lease),
        )
        self._events.status.set()

    def _over(self, now: float) -> None:
        assert self._status is not None
        took = now - self._since
        self._status = {**self._status, "seconds": round(took, 1)}
        message = "job %s (%s) released the event loop after %.1f s"
        log.warning(message, self._status["job"], self._status["kind"], took)
        self._events.status.set()

    def _frames(self) -> list[FrameType]:
        """What the event loop's thread is doing, the innermost first."""
        frames, frame = [], sys._current_frames().get(self._loop_thread)
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        return frames

    def _place(self) -> str:
        """Where it blocks: in the user's own code, if that is there."""
        places = [(frame.f_code, frame.f_lineno) for frame in self._frames()]
        theirs = [one for one in places if not one[0].co_filename.startswith(NOT_THEIRS)]
        code, line = (theirs or places)[0]
        return f"{Path(code.co_filename).name}:{line} ({code.co_name})"


def _status(lease: Lease, since: float, where: str) -> dict[str, Any]:
    return {"job": lease.id, "kind": lease.kind, "since": since, "seconds": None, "where": where}


class LoopLag(Service):
    """Looks four times a second how late the event loop is."""

    name = "lag"

    def __init__(self) -> None:
        self._late: deque[float] = deque([0.0], maxlen=RECENT)
        self.turns = 0
        """Looks that were made: while the event loop is blocked there are none."""

    @property
    def longest(self) -> float:
        """Seconds that the event loop was late, at most, of late."""
        return round(max(self._late.copy()), 4)  # the copy, because another thread may ask

    async def run(self) -> None:
        while True:
            due = runtime.monotonic() + PAUSE
            await asyncio.sleep(PAUSE)
            self.turns += 1
            self._late.append(max(0.0, runtime.monotonic() - due))
