"""A process as member of the queue: it joins, renews its leases, and joins again after a lapse."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from penstock.engine.claims import Claims
from penstock.engine.events import EngineEvents
from penstock.engine.renewer import Renewer
from penstock.engine.retry import reconnect_delay
from penstock.engine.run import Interrupt
from penstock.engine.running import Running
from penstock.engine.service import Service
from penstock.engine.settler import Settler
from penstock.engine.status import EngineStatus
from penstock.engine.watchdog import Watchdog
from penstock.errors import QueueError
from penstock.model.settings import Settings
from penstock.model.tally import Tally
from penstock.ports.queue import JobQueue, Member

log = logging.getLogger("penstock")


class Membership(Service):
    """`join` makes the process a member. From `start` to `stop` a thread renews its leases; should
    they be lost all the same, everything that was done under them is given up, and it joins
    again."""

    name = "membership"
    member: Member
    """The present one, from `join` on: another after each lapse."""
    _renewer: Renewer

    def __init__(
        self,
        queue: JobQueue,
        kinds: Sequence[str],
        max_workers: int,
        settings: Settings,
        events: EngineEvents,
        settler: Settler,
        claims: Claims,
        running: Running,
        watchdog: Watchdog,
        status: EngineStatus,
    ) -> None:
        self._queue = queue
        self._kinds = sorted(kinds)
        self._max_workers = max_workers
        self._settings = settings
        self._events = events
        self._settler = settler
        self._claims = claims
        self._running = running
        self._watchdog = watchdog
        self._status = status

    async def join(self) -> None:
        self.member = await self._queue.join(
            self._kinds, self._max_workers, self._settings.lease_seconds, self._claims
        )

    def start(self) -> None:
        super().start()
        self._start_renewer()

    async def run(self) -> None:
        while True:
            await self._events.lapsed.wait()
            log.error("membership expired, all leases are lost; rejoining")
            await self._rejoin()

    async def _rejoin(self) -> None:
        """Others have taken over what this process held (it was frozen, or cut off too long)."""
        self._watchdog.interrupt_all(Interrupt.LEASE_LOST)
        self._claims.void()
        self._settler.forget()
        await self._renewer.stop()
        failures = 0
        while True:
            try:
                await self.member.leave()
                await self.join()
                break
            except QueueError as error:
                failures += 1
                log.warning("cannot rejoin yet: %s", error)
                await asyncio.sleep(reconnect_delay(failures, self._settings))
        self._events.lapsed.clear()
        self._running.tally = Tally()  # another membership: its counters start again
        self._start_renewer()
        self._claims.ready()

    def _start_renewer(self) -> None:
        interval = self._settings.lease_seconds / 3
        self._renewer = Renewer(self.member, interval, self._status, self._running, self._events)
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
