"""Operators' queries of a queue, and their commands to its lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from penstock.model.job import JobState
from penstock.model.lane import LaneLimits
from penstock.ports.lanes import LaneCommand, LaneInfo

if TYPE_CHECKING:
    from penstock.model.budget import BudgetState
    from penstock.ports.backlog import Backlog

MAX_GROUPS = 1000
"""Groups of dead letters that are told of; the biggest."""


@dataclass(slots=True, frozen=True)
class ProcessInfo:
    """A worker process, as shown to people."""

    id: str
    host: str
    pid: int
    kinds: Sequence[str]
    max_workers: int
    joined_at: float
    heartbeat_at: float
    lease_until: float
    status: Mapping[str, Any] = field(default_factory=dict)
    """busy, stuck, draining and the like, as last renewed; its runs: `Tally.from_status`."""


@dataclass(slots=True, frozen=True)
class KindCounts:
    kind: str
    states: Mapping[JobState, int]
    oldest_queued_at: float | None
    """Since when the oldest of those queued could run; not of what is for later, or sleeps."""


@dataclass(slots=True, frozen=True)
class DeadGroup:
    """Dead letters that failed alike."""

    kind: str
    error_type: str
    count: int
    first_at: float
    """When the first of those that are left failed; `last_at`: the last."""
    last_at: float
    message: str
    """What the last one said."""
    newest_id: str
    """Its id."""


class OperableQueue(Protocol):
    """A queue, to those who look after it."""

    async def counts(self, tenant: str | None = None) -> list[KindCounts]:
        """Jobs of each kind and state, of one tenant or of all.

        SQLite and PostgreSQL read every job once. Redis keeps the figures; only the oldest queued
        job of a tenant is looked for among those of its kind, from the oldest on."""
        ...

    async def queued(self, tenant: str | None = None) -> int:
        """How many jobs are queued, also for later; of one tenant or of all. Reads at most what is
        queued."""
        ...

    async def dead_groups(self, tenant: str | None = None) -> list[DeadGroup]:
        """Dead letters by kind and type of error, the biggest of the groups first, MAX_GROUPS at
        most. Reads every dead letter."""
        ...

    async def processes(self) -> list[ProcessInfo]: ...

    async def lanes(self) -> list[LaneInfo]:
        """The lanes in use, by name."""
        ...

    async def budgets(self) -> list[BudgetState]:
        """All budgets, by payer, and what is spent of them in this period."""
        ...

    async def backlog(self) -> Backlog:
        """What waits, runs and has run, folded, for a forecast.

        SQLite and PostgreSQL read every queued job once. Redis tells of a long line by a sample of
        it: how many there are is exact, how they are made up is not."""
        ...

    async def configure(self, lanes: Sequence[str]) -> None:
        """Make these lanes known, with the limits that are configured now. What is only assumed
        of a lane never changes the limits it has."""
        ...

    async def control(self, lane: str, control: LaneCommand) -> bool:
        """Pause, resume or reset a lane; False when there is no such lane."""
        ...

    async def limit(self, lane: str, limits: LaneLimits | None) -> bool:
        """Give a lane other limits than the configured ones, for all processes, from now on and
        whatever `configure` brings; None: the configured ones again. False when there is no such
        lane. What has started goes on: with fewer slots than are taken, nothing starts until
        enough are free."""
        ...
