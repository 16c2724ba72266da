"""Hears of changes that any process has made to the queue."""

from __future__ import annotations

import logging

from penstock.engine.claims import Claims
from penstock.engine.membership import Membership
from penstock.engine.permits import PermitBroker
from penstock.engine.run import Interrupt
from penstock.engine.running import Running
from penstock.engine.service import Service
from penstock.engine.watchdog import Watchdog
from penstock.errors import QueueError
from penstock.ports.queue import JobQueue, Topic

log = logging.getLogger("penstock")

HEARD_SECONDS = 0.01
"""Between two looks for permits because something happened somewhere."""


class ReadyListener(Service):
    """There may be something to claim, or a permit to be had."""

    name = "ready"

    def __init__(self, queue: JobQueue, claims: Claims, permits: PermitBroker) -> None:
        self._queue = queue
        self._claims = claims
        self._permits = permits

    async def run(self) -> None:
        listener = self._queue.listen(Topic.READY)
        try:
            while True:
                await listener.wait(None)
                self._claims.ready()
                self._permits.changed(pause=HEARD_SECONDS)
        finally:
            listener.close()


class CancelListener(Service):
    """Interrupts runs whose job has been cancelled, and lets those claimed ahead not start."""

    name = "cancelled"

    def __init__(
        self,
        queue: JobQueue,
        poll_seconds: float,
        membership: Membership,
        claims: Claims,
        running: Running,
        watchdog: Watchdog,
    ) -> None:
        self._queue = queue
        self._poll_seconds = poll_seconds
        self._membership = membership
        self._claims = claims
        self._running = running
        self._watchdog = watchdog

    async def run(self) -> None:
        listener = self._queue.listen(Topic.CANCELLED)
        try:
            while True:
                # The time-out covers a wake-up that never came, while anything runs.
                await listener.wait(self._poll_seconds if self._running.runs else None)
                await self._look()
        finally:
            listener.close()

    async def _look(self) -> None:
        try:
            cancelled = set(await self._membership.member.cancelled())
        except QueueError as error:
            log.debug("cannot check for cancelled jobs: %s", error)
            return
        runs = [run for run in self._running.runs.values() if run.lease.seq in cancelled]
        for run in runs:
            self._watchdog.interrupt(run, Interrupt.CANCELLED)
        self._claims.drop(cancelled.difference(run.lease.seq for run in runs))
