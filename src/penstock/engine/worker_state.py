"""State shared by the workers of a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.engine.context import Services
from penstock.engine.handlers import Handlers
from penstock.engine.internal_queue import InternalQueue
from penstock.engine.run import Run
from penstock.engine.settler import Settler
from penstock.engine.watchdog import Watchdog
from penstock.model.settings import EngineConfig
from penstock.model.tally import Tally
from penstock.ports.queue import Lease, Member, Outcome, Ref, Settlement


def _nothing() -> None:
    pass


def _never(_run: Run) -> None:
    return None


@dataclass(slots=True)
class WorkerState:
    """The state between dispatcher and workers. Everything about a job is filed under its
    lease's ref: after a lapse the same job can be here twice, under two leases."""

    settings: EngineConfig
    handlers: Handlers
    internal_queue: InternalQueue
    settler: Settler
    watchdog: Watchdog
    member: Member
    services: Services
    held: dict[str, Lease] = field(default_factory=dict)
    """The newest lease of each job (by id) here, until the queue has answered for its end."""
    runs: dict[Ref, Run] = field(default_factory=dict)
    stuck: dict[Ref, Run] = field(default_factory=dict)
    """Settled runs whose handler has not returned; each still occupies its worker."""
    holds: dict[Ref, Lease] = field(default_factory=dict)
    """Stuck jobs that wait for a retry, which must not start before the handler returns."""
    crashed: set[Ref] = field(default_factory=set)
    """Jobs here with a crash on their record; at most one, and those back from waiting."""
    parked: set[Ref] = field(default_factory=set)
    """Runs that wait for other jobs and have no worker meanwhile."""
    dropped: set[int] = field(default_factory=set)
    """Jobs (by seq) claimed ahead that have been cancelled since."""
    in_lanes: set[Ref] = field(default_factory=set)
    """Jobs here that hold a permit: about to start, or running."""
    tally: Tally = field(default_factory=Tally)
    """Of the runs that have ended since the process joined."""
    traced: bool = False
    """Whether runs are to have spans."""
    busy: int = 0
    draining: bool = False
    """The process is about to stop."""
    closed: bool = False
    """Workers end instead of taking another job."""
    average_seconds: float = 1.0
    """Of recent runs, newer ones weighing more; what prefetching goes by."""
    freed: Callable[[], None] = _nothing
    """A worker has become free."""
    blocked_since: Callable[[Run], float | None] = _never
    """See `LoopWatch`."""
    ready: Callable[[], None] = _nothing
    """There may be something to claim."""

    def forget(self, lease: Lease) -> None:
        """The lease has ended here, one way or another."""
        self.in_lanes.discard(lease.ref)
        if lease.crashes:
            self.crashed.discard(lease.ref)
            self.ready()  # another of its kind may run now

    def hand_back(self, lease: Lease, outcome: Outcome = Outcome.HANDED_BACK) -> None:
        """End a lease whose job was not started."""
        self.forget(lease)
        self.settler.add(Settlement(lease, outcome), None)
