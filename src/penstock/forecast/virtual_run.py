"""A run of a backlog in virtual time: workers claim from lines, lanes grant starts by their rules.

Rates, slots, breakers, days and amounts are not modelled here: `penstock.lanes` is asked, as a
claim asks it. Here are only workers, the order of lines, and how long a run takes. What goes on
unchanged for long is not played through: see `steady_state`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from penstock.forecast.durations import Durations
from penstock.forecast.holds import HeldBy, Hold, held_by, never
from penstock.forecast.lines import JobGroup, VirtualLine
from penstock.forecast.pace import StretchPace
from penstock.forecast.what_if import WorkerPool
from penstock.lanes import breaker, limits, waiting
from penstock.lanes.state import LaneState
from penstock.model.amounts import NOTHING, Amounts
from penstock.model.lane import SPARE
from penstock.ports.queue import NO_LANE

if TYPE_CHECKING:
    from penstock.lanes.amounts import Booking

HORIZON_SECONDS = 366 * 86400.0
"""How far ahead a forecast looks."""
RETRY_SECONDS = 1.0
"""After which a run is made again that has failed."""
PLAIN_SECONDS = 0.0003
"""What a process needs for a job beside its handler."""
CHECK_STARTS = 250
"""Starts between two looks at whether all goes on as before."""
CHECK_EVENTS = 250
"""Whatever happens, others get their turn after so much of it."""
SPANS = 3
"""Windows over which the pace is taken of what is counted in windows: it goes up and down in each.
"""
LEAST_AHEAD = 1e-6
FIRST_TURN = -1e18
"""Of jobs that are claimed already, and will be put back at the head of their line."""

PartKey = tuple[str, str, str]
"""Lane, kind, tenant."""
StretchKey = tuple[str, str, int]
"""Lane, kind, band: jobs that are served alike."""


@dataclass(slots=True)
class PartTally:
    """The jobs of one kind and tenant in one lane, as far as they have been run."""

    jobs: int = 0
    first_at: float | None = None
    """When the first started; `last_at`: the last."""
    last_at: float = 0.0
    done_at: float = 0.0
    tokens: float = 0.0
    cost: float = 0.0


@dataclass(slots=True, eq=False)
class VirtualWorkers:
    """A pool of workers, and how many of them are free."""

    pool: WorkerPool
    free: int

    def handles(self, kind: str) -> bool:
        return self.pool.kinds is None or kind in self.pool.kinds


@dataclass(slots=True, eq=False)
class VirtualJob:
    """A job that runs."""

    workers: VirtualWorkers | None
    group: JobGroup
    factor: float
    """The share of its reservation that it uses."""
    booking: Booking | None = None
    """In a lane that counts."""

    @property
    def stretch(self) -> StretchKey:
        return self.group.lane, self.group.kind, self.group.band


Event = tuple[float, int, VirtualJob | JobGroup | str]
"""When, its number, and what: a run ends, jobs join their line, or a lane is looked at."""


@dataclass(eq=False)
class VirtualRun:
    """See above. `use` is the share of what is reserved that jobs really use, by lane and kind."""

    now: float
    lanes: Mapping[str, LaneState]
    workers: Sequence[VirtualWorkers]
    durations: Mapping[tuple[str, str], Durations]
    trip_seconds: float
    use: Mapping[tuple[str, str], float]
    lines: dict[tuple[str, str], VirtualLine] = field(default_factory=dict)
    kinds_in: dict[str, list[str]] = field(default_factory=dict)
    tallies: dict[PartKey, PartTally] = field(default_factory=dict)
    held: dict[str, dict[HeldBy, float]] = field(default_factory=dict)
    """How long each reason held a lane's lines."""
    events: list[Event] = field(default_factory=list)
    looks: dict[str, float] = field(default_factory=dict)
    """When each lane is looked at next."""
    paces: dict[StretchKey, StretchPace] = field(default_factory=dict)
    starts: int = 0
    """Those that were played through."""

    def __post_init__(self) -> None:
        self.begun = self.now
        self.numbers = count(1)
        self._families: dict[str, list[LaneState]] = {}
        self._due: dict[str, None] = {}
        self._waiters: dict[str, dict[str, None]] = {}
        self._holding: dict[str, tuple[HeldBy, float]] = {}
        self._checked = 0
        self.total = 0

    # What there is at the beginning.

    def join(self, group: JobGroup) -> None:
        """Jobs join their line."""
        key = group.lane, group.kind
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = VirtualLine(*key)
            self.kinds_in.setdefault(group.lane, []).append(group.kind)
        line.join([group])
        if group.lane != NO_LANE and self.looks.get(group.lane) is None:
            self._due[group.lane] = None

    def expect(self, at: float, group: JobGroup) -> None:
        """Jobs join their line later."""
        heappush(self.events, (at, next(self.numbers), group))

    def hold(self, group: JobGroup, workers: VirtualWorkers | None, until: float) -> None:
        """A job of this group runs already."""
        if workers is not None:
            workers.free -= 1
        for lane in self.family(group.lane):
            lane.in_flight += 1
        job = VirtualJob(workers, group, self.use.get((group.lane, group.kind), 1.0))
        self._count(job, self.now, 1)
        heappush(self.events, (until, next(self.numbers), job))

    def family(self, name: str) -> list[LaneState]:
        """A lane and its parent; nothing without a lane."""
        found = self._families.get(name)
        if found is None:
            lane = self.lanes.get(name)
            found = [] if lane is None else [lane]
            parent = None if lane is None else self.lanes.get(lane.parent or "")
            if parent is not None:
                found.append(parent)
            self._families[name] = found
        return found

    # Virtual time.

    def run(self) -> Iterator[float]:
        """Run it to its end, or to the horizon; from time to time, the share that is done."""
        from penstock.forecast.steady_state import pass_by

        happened = 0
        self._claim()
        while self.events and self.events[0][0] <= self.begun + HORIZON_SECONDS:
            at, _, event = heappop(self.events)
            self.now = max(self.now, at)
            self._happen(at, event)
            while self.events and self.events[0][0] <= self.now:
                at, _, event = heappop(self.events)
                self._happen(at, event)
            self._claim()
            happened += 1
            if self.starts - self._checked >= CHECK_STARTS:
                self._checked = self.starts
                pass_by(self)
            elif happened < CHECK_EVENTS:
                continue
            happened = 0
            yield self.done / max(1, self.total)
        for name in list(self._holding):
            self._hold(name, None)

    @property
    def done(self) -> int:
        return sum(one.jobs for one in self.tallies.values())

    def _happen(self, at: float, event: VirtualJob | JobGroup | str) -> None:
        if isinstance(event, VirtualJob):
            self._end(event)
        elif isinstance(event, JobGroup):
            self.join(event)
        elif self.looks.get(event) == at:
            del self.looks[event]
            self._due[event] = None

    def _end(self, job: VirtualJob) -> None:
        group = job.group
        if job.workers is not None:
            job.workers.free += 1
        lanes = self.family(group.lane)
        if lanes:
            breaker.succeeded(lanes[0])
        for lane in lanes:
            lane.in_flight -= 1
        if job.booking is not None:
            from penstock.lanes import amounts

            used = Amounts(*(round(part * job.factor) for part in job.booking.amount))
            amounts.settle(lanes, job.booking.ref, 0, used, self.now)
        for lane in lanes:
            self._wake(lane.name)
        if self.durations[group.kind, group.lane].again():
            again = JobGroup(group.kind, group.lane, group.tenant, group.band, 1, group.turn)
            again.amount = group.amount
            self.expect(self.now + RETRY_SECONDS, again)
            return
        tally = self.tallies[group.lane, group.kind, group.tenant]
        tally.jobs += 1
        tally.done_at = max(tally.done_at, self.now)

    def _wake(self, lane: str) -> None:
        """A slot of the lane is free: the line is looked at that has waited longest."""
        waiters = self._waiters.get(lane)
        if waiters:
            name = next(iter(waiters))
            del waiters[name]
            self.looks.pop(name, None)
            self._due[name] = None

    # Claims.

    def _claim(self) -> None:
        for workers in self.workers:
            if workers.free > 0:
                self._claim_in_lanes(workers)
            if workers.free > 0:
                self._claim_plain(workers)
        for name in self._due:
            self._hold(name, HeldBy(Hold.WORKERS))

    def _claim_in_lanes(self, workers: VirtualWorkers) -> None:
        tried: set[str] = set()
        while workers.free > 0:
            # A look may let others look that wait for the same slots.
            name = next((one for one in self._due if one not in tried), None)
            if name is None:
                return
            tried.add(name)
            kinds = self._waiting_kinds(name)
            if not kinds:
                del self._due[name]
                self._hold(name, None)
            elif own := [kind for kind in kinds if workers.handles(kind)]:
                del self._due[name]
                self._claim_lane(workers, name, own)

    def _waiting_kinds(self, lane: str) -> list[str]:
        return [kind for kind in self.kinds_in.get(lane, ()) if self.lines[lane, kind].waiting]

    def _claim_lane(self, workers: VirtualWorkers, name: str, kinds: list[str]) -> None:
        lanes = self.family(name)
        if never(lanes) is not None:
            self._hold(name, never(lanes))
            return
        amount = None
        most = waiting.room(lanes, workers.free, self.now)
        if most > 0 and any(lane.amounts is not None for lane in lanes):
            amount = self._start_with_amounts(workers, name, kinds, most)
        elif most > 0:
            here = sum(self.lines[name, kind].waiting for kind in kinds)
            for at in limits.starts(lanes, [False] * min(most, here), self.now):
                self._start(workers, self._take(name, kinds), at)
        if self._waiting_kinds(name):
            self._look_again(workers, name, lanes, amount)
        else:
            self._hold(name, None)
        for lane in lanes:
            if lane.slots_for_jobs(self.now) > 0:
                self._wake(lane.name)

    def _start_with_amounts(
        self, workers: VirtualWorkers, name: str, kinds: list[str], most: int
    ) -> Amounts | None:
        """Start up to `most` jobs; what the next one reserves, for which there is no room."""
        from penstock.lanes import amounts

        lanes = self.family(name)
        while most > 0 and (kind := self._first(name, kinds)):
            said = self.lines[name, kind].first.amount
            booking = amounts.booking(
                lanes, next(self.numbers), 0, said if any(said) else None, kind
            )
            if booking.refusal is not None:  # it is started to fail
                group = self.lines[name, kind].take()
                self.tally(group).jobs += 1
                self.tally(group).done_at = self.now
                continue
            granted = amounts.starts(lanes, [False], [booking], self.now)
            if not granted:
                return booking.amount
            self._start(workers, self.lines[name, kind].take(), granted[0], booking)
            most -= 1
        kind = self._first(name, kinds)
        return None if kind is None else self.lines[name, kind].first.amount

    def _look_again(
        self, workers: VirtualWorkers, name: str, lanes: list[LaneState], amount: Amounts | None
    ) -> None:
        if workers.free <= 0:
            self._due[name] = None  # when a worker is free
            return
        by = held_by(lanes, amount, self.now)
        self._hold(name, by)
        if by.hold in (Hold.DAY, Hold.BLOCKED):
            self._unsettle(name)
        at, waits_for = waiting.look_again(lanes, self.now, amount)
        if at is not None and by.hold in (Hold.DAY, Hold.TOKENS):
            at = max(at, self._room_at(lanes, amount))
        if waits_for is not None:
            self._waiters.setdefault(waits_for, {})[name] = None
        if at is not None:
            at = max(at, self.now + LEAST_AHEAD)
            self.looks[name] = at
            heappush(self.events, (at, next(self.numbers), name))

    def _room_at(self, lanes: list[LaneState], amount: Amounts | None) -> float:
        """When there is room for an amount, if nothing can give some back before. Workers look
        every second, for what others settle; here nobody does unless something runs."""
        if any(lane.in_flight for lane in lanes) or all(lane.amounts is None for lane in lanes):
            return self.now
        from penstock.lanes.amounts import room

        at = room(lanes, amount or NOTHING, max(self.now, *(one.next_start for one in lanes))).at
        return at - limits.AHEAD_SECONDS

    def _claim_plain(self, workers: VirtualWorkers) -> None:
        kinds = [kind for kind in self.kinds_in.get(NO_LANE, ()) if workers.handles(kind)]
        while workers.free > 0 and (kind := self._first(NO_LANE, kinds)):
            self._start(workers, self.lines[NO_LANE, kind].take(), self.now)
        waits = bool(self._first(NO_LANE, kinds))
        self._hold(NO_LANE, HeldBy(Hold.WORKERS) if waits else None)

    def _first(self, lane: str, kinds: Sequence[str]) -> str | None:
        """The kind of the first in the lines of these kinds."""
        best, found = None, None
        for kind in kinds:
            line = self.lines[lane, kind]
            if line.waiting and (best is None or line.place < best):
                best, found = line.place, kind
        return found

    def _take(self, lane: str, kinds: Sequence[str]) -> JobGroup:
        kind = self._first(lane, kinds)
        assert kind is not None
        return self.lines[lane, kind].take()

    def _start(
        self, workers: VirtualWorkers, group: JobGroup, at: float, booking: Booking | None = None
    ) -> None:
        workers.free -= 1
        self.starts += 1
        job = VirtualJob(workers, group, self.use.get((group.lane, group.kind), 1.0), booking)
        took = self.durations[group.kind, group.lane].draw()
        beside = PLAIN_SECONDS if group.lane == NO_LANE else self.trip_seconds
        heappush(self.events, (max(at, self.now) + took + beside, next(self.numbers), job))
        self._count(job, at, 1)
        self._keep_pace(group, at)
        if not group.count and not self.lines[group.lane, group.kind].band(group.band):
            self._unsettle(group.lane)

    def _count(self, job: VirtualJob, at: float, runs: float) -> None:
        tally, amount = self.tally(job.group), job.group.amount
        tally.first_at = at if tally.first_at is None else tally.first_at
        tally.last_at = max(tally.last_at, at)
        tally.tokens += runs * amount.tokens * job.factor
        tally.cost += runs * amount.cost * job.factor

    def tally(self, group: JobGroup) -> PartTally:
        return self.tallies.setdefault((group.lane, group.kind, group.tenant), PartTally())

    # What a forecast goes by that does not play everything through.

    def _keep_pace(self, group: JobGroup, at: float) -> None:
        key = group.lane, group.kind, group.band
        pace = self.paces.get(key)
        if pace is None:
            span = SPANS * self._window(group.lane)
            seconds = max(8 * self.durations[group.kind, group.lane].mean, span)
            pace = self.paces[key] = StretchPace(self.now + seconds / 4, seconds, span)
        if self.now >= pace.since:
            pace.starts.append((at, group.amount.tokens or max(group.amount)))

    def _window(self, lane: str) -> float:
        """Seconds after which what is counted of a lane has left its window."""
        intervals = [0.0]
        for one in self.family(lane):
            if one.amounts is not None:
                from penstock.lanes.amounts import limits_in

                intervals.append(limits_in(one.amounts).interval * SPARE)
        return max(intervals)

    def mostly_held(self, lane: str) -> Hold | None:
        """The reason that has held a lane's lines longest."""
        held = self.held.get(lane)
        return max(held, key=lambda by: held[by]).hold if held else None

    def _unsettle(self, lane: str) -> None:
        """A stretch has ended: others in the lane, or under its parent, may go faster now; and all
        of them, where workers are what there is too little of."""
        crowded = any(workers.free <= 0 for workers in self.workers)
        names = {one.name for one in self.family(lane)}
        for key in list(self.paces):
            if crowded or names & {one.name for one in self.family(key[0])}:
                del self.paces[key]

    def _hold(self, name: str, by: HeldBy | None) -> None:
        """From now on this is what holds the lines of a lane; None: nothing."""
        before = self._holding.get(name)
        if before is not None:
            if before[0] == by:
                return
            held = self.held.setdefault(name, {})
            held[before[0]] = held.get(before[0], 0.0) + self.now - before[1]
            del self._holding[name]
        if by is not None:
            self._holding[name] = by, self.now
