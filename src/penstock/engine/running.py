"""The runs of a process, and the workers that they occupy."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from penstock import runtime
from penstock.engine.events import EngineEvents
from penstock.engine.run import Run
from penstock.model.tally import Tally
from penstock.ports.queue import Lease, Ref


class Running:
    """Changed by workers, and by parking where a run leaves its worker or comes back to one.

    Runs are filed under their lease's ref: after a lapse the same job can be here twice, under
    two leases."""

    def __init__(self, events: EngineEvents) -> None:
        self._events = events
        self.runs: dict[Ref, Run] = {}
        self.stuck: dict[Ref, Run] = {}
        """Settled runs whose handler has not returned; each still occupies its worker."""
        self.holds: dict[Ref, Lease] = {}
        """Stuck jobs that wait for a retry, which must not start before the handler returns."""
        self.parked: set[Ref] = set()
        """Runs that wait for other jobs or for permits, and have no worker meanwhile."""
        self.busy = 0
        self.vacant = 0
        """Workers that are to take the place of those that parked runs have kept."""
        self.average_seconds = 1.0
        """Of recent runs, newer ones weighing more; what prefetching goes by."""
        self.tally = Tally()
        """Of the runs that have ended since the process joined."""
        self.visits = 0
        """Requests that are made for somebody in this process, and for no job."""
        self.draining = False
        """The process is about to stop."""
        self.hurry = False
        """And it is not to wait for anybody."""

    def has(self, run: Run) -> bool:
        """Whether it is under way. A task that its handler has left behind may outlive it."""
        return self.runs.get(run.lease.ref) is run

    def begin(self, run: Run) -> None:
        self.runs[run.lease.ref] = run

    def end(self, run: Run) -> None:
        """Its handler has ended, or is not waited for any more."""
        ref = run.lease.ref
        self.runs.pop(ref, None)
        self.parked.discard(ref)

    def leave_worker(self, run: Run) -> None:
        """The run goes without a worker; another worker is started in its stead."""
        run.placed = False
        run.unmark()  # it does nothing that could kill the process, and pays for no such death
        self.parked.add(run.lease.ref)
        self.give_place()
        self.freed()

    def give_place(self) -> None:
        """A worker is not needed by the run that has it."""
        self.busy -= 1
        self.vacant += 1
        self._events.vacant.set()

    def take_worker(self, run: Run) -> None:
        """The run has a worker again."""
        run.placed, run.worker_since = True, runtime.monotonic()
        if run.interrupted is None:  # else its membership may have lapsed
            run.mark()

    def stick(self, run: Run, *, hold: bool) -> None:
        """It is settled, and its handler goes on. `hold`: it is to be run again."""
        self.stuck[run.lease.ref] = run
        if hold:
            self.holds[run.lease.ref] = run.lease

    def unstick(self, run: Run) -> None:
        self.stuck.pop(run.lease.ref, None)
        self.holds.pop(run.lease.ref, None)

    def took(self, seconds: float) -> None:
        self.average_seconds += (seconds - self.average_seconds) * 0.2

    async def until_idle(self, seconds: float) -> None:
        """Wait until nothing runs, the time is up, or it is in a hurry."""
        freed = self._events.freed
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (self.runs or self.visits) and not self.hurry:
                    freed.clear()
                    await freed.wait()

    def time_stage(self, kind: str, stage: str, seconds: float) -> None:
        """How long a stage of a run of this kind took."""
        self.tally.of(kind).stage(stage).note(seconds)

    def freed(self) -> None:
        """A worker has become free."""
        self._events.freed.set()
        self._events.due.set()
