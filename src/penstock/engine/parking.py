"""Parks jobs that wait for other jobs or for permits: they give up their worker meanwhile.

A handler runs in its worker's own task, so a job that waits keeps that task and another worker is
started in its stead. When the job comes back it stands first in the internal queue; the worker
that takes it from there ends, and the job goes on in its place. So there are always as many
workers as there should be, and never more jobs running.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from penstock.engine.claims import Claims
from penstock.engine.run import Interrupt, Run, undisturbed
from penstock.engine.running import Running
from penstock.engine.waiters import JobWaiters
from penstock.engine.watchdog import Watchdog
from penstock.errors import JobNotFound, RunLater
from penstock.model.job import Job

MOST = 1000
"""Jobs parked in one process; each takes memory, and a slot in its life file. When so many are here
in all, kinds of which many wait for permits are not claimed; twice as many is the end of it."""
LATER_SECONDS = 5.0
"""One that would be too many is run again after this time; others go first meanwhile."""


class HasId(Protocol):
    """A reference to a job."""

    @property
    def id(self) -> str: ...


@dataclass(eq=False)
class Parking:
    """Takes runs off their workers, and brings them back."""

    claims: Claims
    running: Running
    watchdog: Watchdog
    waiters: JobWaiters

    async def finished(self, run: Run, jobs: Iterable[Job | HasId]) -> AsyncGenerator[Job, None]:
        """See `JobContext.finished`."""
        asked = {job.id: job for job in jobs}
        over = [job for job in asked.values() if isinstance(job, Job) and job.state.finished]
        for job in over:
            yield job
        known = {job.id for job in over}
        waiting = [job_id for job_id in asked if job_id not in known]
        while waiting:
            async with self.parked(run):
                found = await self.waiters.wait_any(waiting, None)
            waiting = [job_id for job_id in waiting if job_id not in found]
            for job_id, ended in found.items():
                if ended is None:
                    raise JobNotFound(job_id)
                yield ended

    @asynccontextmanager
    async def parked(self, run: Run, timed: bool = True) -> AsyncIterator[None]:
        """See `JobContext.parked`. A handler may wait in several tasks at a time: it is parked
        while any of them does."""
        if run.placed and self.running.has(run):
            if len(self.running.parked) >= MOST:
                raise RunLater(LATER_SECONDS, f"{MOST} jobs wait for others in this process")
            self.running.leave_worker(run)
        run.waits += 1
        run.for_others += 1
        self._let_others_run(run)
        if not timed:
            run.stop_clock()
        try:
            yield
        finally:
            run.for_others -= 1
            try:
                await self._end_wait(run)
            finally:
                if not timed:
                    self._start_clock(run)

    def lend(self, run: Run) -> None:
        """The run waits for a permit, and has no worker until `reclaim`: also while it makes the
        request, which its lane bounds. Where too many are parked it keeps its worker."""
        run.stop_clock()
        if run.placed and self.running.has(run) and len(self.running.parked) < 2 * MOST:
            self.running.leave_worker(run)
        run.waits += 1

    def go_on(self, run: Run) -> None:
        """It has its permit, or none is to be had."""
        run.start_clock()
        if self.running.has(run) and run.interrupted is None:
            self.watchdog.watch(run)
            run.mark()

    async def reclaim(self, run: Run) -> None:
        """Its request is over. To wait for a worker costs it no time."""
        run.stop_clock()
        try:
            await self._end_wait(run)
        finally:
            self._start_clock(run)

    def _start_clock(self, run: Run) -> None:
        run.start_clock()
        if self.running.has(run):
            self.watchdog.watch(run)

    async def _end_wait(self, run: Run) -> None:
        run.waits -= 1
        # A run that is cut short ends at once, worker or not.
        if not run.waits and not run.placed and run.interrupted is None:
            await self._come_back(run)

    def _let_others_run(self, run: Run) -> None:
        if run.lease.crashes:
            # What it waits for may have been running beside it, and have a crash on record, too.
            self.claims.crashed.discard(run.lease.ref)
            self.claims.ready()
        if self.running.draining and self.running.has(run):  # they may never run here
            loop = asyncio.get_running_loop()
            loop.call_soon(self.watchdog.interrupt, run, Interrupt.STOPPING)

    async def _come_back(self, run: Run) -> None:
        """Wait for a worker to end in favour of this job. A cancellation by the handler itself
        (its own time-out) has to wait, too: the handler goes on after it."""
        claims, running, lease = self.claims, self.running, run.lease
        if not running.has(run):
            return
        running.parked.discard(lease.ref)
        if lease.crashes:
            claims.crashed.add(lease.ref)
        place = claims.internal_queue.come_back()
        cancelled = await undisturbed(place, run)
        if not place.done():
            claims.internal_queue.withdraw(place)
        elif not running.has(run):
            running.give_place()
        else:
            running.take_worker(run)
            if run.waits:
                self.running.leave_worker(run)
            if run.for_others:
                self._let_others_run(run)
        if cancelled is not None:
            raise cancelled
