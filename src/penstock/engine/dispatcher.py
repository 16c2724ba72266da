"""The dispatcher: the one place of a process that talks to the queue for its workers.

Each trip settles what has ended and claims what there is room for. While a trip is under way
outcomes gather for the next one, so batches grow with the load by themselves.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from penstock.engine import parking
from penstock.engine.log_fields import tell
from penstock.engine.retry import reconnect_delay
from penstock.engine.run import Run
from penstock.engine.run_counts import count_runs
from penstock.engine.settler import Load
from penstock.engine.worker_state import WorkerState
from penstock.errors import QueueError
from penstock.model.job import Job, JobState, Priority
from penstock.ports.queue import NO_LANE, Exchange, KindDefaults, Lease, Ref, Settlement, Want

log = logging.getLogger("penstock")

DEGRADED_AFTER = 3
PREFETCH_HORIZON = 0.1
"""Seconds of work for all workers to keep at hand; so long jobs are not claimed ahead."""
GATHER_SECONDS = 0.005
"""While the workers have jobs at hand, outcomes wait this long for company."""
WORTHWHILE = 100
"""A claim of so many is worth its trip however many are at hand: the workers go on meanwhile."""


class Dispatcher:
    """Fills the internal queue, empties the settler."""

    def __init__(
        self,
        bench: WorkerState,
        lapsed: Callable[[], None],
        look_up: Callable[[Sequence[str]], Awaitable[Mapping[str, Job]]],
    ) -> None:
        """`look_up` finds jobs by id."""
        self._bench = bench
        self._look_up = look_up
        self._settings = bench.settings
        self._lapsed = lapsed
        self._wake = asyncio.Event()
        self._kinds = {
            kind: KindDefaults(
                handler.timeout,
                handler.max_retries,
                None if handler.lane is None else handler.lane_of_text,
            )
            for kind, handler in bench.handlers.items()
        }
        self._bounds = {
            kind: handler.max_per_process
            for kind, handler in bench.handlers.items()
            if handler.max_per_process is not None
        }
        self._omitted: set[str] = set()
        """Kinds that the last claim did not ask for, because of their bounds."""
        self._timers: dict[Ref, tuple[asyncio.TimerHandle, Lease]] = {}
        self._may_claim = self._may_claim_lanes = True
        """There may be something to claim, without a lane or in one: not known to be empty."""
        self._next_at: float | None = None
        """When there will be, if not before."""
        self._ordinary_left = self._lanes_left = 0
        """Room that the last claim did not fill: asking again for it is no use."""
        self._left_out: set[str] = set()
        """Kinds that are not claimed at the moment, because too many of their jobs wait here."""
        self._claiming = True
        self._finishing = False
        self.degraded: str | None = None
        """Why the queue cannot be reached, after three failures in a row."""
        self.trips = 0
        self.trip_seconds = 0.0
        """What its trips to the queue took together."""

    def wake(self) -> None:
        self._wake.set()

    def ready(self) -> None:
        """There may be something to claim."""
        self._may_claim = self._may_claim_lanes = True
        self._wake.set()

    def stop_claiming(self) -> None:
        self._claiming = False
        self._wake.set()

    def finish(self) -> None:
        """End once everything is settled."""
        self._finishing = True
        self._wake.set()

    async def run(self) -> None:
        """Until finished. Whatever goes wrong, it goes on: a process without a dispatcher would
        look alive and do nothing."""
        failures = 0
        while not (self._finishing and self._bench.settler.empty):
            try:
                if await self._turn() and failures:
                    if self.degraded is not None:
                        log.warning("the queue is back")
                    failures, self.degraded = 0, None
            except Exception as error:
                failures += 1
                if failures == 1 and not isinstance(error, QueueError):
                    log.exception("a trip to the queue failed in a way it should not")
                if failures == DEGRADED_AFTER:
                    ours = isinstance(error, QueueError)
                    self.degraded = str(error) if ours else type(error).__name__
                    log.error("the queue cannot be reached, trying on: %s", self.degraded)
                if self._finishing and failures >= DEGRADED_AFTER:
                    raise
                await asyncio.sleep(reconnect_delay(failures, self._settings))

    async def _turn(self) -> bool:
        """Make a trip to the queue if there is reason to, else sleep; whether one was made."""
        self._hand_back_waiting()
        want = self._want() if self._claiming else None
        if not (want and want.looks) and not self._settling_due():
            await self._sleep()
            return False
        settler, member = self._bench.settler, self._bench.member
        permits = self._bench.services.permits
        load = settler.take()
        freed = _freed(load)
        gives_way = False
        if want is not None and load.returned:
            # Slots go to whoever waits: to jobs in line with this trip, else to requests after it.
            gives_way = permits.comes_first(freed)
            self._may_claim_lanes = True
            want = want._replace(lanes=0) if gives_way else self._want()
        elif want is not None and want.lanes and freed and permits.comes_first(freed):
            gives_way, want = True, want._replace(lanes=0)
        if want is not None:
            # Before the trip: a wake-up that comes meanwhile must count.
            self._may_claim = self._may_claim and not want.limit
            self._may_claim_lanes = self._may_claim_lanes and not want.lanes
            if want.looks:
                self._omitted = self._bounds.keys() - want.kinds.keys()
        begun = time.monotonic()
        try:
            exchange = await member.exchange(
                [settlement for settlement, _ in load.settlements],
                load.progress,
                want,
                load.returned,
            )
        except BaseException:
            settler.put_back(load)
            self._may_claim = self._may_claim_lanes = True
            raise
        self.trips += 1
        self.trip_seconds += time.monotonic() - begun
        settler.stored(load)
        held = self._bench.held
        for settlement, _ in load.settlements:
            lease = settlement.lease
            if held.get(lease.id) is lease:
                del held[lease.id]
        if exchange.member:
            self._deliver(exchange, want)
        elif member is self._bench.member:
            # Nothing can be claimed until it has joined again. A trip that took so long that it
            # has by now tells of the membership before.
            self._lapsed()
        else:
            self._may_claim = self._may_claim_lanes = True
        count_runs(self._bench.tally, load.settlements, exchange)
        await self._after(load.settlements, exchange)
        if freed:
            permits.changed()
            if gives_way:
                await asyncio.sleep(0)  # it asks before the next claim
        return True

    def take(self, leases: list[Lease]) -> None:
        """Start jobs that were leased to this process, or give back those it has no room for."""
        for lease in leases:
            before = self._bench.held.get(lease.id)
            if before is not None and before.ref == lease.ref:
                self._leased_again(before, lease)
                continue
            self._bench.held[lease.id] = lease
            if lease.crashes:
                self._bench.crashed.add(lease.ref)
            # Stopped while the trip was under way, or no room after all.
            if not self._claiming or self._bench.internal_queue.full():
                self._bench.hand_back(lease)
            elif lease.lane:
                self._start_on_time(lease)
            else:
                self._bench.internal_queue.put_nowait(lease)

    def _leased_again(self, before: Lease, lease: Lease) -> None:
        """The queue has forgotten a claim of ours, because its server crashed or a replica took
        over that lagged, and has leased the job here once more. Its run is good for both, unless
        somebody has enqueued another job with the same id since: then only a new membership can
        tell the two apart."""
        if (lease.enqueued_at, lease.payload) != (before.enqueued_at, before.payload):
            self._lapsed()

    def _deliver(self, exchange: Exchange, want: Want | None) -> None:
        self.take(exchange.leases)
        if want is not None:
            # A trip that asked for nothing in lanes has not learnt when they are to be looked at.
            soon = (exchange.next_at, None if want.lanes else self._next_at)
            self._next_at = min((at for at in soon if at is not None), default=None)
            without_lane = sum(not lease.lane for lease in exchange.leases)
            if want.limit and without_lane >= want.limit:
                self._may_claim = True  # there may be more
            # Of what was asked for. There may be more room by now, since a job has ended or waits.
            if want.ordinary is not None:
                ordinary = sum(lease.priority > Priority.HIGH for lease in exchange.leases)
                self._ordinary_left = want.ordinary - ordinary
            if want.lanes:
                self._lanes_left = want.lanes - (len(exchange.leases) - without_lane)

    def _start_on_time(self, lease: Lease) -> None:
        """A permit may lie slightly ahead; its job waits here, and no worker with it."""
        self._bench.in_lanes.add(lease.ref)
        delay = lease.start_at - self._bench.member.now()
        if delay <= 0:
            self._bench.internal_queue.put_nowait(lease)
            return

        def due() -> None:
            del self._timers[lease.ref]
            if self._bench.internal_queue.full():
                self._bench.hand_back(lease)
            else:
                self._bench.internal_queue.put_nowait(lease)

        timer = asyncio.get_running_loop().call_later(delay, due)
        self._timers[lease.ref] = (timer, lease)

    def take_waiting(self) -> list[Lease]:
        """Every job that is here and has not started; it starts no more."""
        taken = [lease for _, lease in self._timers.values()]
        for timer, _ in self._timers.values():
            timer.cancel()
        self._timers.clear()
        return taken + self._bench.internal_queue.take_older(0)

    async def _after(
        self, settled: list[tuple[Settlement, Run | None]], exchange: Exchange
    ) -> None:
        """Say what is worth saying; and a settled job may come back before anything else."""
        stale = {settlement.lease.ref for settlement in exchange.stale}
        cancelled = await self._cancelled(exchange.stale)
        for settlement, _ in settled:
            run_at = settlement.run_at
            if run_at and (self._next_at is None or run_at < self._next_at):
                self._next_at = run_at
            if stale or settlement.error is not None:
                lease = settlement.lease
                tell(
                    settlement,
                    exchange,
                    stale=lease.ref in stale,
                    cancelled=lease.id in cancelled,
                    quotes=self._quotes(lease),
                    names=self._settings.logging.hidden_names,
                )

    def _quotes(self, lease: Lease) -> bool:
        """Whether the log may say what the error says: those of our own jobs may quote a
        document."""
        handler = self._bench.handlers[lease.kind]
        return self._settings.logging.log_errors == "message" and not handler.built_in

    async def _cancelled(self, stale: Sequence[Settlement]) -> set[str]:
        """Which of these were refused because somebody has cancelled the job: that is no trouble,
        as what was lost to another process is."""
        if not stale:
            return set()
        try:
            jobs = await self._look_up([settlement.lease.id for settlement in stale])
        except QueueError:
            return set()
        return {job.id for job in jobs.values() if job.state is JobState.CANCELLED}

    def _want(self) -> Want:
        bench, waiting = self._bench, self._bench.internal_queue.qsize()
        ordinary, room = self._ordinary_room(), self._lane_room()
        kinds, most = self._kinds_and_room()
        # What was left behind for want of room may fit now.
        if ordinary is not None and ordinary > self._ordinary_left:
            self._may_claim = self._may_claim_lanes = True
        if room > self._lanes_left:
            self._may_claim_lanes = True
        bounded = self._bounded_room()
        if any(bounded[kind] for kind in self._omitted):
            self._may_claim = self._may_claim_lanes = True
        if self._next_at is not None and bench.member.now() >= self._next_at:
            self._may_claim = self._may_claim_lanes = True
            self._next_at = None
        lanes = room if self._may_claim_lanes else 0
        prefetch = self._prefetch() if ordinary is None else 0
        taken = bench.busy + bench.internal_queue.coming_back
        free = self._settings.max_workers - taken - waiting
        limit = 0
        # Unless there is enough at hand: then many are claimed at once, later.
        scarce = waiting <= prefetch // 10
        if self._may_claim and (scarce or prefetch - waiting >= WORTHWHILE):
            space = bench.internal_queue.maxsize - waiting - len(self._timers) - lanes
            limit = max(0, min(free + prefetch, space))
        # What is handed over comes beside what the next trip claims: reserved workers would not
        # stay free.
        later = max(0, free) if ordinary is None else 0
        if len(kinds) < len(self._kinds):
            later = 0
        lanes, limit, later = min(lanes, most), min(limit, most), min(later, most)
        want = Want(limit, kinds, not bench.crashed, lanes, ordinary, later)
        return self._bounded(want, bounded) if bounded else want

    def _kinds_and_room(self) -> tuple[dict[str, KindDefaults], int]:
        """What may be claimed, and how much, so that all that is here can wait for permits at a
        time. When that is much, kinds of which many wait are left out: other kinds go on. Jobs that
        wait for other jobs do not count: what they wait for has to be claimed."""
        bench, workers = self._bench, self._settings.max_workers
        here = len(bench.runs) + bench.internal_queue.qsize() + len(self._timers)
        most = max(parking.MOST, workers)
        left_out: set[str] = set()
        if here + bench.internal_queue.maxsize + workers > most:
            runs = [bench.runs[ref] for ref in bench.parked]
            waiting = Counter(run.lease.kind for run in runs if not run.for_others)
            here -= len(runs) - waiting.total()
            if here >= most:
                most *= 2
                left_out = {kind for kind, count in waiting.items() if count > workers}
        if self._left_out - left_out:
            self._may_claim = self._may_claim_lanes = True
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
        runs = (*self._bench.runs.values(), *self._bench.stuck.values())
        here = [run.lease for run in runs]
        here += self._bench.internal_queue.waiting()
        return here + [lease for _, lease in self._timers.values()]

    def _ordinary_room(self) -> int | None:
        """How many more jobs below high priority fit without the reserved workers."""
        if not self._settings.reserved_workers:
            return None
        here = (lease for lease in self._here() if lease.ref not in self._bench.parked)
        taken = sum(lease.priority > Priority.HIGH for lease in here)
        return max(0, self._settings.max_workers - self._settings.reserved_workers - taken)

    def _lane_room(self) -> int:
        """Jobs in lanes that would find a worker at their start time. They go before others in
        the internal queue, so only runs that last count as in their way."""
        now, bench = self._bench.member.now(), self._bench
        lasting = sum(
            1
            for ref, run in bench.runs.items()
            if ref not in bench.in_lanes
            and ref not in bench.parked
            and now - run.started_at > PREFETCH_HORIZON
        )
        stuck = sum(run.placed for run in bench.stuck.values())
        taken = lasting + stuck + len(bench.in_lanes) - len(bench.in_lanes & bench.parked)
        # The internal queue is shared: jobs without a lane keep at least half of it.
        most = bench.internal_queue.maxsize // 2
        return max(0, min(self._settings.max_workers - taken, most - len(self._timers)))

    def _prefetch(self) -> int:
        ahead = self._settings.max_workers * PREFETCH_HORIZON
        average = max(self._bench.average_seconds, 1e-6)
        return min(self._settings.internal_queue, int(ahead / average))

    def _settling_due(self) -> bool:
        settler = self._bench.settler
        # While the workers have enough at hand, outcomes wait for the next claim's trip.
        plenty = self._claiming and not self._bench.internal_queue.empty()
        return settler.due(GATHER_SECONDS if plenty else 0.0)

    def _hand_back_waiting(self) -> None:
        """What was claimed ahead and not started in time goes back for others to take."""
        bench = self._bench
        for lease in bench.internal_queue.take_older(self._settings.prefetch_seconds):
            bench.hand_back(lease)
            # Whoever takes it, it is not this process: its workers are busy with long jobs.
            bench.average_seconds = max(bench.average_seconds, self._settings.prefetch_seconds)

    async def _sleep(self) -> None:
        timeout = self._settings.poll_seconds
        if self._claiming and self._next_at is not None:
            timeout = min(timeout, self._next_at - self._bench.member.now())
        timeout = min(timeout, self._bench.settler.due_in(GATHER_SECONDS))
        age = self._bench.internal_queue.oldest_age()
        if age is not None:
            timeout = min(timeout, self._settings.prefetch_seconds - age)
        try:
            # Also when the time is up already: the event loop must get its turn.
            async with asyncio.timeout(max(0.0, timeout)):
                await self._wake.wait()
        except TimeoutError:
            if timeout == self._settings.poll_seconds:
                self._may_claim = self._may_claim_lanes = True
        self._wake.clear()


def _freed(load: Load) -> set[str]:
    """The lanes in which the trip frees slots."""
    freed = {settlement.lease.lane for settlement, _ in load.settlements}
    freed.update(one.permit.lane for one in load.returned)
    freed.discard(NO_LANE)
    return freed
