"""Enqueues the jobs of one periodic kind, one for each tick.

Every process that works on the kind has a ticker, and each of them tries to store the job of each
tick: whoever is first makes it, the others find it. So there is nobody to elect, and a tick is
missed only if no process was there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.engine.enqueuer import Enqueuer
from penstock.engine.handlers import Handler
from penstock.engine.schedule import Periodic, newest
from penstock.errors import ConfigError, KeyConflict
from penstock.model.job import JobState
from penstock.model.settings import Settings
from penstock.model.tick import tick_id, tick_key, tick_of
from penstock.ports.operators import ProcessInfo
from penstock.ports.queue import JobFilter, JobQueue

log = logging.getLogger("penstock")

MAX_UNFINISHED = 100
"""With `overlap`, ticks are skipped while so many of their jobs are unfinished."""
LEAST_RETENTION = 1.0
TENANT = "default"
_SHORTEST, _LONGEST = 0.001, 10.0
"""Seconds between two looks at the clock. The longest, because clocks are set, machines sleep."""
_CORRECTION = 1.0
"""A clock that goes back by less was only read more exactly."""
_FOLLOWED = 100
"""After sleeping over more ticks than this, unfinished jobs are searched for, not asked about."""


@dataclass(slots=True, frozen=True)
class PeriodicKind:
    """A periodic kind that some worker process works on, as last told: within seconds."""

    kind: str
    schedule: str
    last: float | None
    """The last tick that was enqueued while these processes ran."""
    next: float
    unfinished: int
    """Jobs of ticks before the last one looked at that had not finished."""
    processes: int


class Ticker:
    """A chore that never ends: it may be cancelled at any time, and called again after an error."""

    def __init__(
        self,
        queue: JobQueue,
        kind: str,
        periodic: Periodic,
        enqueuer: Enqueuer,
        retention_seconds: float,
    ) -> None:
        if retention_seconds < LEAST_RETENTION:
            raise ConfigError(
                f"{kind!r} is periodic and needs retention_seconds of {LEAST_RETENTION:g} or more: "
                "the row of a tick tells others that it has been enqueued"
            )
        self._queue = queue
        self._kind = kind
        self._schedule = periodic.schedule
        self._most = MAX_UNFINISHED if periodic.overlap else 1
        # A tick's row lives at least so long after the tick. Later nobody could tell whether the
        # tick had been enqueued, so it must not be.
        self._late = min(periodic.catch_up, retention_seconds)
        self._enqueuer = enqueuer
        self._seen: float | None = None
        self._last: float | None = None
        self._unfinished: list[str] = []

    @property
    def status(self) -> dict[str, Any]:
        """For people: the schedule, the last tick enqueued as far as this process knows, the
        next, and how many jobs of earlier ticks were unfinished when it looked last."""
        return {
            "kind": self._kind,
            "schedule": str(self._schedule),
            "last": self._last,
            "next": self._schedule.after(self._queue.now()),
            "unfinished": len(self._unfinished),
        }

    async def __call__(self) -> None:
        while True:
            now = self._queue.now()
            tick = newest(self._schedule, self._since(now), now)
            if tick is not None:
                await self._on(tick)
                self._seen = tick
            ahead = self._schedule.after(now) - self._queue.now()
            await asyncio.sleep(min(max(ahead, _SHORTEST), _LONGEST))

    def _since(self, now: float) -> float:
        """Ticks up to here are done, or too old. If the clock was set back, what was seen is of no
        use: who would wait for that time again could wait for a year."""
        oldest = now - self._late
        if self._seen is None or self._seen > now + _CORRECTION:
            return oldest
        return max(oldest, self._seen)

    async def _on(self, tick: float) -> None:
        self._unfinished = await self._earlier(tick)
        if len(self._unfinished) >= self._most:
            return
        key, job_id = tick_key(tick), tick_id(self._kind, tick)
        try:
            await self._enqueuer.enqueue(self._kind, key=key, job_id=job_id, tenant=TENANT)
        except KeyConflict as error:
            # Somebody gave its key to a job of their own. Trying again would not change that.
            log.warning("skipped a tick of %r: %s", self._kind, error)
        else:
            self._last = tick

    async def _earlier(self, tick: float) -> list[str]:
        """Which jobs of earlier ticks are unfinished, whoever enqueued them."""
        since_seen = self._ticks_since_seen(tick)
        if since_seen is not None:
            ids = [*self._unfinished, *(tick_id(self._kind, at) for at in since_seen)]
            finished = set(await self._queue.finished(ids))
            return [job_id for job_id in dict.fromkeys(ids) if job_id not in finished]
        if not await self._queue.work_left([self._kind]):
            return []  # as most often, and the search below may go through every job there is
        unfinished = JobFilter(
            kind=self._kind, tenant=TENANT, states=[JobState.QUEUED, JobState.RUNNING]
        )
        jobs = await self._queue.find(unfinished, 10 * MAX_UNFINISHED)
        ticks = {job.id: tick_of(job.id, job.kind, job.key) for job in jobs}
        return [job_id for job_id, at in ticks.items() if at not in (None, tick)]

    def _ticks_since_seen(self, tick: float) -> list[float] | None:
        """The tick looked at last, of which others may have made a job since, and those that this
        process slept over. None if it has seen none, or slept too long."""
        if self._seen is None:
            return None
        ticks = [self._seen]
        while (later := self._schedule.after(ticks[-1])) < tick:
            if len(ticks) == _FOLLOWED:
                return None
            ticks.append(later)
        return ticks


def tickers(
    queue: JobQueue, handlers: Mapping[str, Handler], enqueuer: Enqueuer, settings: Settings
) -> list[Ticker]:
    """One for each periodic kind among `handlers`."""
    return [
        Ticker(queue, kind, handler.periodic, enqueuer, settings.retention_seconds)
        for kind, handler in handlers.items()
        if handler.periodic is not None
    ]


def periodic_kinds(processes: Iterable[ProcessInfo], now: float) -> list[PeriodicKind]:
    """What these processes tell of their tickers. While processes disagree about the schedule of
    a kind, as during a deployment, it is there with each."""
    told: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for process in sorted(processes, key=lambda process: process.heartbeat_at):
        if process.lease_until >= now:
            for status in process.status.get("periodic", ()):
                told.setdefault((status["kind"], status["schedule"]), []).append(status)
    return [
        PeriodicKind(
            kind,
            schedule,
            last=max((s["last"] for s in statuses if s["last"] is not None), default=None),
            next=statuses[-1]["next"],
            unfinished=statuses[-1]["unfinished"],
            processes=len(statuses),
        )
        for (kind, schedule), statuses in sorted(told.items())
    ]
