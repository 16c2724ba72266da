"""The membership of a process in the queue: joins, renews its leases, and rejoins after they
expire."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from penstock import runtime
from penstock.engine.background import Service
from penstock.engine.claims import Claims
from penstock.engine.events import EngineEvents
from penstock.engine.retry import reconnect_delay
from penstock.engine.run import Interrupt
from penstock.engine.running import Running
from penstock.engine.settler import Settler
from penstock.engine.status import EngineStatus
from penstock.engine.watchdog import Watchdog
from penstock.errors import QueueError
from penstock.model.settings import EngineConfig
from penstock.model.tally import Tally
from penstock.ports.queue import JobQueue, Lease, Member

if TYPE_CHECKING:
    from penstock.engine.prober import Prober

log = logging.getLogger("penstock")


@dataclass(eq=False)
class Membership(Service):
    """`join` makes the process a member. From `start` to `stop` a thread renews its leases; should
    they be lost all the same, everything that was done under them is given up, and it joins
    again."""

    name = "membership"
    queue: JobQueue
    kinds: Sequence[str]
    max_workers: int
    settings: EngineConfig
    events: EngineEvents
    settler: Settler
    claims: Claims
    running: Running
    watchdog: Watchdog
    status: EngineStatus
    member: Member = field(init=False)
    """The present one, from `join` on: another after each lapse."""
    _inbox: MemberInbox = field(init=False)
    _renewer: Renewer = field(init=False)

    async def join(self) -> None:
        self._inbox = MemberInbox(self.claims)
        self.member = await self.queue.join(
            self.kinds, self.max_workers, self.settings.lease_seconds, self._inbox
        )

    def start(self) -> None:
        super().start()
        self._start_renewer()

    async def run(self) -> None:
        while True:
            await self.events.lapsed.wait()
            log.error("membership expired, all leases are lost; rejoining")
            await self._rejoin()

    async def _rejoin(self) -> None:
        """Others have taken over what this process held (it was frozen, or cut off too long)."""
        self.watchdog.interrupt_all(Interrupt.LEASE_LOST)
        self._inbox.close()
        self.claims.void()
        self.settler.forget()
        await self._renewer.stop()
        failures = 0
        while True:
            try:
                await self.member.leave()
                await self.join()
                break
            except Exception as error:  # a process that is no member does nothing, for ever
                failures += 1
                expected = isinstance(error, QueueError)
                log.warning("cannot rejoin yet: %s", error, exc_info=not expected)
                await asyncio.sleep(reconnect_delay(failures, self.settings))
        self.events.lapsed.clear()
        self.running.tally = Tally()  # another membership: its counters start again
        self._start_renewer()
        self.claims.ready()

    def _start_renewer(self) -> None:
        interval = self.settings.lease_seconds / 3
        self._renewer = Renewer(self.member, interval, self.status, self.running, self.events)
        self._renewer.start()

    async def stop_rejoining(self) -> None:
        """From here on a lapse is of no consequence: the process is about to leave."""
        await super().stop()

    async def stop(self) -> None:
        """Leave. Renewals end here: until now, every job still held is really held."""
        await super().stop()
        await self._renewer.stop()
        try:
            await self.member.leave()
        except QueueError as error:
            log.error("could not leave the queue cleanly; the lease will expire: %s", error)

    async def upkeep(self) -> None:
        await self.member.upkeep()

    async def probe_troubled(self) -> None:
        """Probe the lanes whose turn it is."""
        if due := await self.member.probes():
            await self._prober.probe(self.member, due)

    @cached_property
    def _prober(self) -> Prober:
        from penstock.engine.prober import Prober  # loaded by the first lane in trouble

        return Prober()


class MemberInbox:
    """Where the queue puts jobs that it leases to one membership unasked. What comes when that has
    lapsed is not taken: others may hold it by now."""

    def __init__(self, claims: Claims) -> None:
        self._claims: Claims | None = claims

    def put(self, leases: Sequence[Lease]) -> None:
        if self._claims is not None:
            self._claims.put(leases)

    def close(self) -> None:
        self._claims = None


@dataclass(eq=False)
class Renewer:
    """Renews at every interval, and when the status has changed, until stopped or lapsed. From a
    thread, because a handler may block the event loop for longer than a lease."""

    member: Member
    interval: float
    status: EngineStatus
    running: Running
    events: EngineEvents
    _failing: bool = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ticking = runtime.start_ticking(
            "penstock-renew", self.run, self.interval, self.events.status
        )

    async def stop(self) -> None:
        await self._ticking.stop()

    def run(self) -> float | None:
        """Seconds until the next renewal; None: the membership has lapsed."""
        try:
            if not self.member.renew(self.status.as_dict(), list(self.running.holds.values())):
                self._loop.call_soon_threadsafe(self.events.lapsed.set)
                return None
        except QueueError as error:
            if not self._failing:
                log.warning("cannot renew leases, retrying: %s", error)
            self._failing = True
            return self.interval / 5
        if self._failing:
            log.warning("leases can be renewed again")
        self._failing = False
        return self.interval
