"""The internal queue: jobs that a process has claimed and not started yet, and when to claim more.

`InternalQueue` holds them between the dispatcher and the workers, `Claims` keeps account of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock import runtime
from penstock.engine.events import EngineEvents
from penstock.engine.settler import Settler
from penstock.ports.queue import Lease, Outcome, Ref, Settlement

FIRST_SLACK = 0.02
MAX_SLACK = 1.0

Place = asyncio.Future[None]
"""A worker's place that a job wants which has waited for others; done when it has it."""


class StartSlack:
    """The time by which starts of this process may be late in lanes that space them.

    A late start is void, as it would crowd the next one. On a machine that has more to do than it
    can, every start may be late, and nothing would ever be started. So a process that has missed
    two starts in a row asks for starts that may be later, for which their lanes leave room.
    """

    seconds = 0.0
    _missed = False

    def in_time(self, start_at: float, void_at: float, now: float) -> bool:
        """Whether a start of that time may still be made."""
        if now > void_at:
            if self._missed:
                self.seconds = min(MAX_SLACK, max(FIRST_SLACK, 2 * self.seconds))
            self._missed = True
            return False
        self._missed = False
        if now - start_at < self.seconds / 2:
            self.seconds = self.seconds / 2 if self.seconds > FIRST_SLACK else 0.0
        return True


class InternalQueue(asyncio.Queue[Lease | Place]):
    """An asyncio.Queue that knows how long its jobs have waited. Jobs that come back from waiting
    for others are served first, and do not count: they have been claimed long since."""

    def _init(self, maxsize: int) -> None:
        self._waiting: deque[tuple[float, Lease]] = deque()
        self._in_lanes: deque[tuple[float, Lease]] = deque()
        """These go before others: their permits are for now."""
        self._coming_back: deque[Place] = deque()

    def qsize(self) -> int:
        return len(self._waiting) + len(self._in_lanes)

    def empty(self) -> bool:
        return not (self._waiting or self._in_lanes or self._coming_back)

    @property
    def coming_back(self) -> int:
        """How many jobs wait for a worker's place."""
        return len(self._coming_back)

    def come_back(self) -> Place:
        """Ask for the place of the next worker that is free."""
        place: Place = asyncio.get_running_loop().create_future()
        self._coming_back.append(place)
        self._wakeup_next(self._getters)  # type: ignore[attr-defined]
        return place

    def withdraw(self, place: Place) -> None:
        """The place is not wanted any more."""
        self._coming_back.remove(place)

    def _put(self, item: Any) -> None:  # a lease: places are asked for by `come_back`
        (self._in_lanes if item.lane else self._waiting).append((runtime.monotonic(), item))

    def _get(self) -> Lease | Place:
        if self._coming_back:
            return self._coming_back.popleft()
        return (self._in_lanes or self._waiting).popleft()[1]

    def waiting(self) -> list[Lease]:
        return [lease for _, lease in (*self._in_lanes, *self._waiting)]

    def oldest_age(self) -> float | None:
        """Seconds the job that came first has waited; None when empty."""
        heads = [waiting[0][0] for waiting in (self._in_lanes, self._waiting) if waiting]
        return runtime.monotonic() - min(heads) if heads else None

    def take_older(self, seconds: float) -> list[Lease]:
        """Remove and return the jobs that have waited that long."""
        before = runtime.monotonic() - seconds
        taken = []
        for waiting in (self._in_lanes, self._waiting):
            while waiting and waiting[0][0] <= before:
                taken.append(waiting.popleft()[1])
                self._wakeup_next(self._putters)  # type: ignore[attr-defined]
        return taken


class Claims:
    """Filled by the dispatcher and, through the inbox of the membership, by queues that lease jobs
    unasked. Emptied by workers."""

    def __init__(
        self, maxsize: int, settler: Settler, events: EngineEvents, now: Callable[[], float]
    ) -> None:
        self.internal_queue = InternalQueue(maxsize=maxsize)
        self._settler = settler
        self._events = events
        self._now = now
        self._timers: dict[Ref, tuple[asyncio.TimerHandle, Lease]] = {}
        self.held: dict[str, Lease] = {}
        """The newest lease of each job (by id) here, until the queue has answered for its end."""
        self.crashed: set[Ref] = set()
        """Jobs here with a crash on their record; at most one, and those back from waiting."""
        self.slack = StartSlack()
        self.in_lanes: set[Ref] = set()
        """Jobs here that hold a permit: about to start, or running."""
        self.dropped: set[int] = set()
        """Jobs (by seq) claimed ahead that have been cancelled since."""
        self.open = True
        """Whether more may be claimed."""
        self.likely = self.likely_in_lanes = True
        """There may be something to claim, without a lane or in one: not known to be empty."""

    def ready(self) -> None:
        """There may be something to claim."""
        self.likely = self.likely_in_lanes = True
        self._events.due.set()

    def close(self) -> None:
        """Claim no more."""
        self.open = False
        self._events.due.set()

    def put(self, leases: Sequence[Lease]) -> None:
        """Start jobs that were leased to this process, or give back those it has no room for."""
        for lease in leases:
            before = self.held.get(lease.id)
            if before is not None and before.ref == lease.ref:
                self._leased_again(before, lease)
                continue
            self.held[lease.id] = lease
            if lease.seq in self.dropped:
                # A cancel of before this claim was taken back by a failover; one since is found.
                self.dropped.discard(lease.seq)
                self._events.doubted.set()
            if lease.crashes:
                self.crashed.add(lease.ref)
            # Closed while the trip was under way, or no room after all.
            if not self.open or self.internal_queue.full():
                self.hand_back(lease)
            elif lease.lane:
                self._start_on_time(lease)
            else:
                self.internal_queue.put_nowait(lease)

    def _leased_again(self, before: Lease, lease: Lease) -> None:
        """The queue has forgotten a claim of ours, because its server crashed or a replica took
        over that lagged, and has leased the job here once more. Its run is good for both, unless
        somebody has enqueued another job with the same id since: then only a new membership can
        tell the two apart."""
        if (lease.enqueued_at, lease.payload) != (before.enqueued_at, before.payload):
            self._events.lapsed.set()

    def _start_on_time(self, lease: Lease) -> None:
        """A permit may lie slightly ahead; its job waits here, and no worker with it."""
        self.in_lanes.add(lease.ref)
        delay = lease.start_at - self._now()
        if delay <= 0:
            self.internal_queue.put_nowait(lease)
            return

        def due() -> None:
            del self._timers[lease.ref]
            if self.internal_queue.full():
                self.hand_back(lease)
            else:
                self.internal_queue.put_nowait(lease)

        timer = asyncio.get_running_loop().call_later(delay, due)
        self._timers[lease.ref] = (timer, lease)

    @property
    def timed(self) -> int:
        """How many jobs wait for the start that their permit allows."""
        return len(self._timers)

    def waiting(self) -> list[Lease]:
        """Every job that is here and has not started."""
        return self.internal_queue.waiting() + [lease for _, lease in self._timers.values()]

    def take_waiting(self) -> list[Lease]:
        """Every job that is here and has not started; it starts no more."""
        taken = [lease for _, lease in self._timers.values()]
        for timer, _ in self._timers.values():
            timer.cancel()
        self._timers.clear()
        return taken + self.internal_queue.take_older(0)

    def hand_back(self, lease: Lease, outcome: Outcome = Outcome.HANDED_BACK) -> None:
        """End a lease whose job was not started."""
        self.ended(lease)
        self._settler.add(Settlement(lease, outcome), None)

    def refuse(self, lease: Lease, now: float) -> None:
        """End a lease whose job can never start."""
        error = {"type": "AmountTooLarge", "message": lease.refused, "retryable": False}
        self.ended(lease)
        failed = Settlement(lease, Outcome.FAILED, started_at=now, finished_at=now, error=error)
        self._settler.add(failed, None)

    def ended(self, lease: Lease) -> None:
        """The lease has ended here, one way or another."""
        self.in_lanes.discard(lease.ref)
        if lease.crashes:
            self.crashed.discard(lease.ref)
            self.ready()  # another of its kind may run now

    def settled(self, leases: Iterable[Lease]) -> None:
        """The queue has answered for their end."""
        held = self.held
        for lease in leases:
            if held.get(lease.id) is lease:
                del held[lease.id]

    def void(self) -> None:
        """Every lease is lost."""
        self.take_waiting()
        self.held.clear()
        self.crashed.clear()
        self.in_lanes.clear()
