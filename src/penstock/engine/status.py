"""The status of a worker process: what is busy, what waits, what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.claims import Claims
from penstock.engine.loop_monitor import LoopLag, LoopWatch
from penstock.engine.queue_health import QueueHealth
from penstock.engine.running import Running

if TYPE_CHECKING:
    from penstock.engine.ticker import Ticker

NOT_RUNNING: dict[str, Any] = {
    "busy": 0,
    "stuck": 0,
    "parked": 0,
    "waiting": 0,
    "draining": False,
    "degraded": False,
    "loop_lag": 0.0,
    "blocked": None,
    "trips": 0,
    "trip_seconds": 0.0,
    "tally": {},
    "periodic": [],
}


@dataclass(eq=False)
class EngineStatus:
    """Told with every renewal of the leases."""

    claims: Claims
    running: Running
    health: QueueHealth
    lag: LoopLag
    loop_watch: LoopWatch
    tickers: Sequence[Ticker]

    def as_dict(self) -> dict[str, Any]:
        """busy and stuck workers, jobs parked (without a worker, for others or for permits) and
        claimed ahead, whether it drains or is degraded; how late its event loop is, and which job
        blocks it; trips to the queue, the tally of its runs, periodic kinds and their ticks."""
        running, health = self.running, self.health
        return {
            "busy": running.busy,
            "stuck": len(running.stuck),
            "parked": len(running.parked),
            "waiting": self.claims.internal_queue.qsize(),
            "draining": running.draining,
            "degraded": health.degraded is not None,
            "loop_lag": self.lag.longest,
            "blocked": self.loop_watch.status,
            "trips": health.trips,
            "trip_seconds": round(health.trip_seconds, 3),
            "tally": running.tally.as_status(),
            "periodic": [ticker.status for ticker in self.tickers],
        }
