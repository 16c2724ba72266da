"""The last hour in this server's memory: throughput, latency, use of lanes.

Kept in memory only. Worker processes tell what they have done when they renew their leases, every
few seconds, each at a moment of its own. So what is kept of a process is its speed between its last
two renewals, and a sample is all of them together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import PenstockError
from penstock.model.tally import Measure, RunOutcome, Tally
from penstock.ports.lanes import LaneInfo
from penstock.ports.operators import ProcessInfo
from penstock.wire.operators import HistoryView, LaneHistory

if TYPE_CHECKING:
    from penstock.app import Penstock

log = logging.getLogger("penstock.server")

SAMPLE_SECONDS = 5.0
KEPT = 720
"""Number of samples: an hour."""
NEW_SECONDS = 30.0
"""A process that joined less than this before the first sample did all its work about now."""
SHARE = 20
"""With many lanes a sample takes longer and is taken less often: the pause is this many times as
long."""
LANES = 50
"""Maximum lanes in the history: the busiest."""


class Pace(NamedTuple):
    """A process's throughput between its last two renewals."""

    heartbeat_at: float
    seconds: float
    tally: Tally
    """Counts since it joined."""
    done: Tally
    """Counts in that interval."""


class LaneUse(NamedTuple):
    in_flight: int
    waiting: int
    limit: int | None = None
    """Requests at a time."""


UNUSED = LaneUse(0, 0)


class Sample(NamedTuple):
    at: float
    speeds: Mapping[RunOutcome, float]
    """Runs per second, by outcome."""
    done: Tally
    busy: int
    workers: int
    lanes: Mapping[str, LaneUse]


class History:
    def __init__(self, app: Penstock) -> None:
        self._app = app
        self._paces: dict[str, Pace] = {}
        self.samples: deque[Sample] = deque(maxlen=KEPT)

    async def keep(self) -> None:
        """Sample until cancelled."""
        before = 0.0
        while True:
            begun = time.monotonic()
            try:
                processes, lanes = await self._app.processes(), await self._app.lane_infos()
                self.note(self._app.queue.now(), processes, lanes)
            except PenstockError as error:
                log.info("could not record history: %s", type(error).__name__)
            took = time.monotonic() - begun
            # One look that is slow by itself, as the first often is, leaves no gap.
            await asyncio.sleep(max(SAMPLE_SECONDS, SHARE * min(took, before)))
            before = took

    def note(self, at: float, processes: Sequence[ProcessInfo], lanes: Sequence[LaneInfo]) -> None:
        """Add a sample."""
        looked_at = self.samples[-1].at if self.samples else at - NEW_SECONDS
        self._paces = {one.id: _pace(one, self._paces.get(one.id), looked_at) for one in processes}
        speeds, done = dict.fromkeys(RunOutcome, 0.0), Tally()
        for pace in self._paces.values():
            done += pace.done
            if pace.seconds > 0:
                for ending in RunOutcome:
                    speeds[ending] += pace.done.count(ending) / pace.seconds
        self.samples.append(
            Sample(
                at,
                speeds,
                done,
                sum(one.status.get("busy", 0) for one in processes),
                sum(one.max_workers for one in processes),
                {
                    x.name: LaneUse(x.in_flight, x.waiting, x.max_parallel)
                    for x in lanes
                    if x.in_flight or x.waiting
                },
            )
        )

    def view(self, last: int = KEPT) -> HistoryView:
        """Return columns of equal length, oldest sample first. A quantile is null if nothing
        ended."""
        samples = list(self.samples)[-last:]
        busiest: dict[str, int] = {}
        for sample in samples:
            for name, use in sample.lanes.items():
                busiest[name] = max(busiest.get(name, 0), use.in_flight + use.waiting)
        lanes = sorted(sorted(busiest, key=lambda name: -busiest[name])[:LANES])
        return HistoryView(
            at=[round(one.at, 1) for one in samples],
            completed=[_figure(one.speeds[RunOutcome.COMPLETED]) for one in samples],
            failed=[_figure(one.speeds[RunOutcome.FAILED]) for one in samples],
            retried=[_figure(one.speeds[RunOutcome.RETRY]) for one in samples],
            wait_p50=[_quantile(one, "wait", 0.5) for one in samples],
            wait_p95=[_quantile(one, "wait", 0.95) for one in samples],
            run_p50=[_quantile(one, "run", 0.5) for one in samples],
            run_p95=[_quantile(one, "run", 0.95) for one in samples],
            busy=[one.busy for one in samples],
            workers=[one.workers for one in samples],
            lanes=[
                LaneHistory(
                    lane,
                    [one.lanes.get(lane, UNUSED).in_flight for one in samples],
                    [one.lanes.get(lane, UNUSED).waiting for one in samples],
                )
                for lane in lanes
            ],
        )

    def of_lane(self, name: str, limit: int, last: int = KEPT) -> dict[str, Any]:
        """Return the columns of one lane, whose limit is now `limit`."""
        samples = list(self.samples)[-last:]
        uses = [one.lanes.get(name, UNUSED) for one in samples]
        limits = []
        for use in reversed(uses):
            limit = use.limit or limit
            limits.append(limit)
        return {
            "limit": limits[::-1],
            "at": [round(one.at, 1) for one in samples],
            "in_flight": [one.in_flight for one in uses],
            "waiting": [one.waiting for one in uses],
        }


def _pace(process: ProcessInfo, before: Pace | None, looked_at: float) -> Pace:
    heartbeat = process.heartbeat_at
    if before is not None and before.heartbeat_at == heartbeat:
        return before
    tally = Tally.from_status(process.status)
    if before is None and process.joined_at >= looked_at:
        return Pace(heartbeat, heartbeat - process.joined_at, tally, tally)
    if before is None:  # what it did before we looked is not of now
        return Pace(heartbeat, 0.0, tally, Tally())
    return Pace(heartbeat, heartbeat - before.heartbeat_at, tally, tally - before.tally)


def _figure(value: float) -> float:
    return float(f"{value:.4g}")


def _quantile(sample: Sample, of: Measure, share: float) -> float | None:
    value = sample.done.quantile(of, share)
    return None if value is None else _figure(value)
