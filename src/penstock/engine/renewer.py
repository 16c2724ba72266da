"""Keeps the leases of a process alive, from a thread of its own.

A thread, because a handler may block the event loop for longer than a lease. It ends only
after the last running job has been settled.
"""

from __future__ import annotations

import asyncio
import logging

from penstock import runtime
from penstock.engine.events import EngineEvents
from penstock.engine.running import Running
from penstock.engine.status import EngineStatus
from penstock.errors import QueueError
from penstock.ports.queue import Member

log = logging.getLogger("penstock")


class Renewer:
    """Renews at every interval, and when the status has changed, until stopped or lapsed."""

    def __init__(
        self,
        member: Member,
        interval: float,
        status: EngineStatus,
        running: Running,
        events: EngineEvents,
    ) -> None:
        self._member = member
        self._interval = interval
        self._status = status
        self._running = running
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._failing = False

    def start(self) -> None:
        self._ticking = runtime.start_ticking(
            "penstock-renew", self.run, self._interval, self._events.status
        )

    async def stop(self) -> None:
        await self._ticking.stop()

    def run(self) -> float | None:
        """Seconds until the next renewal; None: the membership has lapsed."""
        try:
            if not self._member.renew(self._status.as_dict(), list(self._running.holds.values())):
                self._loop.call_soon_threadsafe(self._events.lapsed.set)
                return None
        except QueueError as error:
            if not self._failing:
                log.warning("cannot renew leases, retrying: %s", error)
            self._failing = True
            return self._interval / 5
        if self._failing:
            log.warning("leases can be renewed again")
        self._failing = False
        return self._interval
