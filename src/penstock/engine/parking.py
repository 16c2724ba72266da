"""Jobs that wait for other jobs, and give up their worker meanwhile.

A handler runs in its worker's own task, so a job that waits keeps that task and another worker is
started in its stead. When the job comes back it stands first in the internal queue; the worker
that takes it from there ends, and the job goes on in its place. So there are always as many
workers as there should be, and never more jobs running.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext

from penstock.engine.bench import Bench
from penstock.engine.run import Interrupt, Run
from penstock.engine.waiters import JobWaiters
from penstock.model.errors import JobNotFound, RunLater
from penstock.model.job import Job

MOST = 1000
"""Jobs parked in one process; each takes memory, and a slot in its life file."""
LATER_SECONDS = 5.0
"""One that would be too many is run again after this time; others go first meanwhile."""


class Parking:
    """`stand_in` starts another worker."""

    def __init__(self, bench: Bench, waiters: JobWaiters, stand_in: Callable[[], None]) -> None:
        self._bench = bench
        self._waiters = waiters
        self._stand_in = stand_in

    async def finished(self, run: Run, jobs: Iterable[Job]) -> AsyncGenerator[Job, None]:
        """See `JobContext.finished`."""
        asked = {job.id: job for job in jobs}
        for job in asked.values():
            if job.state.finished:
                yield job
        waiting = [job.id for job in asked.values() if not job.state.finished]
        while waiting:
            async with self.parked(run):
                found = await self._waiters.wait_any(waiting)
            waiting = [job_id for job_id in waiting if job_id not in found]
            for job_id, ended in found.items():
                if ended is None:
                    raise JobNotFound(job_id)
                yield ended

    @asynccontextmanager
    async def parked(self, run: Run, timed: bool = True) -> AsyncIterator[None]:
        """See `JobContext.parked`. A handler may wait in several tasks at a time: it is parked
        while any of them does."""
        with nullcontext() if timed else self._bench.watchdog.paused(run):
            if run.placed and self._is_under_way(run):
                self._leave(run)
            run.waits += 1
            try:
                yield
            finally:
                run.waits -= 1
                # A run that is cut short ends at once, worker or not.
                if not run.waits and not run.placed and run.interrupted is None:
                    await self._come_back(run)

    def _is_under_way(self, run: Run) -> bool:
        """A task that the handler has left behind waits on its own account."""
        return self._bench.runs.get(run.lease.ref) is run

    def _leave(self, run: Run) -> None:
        bench, lease = self._bench, run.lease
        if len(bench.parked) >= MOST:
            raise RunLater(LATER_SECONDS, f"{MOST} jobs wait for others in this process")
        run.placed = False
        run.unmark()  # it does nothing that could kill the process, and pays for no such death
        bench.parked.add(lease.ref)
        bench.busy -= 1
        if lease.crashes:
            # What it waits for may have been running beside it, and have a crash on record, too.
            bench.crashed.discard(lease.ref)
            bench.ready()
        self._stand_in()
        bench.freed()
        if bench.draining:
            asyncio.get_running_loop().call_soon(run.interrupt, Interrupt.STOPPING)

    async def _come_back(self, run: Run) -> None:
        """Wait for a worker to end in favour of this job. A cancellation by the handler itself
        (its own time-out) has to wait, too: the handler goes on after it."""
        bench, lease = self._bench, run.lease
        if not self._is_under_way(run):
            return
        bench.parked.discard(lease.ref)
        if lease.crashes:
            bench.crashed.add(lease.ref)
        place = bench.internal_queue.come_back()
        cancelled: asyncio.CancelledError | None = None
        while not place.done() and run.interrupted is None:
            try:
                await asyncio.wait([place])
            except asyncio.CancelledError as error:
                cancelled = error
        if not place.done():
            bench.internal_queue.withdraw(place)
        elif not self._is_under_way(run):
            bench.busy -= 1
            self._stand_in()
        else:
            run.placed, run.worker_since = True, bench.member.now()
            if run.interrupted is None:  # else its membership may have lapsed
                run.mark()
            if run.waits:
                self._leave(run)
        if cancelled is not None:
            raise cancelled
