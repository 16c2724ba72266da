"""Computes how many jobs a process has room for, and so how many it claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from penstock.engine import parking
from penstock.engine.claims import Claims
from penstock.engine.handlers import Handlers
from penstock.engine.running import Running
from penstock.model.job import Priority
from penstock.model.settings import EngineConfig
from penstock.ports.queue import Exchange, KindDefaults, Lease, Want

PREFETCH_HORIZON = 0.1
"""Seconds of work for all workers to keep at hand; so long jobs are not claimed ahead."""
WORTHWHILE = 100
"""A claim of so many is worth its trip however many are at hand: the workers go on meanwhile."""


class Room:
    """The room that the jobs in `claims` and `running` leave for others."""

    def __init__(
        self,
        settings: EngineConfig,
        handlers: Handlers,
        claims: Claims,
        running: Running,
        now: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._claims = claims
        self._running = running
        self._now = now
        self._kinds = {
            kind: KindDefaults(
                handler.timeout,
                handler.max_retries,
                None if handler.lane is None else handler.lane_of_text,
                None if handler.amount is None else handler.amount_of_text,
            )
            for kind, handler in handlers.items()
        }
        self._bounds = {
            kind: handler.max_per_process
            for kind, handler in handlers.items()
            if handler.max_per_process is not None
        }
        self._omitted: set[str] = set()
        """Kinds that the last claim did not ask for, because of their bounds."""
        self.next_at: float | None = None
        """When there will be something to claim, if not before."""
        self._ordinary_left = self._lanes_left = 0
        """Room that the last claim did not fill: asking again for it is no use."""
        self._left_out: set[str] = set()
        """Kinds that are not claimed at the moment, because too many of their jobs wait here."""

    def want(self) -> Want:
        """The claim to make now."""
        claims, waiting = self._claims, self._claims.internal_queue.qsize()
        ordinary, room = self._ordinary_room(), self._lane_room()
        kinds, most = self._kinds_and_room()
        # What was left behind for want of room may fit now.
        if ordinary is not None and ordinary > self._ordinary_left:
            claims.likely = claims.likely_in_lanes = True
        if room > self._lanes_left:
            claims.likely_in_lanes = True
        bounded = self._bounded_room()
        if any(bounded[kind] for kind in self._omitted):
            claims.likely = claims.likely_in_lanes = True
        if self.next_at is not None and self._now() >= self.next_at:
            claims.likely = claims.likely_in_lanes = True
            self.next_at = None
        lanes = room if claims.likely_in_lanes else 0
        prefetch = self._prefetch() if ordinary is None else 0
        taken = self._running.busy + claims.internal_queue.coming_back
        free = self._settings.max_workers - taken - waiting
        limit = 0
        # Unless there is enough at hand: then many are claimed at once, later.
        scarce = waiting <= prefetch // 10
        if claims.likely and (scarce or prefetch - waiting >= WORTHWHILE):
            space = claims.internal_queue.maxsize - waiting - claims.timed - lanes
            limit = max(0, min(free + prefetch, space))
        # What is handed over comes beside what the next trip claims: reserved workers would not
        # stay free.
        later = max(0, free) if ordinary is None else 0
        if len(kinds) < len(self._kinds):
            later = 0
        lanes, limit, later = min(lanes, most), min(limit, most), min(later, most)
        want = Want(limit, kinds, not claims.crashed, lanes, ordinary, later, claims.slack.seconds)
        return self._bounded(want, bounded) if bounded else want

    def asking(self, want: Want) -> None:
        """A trip with it begins. Before it: a wake-up that comes meanwhile must count."""
        self._claims.likely = self._claims.likely and not want.limit
        self._claims.likely_in_lanes = self._claims.likely_in_lanes and not want.lanes
        if want.looks:
            self._omitted = self._bounds.keys() - want.kinds.keys()

    def learn(self, want: Want, exchange: Exchange) -> None:
        """Learn from the result of a claim."""
        # A trip that asked for nothing in lanes, or for nothing else, has not learnt when to look
        # at that; it may even have let jobs that were due join the line, and took none.
        soon = (exchange.next_at, None if want.lanes and want.limit else self.next_at)
        self.next_at = min((at for at in soon if at is not None), default=None)
        without_lane = sum(not lease.lane for lease in exchange.leases)
        if want.limit and without_lane >= want.limit:
            self._claims.likely = True  # there may be more
        # Of what was asked for. There may be more room by now, since a job has ended or waits.
        if want.ordinary is not None:
            ordinary = sum(lease.priority > Priority.HIGH for lease in exchange.leases)
            self._ordinary_left = want.ordinary - ordinary
        if want.lanes:
            self._lanes_left = want.lanes - (len(exchange.leases) - without_lane)

    def due_at(self, at: float) -> None:
        """A job settled here is to be run again at that time."""
        if self.next_at is None or at < self.next_at:
            self.next_at = at

    def _kinds_and_room(self) -> tuple[dict[str, KindDefaults], int]:
        """What may be claimed, and how much, so that all that is here can wait for permits at a
        time. When that is much, kinds of which many wait are left out: other kinds go on. Jobs that
        wait for other jobs do not count: what they wait for has to be claimed."""
        claims, running, workers = self._claims, self._running, self._settings.max_workers
        here = len(running.runs) + claims.internal_queue.qsize() + claims.timed
        most = max(parking.MOST, workers)
        left_out: set[str] = set()
        if here + claims.internal_queue.maxsize + workers > most:
            runs = [running.runs[ref] for ref in running.parked]
            waiting = Counter(run.lease.kind for run in runs if not run.for_others)
            here -= len(runs) - waiting.total()
            if here >= most:
                most *= 2
                left_out = {kind for kind, count in waiting.items() if count > workers}
        if self._left_out - left_out:
            claims.likely = claims.likely_in_lanes = True
        self._left_out = left_out
        if not left_out:
            return self._kinds, max(0, most - here)
        kinds = {kind: known for kind, known in self._kinds.items() if kind not in left_out}
        return kinds, max(0, most - here) if kinds else 0

    def _bounded(self, want: Want, room: dict[str, int]) -> Want:
        """`want` such that no kind can pass its bound. A claim has one limit for all kinds: where a
        kind has less room than that, others are asked for first, without it; and in the next trip
        all are, but no more than fit."""
        most = max(want.limit, want.lanes, want.later)
        tight = {kind for kind in room if room[kind] < most}
        omitted = {kind for kind in tight if not room[kind] or kind not in self._omitted}
        fit = min((room[kind] for kind in tight - omitted), default=most)
        return want._replace(
            limit=min(want.limit, fit),
            lanes=min(want.lanes, fit),
            later=min(want.later, fit),
            kinds={kind: known for kind, known in want.kinds.items() if kind not in omitted},
        )

    def _bounded_room(self) -> dict[str, int]:
        """How many more of the kinds that are bounded may be here."""
        if not self._bounds:
            return {}
        here = Counter(lease.kind for lease in self._here())
        return {kind: max(0, most - here[kind]) for kind, most in self._bounds.items()}

    def _here(self) -> list[Lease]:
        """Every job that this process has, running or not."""
        runs = (*self._running.runs.values(), *self._running.stuck.values())
        return [*(run.lease for run in runs), *self._claims.waiting()]

    def _ordinary_room(self) -> int | None:
        """How many more jobs below high priority fit without the reserved workers."""
        if not self._settings.reserved_workers:
            return None
        here = (lease for lease in self._here() if lease.ref not in self._running.parked)
        taken = sum(lease.priority > Priority.HIGH for lease in here)
        return max(0, self._settings.max_workers - self._settings.reserved_workers - taken)

    def _lane_room(self) -> int:
        """Jobs in lanes that would find a worker at their start time. They go before others in
        the internal queue, so only runs that last count as in their way."""
        now, claims, running = self._now(), self._claims, self._running
        in_lanes, parked = claims.in_lanes, running.parked
        lasting = sum(
            1
            for ref, run in running.runs.items()
            if ref not in in_lanes and ref not in parked and now - run.started_at > PREFETCH_HORIZON
        )
        stuck = sum(run.placed for run in running.stuck.values())
        taken = lasting + stuck + len(in_lanes) - len(in_lanes & parked)
        # The internal queue is shared: jobs without a lane keep at least half of it.
        most = claims.internal_queue.maxsize // 2
        return max(0, min(self._settings.max_workers - taken, most - claims.timed))

    def _prefetch(self) -> int:
        ahead = self._settings.max_workers * PREFETCH_HORIZON
        average = max(self._running.average_seconds, 1e-6)
        return min(self._settings.internal_queue, int(ahead / average))
