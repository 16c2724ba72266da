"""The dispatcher: the only component of a process that talks to the queue for its workers.

Each trip settles what has ended and claims what there is room for. While a trip is under way
outcomes gather for the next one, so batches grow with the load by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from penstock import runtime
from penstock.engine.background import Service
from penstock.engine.claims import Claims
from penstock.engine.events import EngineEvents
from penstock.engine.handlers import Handlers
from penstock.engine.log_fields import tell
from penstock.engine.membership import Membership
from penstock.engine.queue_health import DEGRADED_AFTER, QueueHealth
from penstock.engine.requests import Requests
from penstock.engine.retry import reconnect_delay
from penstock.engine.room import Room
from penstock.engine.run import Run
from penstock.engine.run_counts import count_runs
from penstock.engine.running import Running
from penstock.engine.settler import Load, Settler
from penstock.errors import QueueError
from penstock.model.job import JobState
from penstock.model.settings import EngineConfig
from penstock.ports.queue import NO_LANE, Exchange, JobQueue, Lease, Member, Settlement, Want

GATHER_SECONDS = 0.005
"""While the workers have jobs at hand, outcomes wait this long for company."""


@dataclass(eq=False)
class Dispatcher(Service):
    """Fills the internal queue, empties the settler."""

    name = "dispatcher"

    queue: JobQueue
    settings: EngineConfig
    handlers: Handlers
    events: EngineEvents
    settler: Settler
    claims: Claims
    running: Running
    membership: Membership
    requests: Requests
    health: QueueHealth
    room: Room
    _finishing: bool = False

    async def finish(self, seconds: float) -> None:
        """End once everything is settled. QueueError or TimeoutError if that was not to be done."""
        assert self.task is not None
        self._finishing = True
        self.events.due.set()
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(self.task)
        finally:
            await self.stop()

    async def run(self) -> None:
        """Until finished. Whatever goes wrong, it goes on: a process without a dispatcher would
        look alive and do nothing."""
        health = self.health
        while not (self._finishing and self.settler.empty):
            try:
                if await self._turn() and health.failures:
                    health.reached()
            except Exception as error:
                health.failed(error)
                if self._finishing and health.failures >= DEGRADED_AFTER:
                    raise
                await asyncio.sleep(reconnect_delay(health.failures, self.settings))

    async def _turn(self) -> bool:
        """Make a trip to the queue if there is reason to, else sleep; whether one was made."""
        self._hand_back_waiting()
        want = self.room.want() if self.claims.open else None
        if not (want and want.looks) and not self._settling_due():
            await self._sleep()
            return False
        load = self.settler.take()
        freed = _freed(load)
        want, gives_way = self._share(want, load, freed)
        if want is not None:
            self.room.asking(want)
        member, exchange = await self._trip(load, want)
        self.settler.stored(load)
        self.claims.settled([settlement.lease for settlement, _ in load.settlements])
        if member is not self.membership.member:
            # A trip that took so long that the process has lapsed and joined again meanwhile. What
            # it has leased belonged to the membership before: others may hold it by now.
            self.claims.ready()
        elif not exchange.member:
            self.events.lapsed.set()  # nothing can be claimed until it has joined again
        elif not self.events.lapsed.is_set():
            self.claims.put(exchange.leases)
            if want is not None:
                self.room.learn(want, exchange)
        count_runs(self.running.tally, load.settlements, exchange)
        await self._after(load.settlements, exchange)
        if freed:
            self.requests.changed()
            if gives_way:
                await asyncio.sleep(0)  # it asks before the next claim
        return True

    def _share(self, want: Want | None, load: Load, freed: set[str]) -> tuple[Want | None, bool]:
        """Slots that are freed go to whoever waits: to jobs in line with this trip, else to
        requests after it. What to ask for, and whether it gives way to requests."""
        if want is not None and load.returned:
            gives_way = self.requests.come_first(freed)
            self.claims.likely_in_lanes = True
            return want._replace(lanes=0) if gives_way else self.room.want(), gives_way
        if want is not None and want.lanes and freed and self.requests.come_first(freed):
            return want._replace(lanes=0), True
        return want, False

    async def _trip(self, load: Load, want: Want | None) -> tuple[Member, Exchange]:
        """The membership it was made with: the process may have joined again meanwhile."""
        begun = runtime.monotonic()
        try:
            if load.charges:  # before the runs that have used it are over
                from penstock.engine.charges import enter  # few jobs spend anything

                await enter(load.charges, self.queue, self.settler)
            member = self.membership.member
            exchange = await member.exchange(
                [settlement for settlement, _ in load.settlements],
                load.progress,
                want,
                load.returned,
            )
        except BaseException:
            self.settler.put_back(load)
            self.claims.likely = self.claims.likely_in_lanes = True
            raise
        self.health.trips += 1
        self.health.trip_seconds += runtime.monotonic() - begun
        if any(lease.reserved for lease in exchange.leases):
            from penstock.engine.charges import start_all  # few lanes count amounts

            exchange = await start_all(exchange, self.queue, self.settings.prices, self.settler)
        return member, exchange

    async def _after(
        self, settled: list[tuple[Settlement, Run | None]], exchange: Exchange
    ) -> None:
        """Say what is worth saying; and a settled job may come back before anything else."""
        stale = {settlement.lease.ref for settlement in exchange.stale}
        cancelled = await self._cancelled(exchange.stale)
        for settlement, _ in settled:
            if settlement.run_at:
                self.room.due_at(settlement.run_at)
            if stale or settlement.error is not None:
                lease = settlement.lease
                tell(
                    settlement,
                    exchange,
                    stale=lease.ref in stale,
                    cancelled=lease.id in cancelled,
                    quotes=self._quotes(lease),
                    names=self.settings.logging.hidden_names,
                )

    def _quotes(self, lease: Lease) -> bool:
        """Whether the log may say what the error says: those of our own jobs may quote a
        document."""
        handler = self.handlers[lease.kind]
        return self.settings.logging.log_errors == "message" and not handler.built_in

    async def _cancelled(self, stale: Sequence[Settlement]) -> set[str]:
        """Which of these were refused because somebody has cancelled the job: that is no trouble,
        as what was lost to another process is."""
        if not stale:
            return set()
        try:
            jobs = await self.queue.get([settlement.lease.id for settlement in stale])
        except QueueError:
            return set()
        return {job.id for job in jobs.values() if job.state is JobState.CANCELLED}

    def _settling_due(self) -> bool:
        # While the workers have enough at hand, outcomes wait for the next claim's trip.
        plenty = self.claims.open and not self.claims.internal_queue.empty()
        return self.settler.due(GATHER_SECONDS if plenty else 0.0)

    def _hand_back_waiting(self) -> None:
        """What was claimed ahead and not started in time goes back for others to take."""
        longest, running = self.settings.prefetch_seconds, self.running
        for lease in self.claims.internal_queue.take_older(longest):
            self.claims.hand_back(lease)
            # Whoever takes it, it is not this process: its workers are busy with long jobs.
            running.average_seconds = max(running.average_seconds, longest)

    async def _sleep(self) -> None:
        timeout = self.settings.poll_seconds
        if self.claims.open and self.room.next_at is not None:
            timeout = min(timeout, self.room.next_at - self.queue.now())
        timeout = min(timeout, self.settler.due_in(GATHER_SECONDS))
        age = self.claims.internal_queue.oldest_age()
        if age is not None:
            timeout = min(timeout, self.settings.prefetch_seconds - age)
        try:
            # Also when the time is up already: the event loop must get its turn.
            async with asyncio.timeout(max(0.0, timeout)):
                await self.events.due.wait()
        except TimeoutError:
            if timeout == self.settings.poll_seconds:
                self.claims.likely = self.claims.likely_in_lanes = True
        self.events.due.clear()


def _freed(load: Load) -> set[str]:
    """The lanes in which the trip frees slots."""
    freed = {settlement.lease.lane for settlement, _ in load.settlements}
    freed.update(one.permit.lane for one in load.returned)
    freed.discard(NO_LANE)
    return freed
