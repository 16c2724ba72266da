"""Listens for changes that other processes make to the queue."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from penstock.engine.background import Service
from penstock.engine.claims import Claims
from penstock.engine.events import EngineEvents
from penstock.engine.membership import Membership
from penstock.engine.requests import Requests
from penstock.engine.run import Interrupt
from penstock.engine.running import Running
from penstock.engine.watchdog import Watchdog
from penstock.errors import QueueError
from penstock.ports.queue import JobQueue, Topic, Wakeup

log = logging.getLogger("penstock")

HEARD_SECONDS = 0.01
"""Between two looks for permits because something happened somewhere."""


@dataclass(eq=False)
class ReadyListener(Service):
    """There may be something to claim, or a permit to be had."""

    name = "ready"

    queue: JobQueue
    claims: Claims
    requests: Requests

    async def run(self) -> None:
        listener = self.queue.listen(Topic.READY)
        try:
            while True:
                await listener.wait(None)
                self.claims.ready()
                self.requests.changed(pause=HEARD_SECONDS)
        finally:
            listener.close()


@dataclass(eq=False)
class CancelListener(Service):
    """Interrupts runs whose job has been cancelled, and lets those claimed ahead not start."""

    name = "cancelled"

    queue: JobQueue
    poll_seconds: float
    events: EngineEvents
    membership: Membership
    claims: Claims
    running: Running
    watchdog: Watchdog

    async def run(self) -> None:
        listener = self.queue.listen(Topic.CANCELLED)
        doubts = asyncio.create_task(self._pass_on_doubts(listener), name="penstock-doubts")
        try:
            while True:
                # The time-out covers a wake-up that never came, to whatever runs by then.
                if await listener.wait(self.poll_seconds) or self.running.runs:
                    await self._look()
        finally:
            doubts.cancel()
            listener.close()

    async def _pass_on_doubts(self, listener: Wakeup) -> None:
        while True:
            await self.events.doubted.wait()
            self.events.doubted.clear()
            listener.ring()

    async def _look(self) -> None:
        try:
            cancelled = set(await self.membership.member.cancelled())
        except QueueError as error:
            log.debug("cannot check for cancelled jobs: %s", error)
            return
        runs = [run for run in self.running.runs.values() if run.lease.seq in cancelled]
        for run in runs:
            self.watchdog.interrupt(run, Interrupt.CANCELLED)
        self.claims.dropped = cancelled.difference(run.lease.seq for run in runs)
