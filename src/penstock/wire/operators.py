"""Figures for operators: jobs by kind, worker processes, lanes, what needs attention, actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from penstock.model.access import Action
from penstock.model.job import JobState
from penstock.model.lane import LaneLimits
from penstock.ports.lanes import LaneInfo
from penstock.ports.operators import KindCounts
from penstock.wire.view import ListPage, WireView, described

described(Action, KindCounts, LaneLimits)


class Condition(StrEnum):
    """Conditions that need attention, the worst first."""

    QUEUE_UNREACHABLE = "queue unreachable"
    CREDENTIALS_REJECTED = "credentials rejected"
    BREAKER_OPEN = "breaker open"
    KIND_WITHOUT_A_WORKER = "kind without a worker"
    LOOP_BLOCKED = "event loop blocked"
    WORKER_STUCK = "worker stuck"
    WORKER_GONE = "worker gone"
    LOOP_WAS_BLOCKED = "event loop was blocked"
    DEAD_LETTERS = "dead letters"
    BUDGET_REACHED = "budget reached"
    DAILY_LIMIT = "daily limit"
    RATE_LIMITED = "rate limited"
    BUDGET_NEARLY_SPENT = "budget nearly spent"
    THROTTLED = "throttled"
    PAUSED = "paused"


@dataclass(slots=True, frozen=True)
class Attention(WireView):
    what: Condition
    subject: str
    """The lane, kind, payer of a budget or worker process (host and pid) concerned."""
    since: float | None
    """None: unknown."""
    todo: str
    """What to do, in one sentence."""


@dataclass(slots=True, frozen=True)
class LaneView(LaneInfo, WireView):
    """A lane in use."""

    starts_per_second: float | None = None
    """None: no limit."""
    trouble: Condition | None = None
    """Why it starts no jobs, or few."""


@dataclass(slots=True, frozen=True)
class LaneList(WireView):
    lanes: Sequence[LaneView]
    """By name."""


@dataclass(slots=True, frozen=True)
class ProcessView(WireView):
    """A worker process."""

    id: str
    host: str
    pid: int
    state: Literal["running", "draining", "degraded", "gone"]
    """`degraded`: it cannot reach the queue."""
    kinds: Sequence[str]
    max_workers: int
    busy: int
    parked: int
    """Jobs that wait for other jobs or permits, without a worker."""
    stuck: int
    """Workers whose thread is running past its timeout."""
    blocked_by: str | None
    """The job that blocks its event loop, or did within the last minute."""
    blocked_seconds: float | None
    """How long it did; None while it lasts, or if none did."""
    joined_at: float
    heartbeat_at: float
    lease_until: float


@dataclass(slots=True, frozen=True)
class Overview(WireView):
    """The jobs of one tenant or of all. The other fields cover all tenants and are for admins; None
    for others."""

    tenant: str | None
    """None: all tenants."""
    states: Mapping[JobState, int]
    """Number of jobs in each state."""
    kinds: Sequence[KindCounts]
    oldest_queued_seconds: float | None
    processes: Sequence[ProcessView] | None = None
    lanes: Sequence[LaneView] | None = None
    """Lanes with problems."""
    unhandled_kinds: Sequence[str] | None = None
    """Kinds with queued jobs that no worker process handles."""
    attention: Sequence[Attention] | None = None
    """Conditions that need attention, worst first."""


@dataclass(slots=True, frozen=True)
class ActionPage(ListPage):
    actions: Sequence[Action]


@dataclass(slots=True, frozen=True)
class LaneHistory(WireView):
    lane: str
    in_flight: Sequence[int]
    waiting: Sequence[int]


@dataclass(slots=True, frozen=True)
class HistoryView(WireView):
    """Columns of equal length, oldest sample first."""

    at: Sequence[float]
    """Seconds since 1970."""
    completed: Sequence[float]
    """Runs per second, by outcome."""
    failed: Sequence[float]
    retried: Sequence[float]
    wait_p50: Sequence[float | None]
    """Median seconds between being due and starting; None: no runs ended."""
    wait_p95: Sequence[float | None]
    run_p50: Sequence[float | None]
    """Median run time in seconds."""
    run_p95: Sequence[float | None]
    busy: Sequence[int]
    """Running jobs."""
    workers: Sequence[int]
    lanes: Sequence[LaneHistory]
    """The busiest lanes."""


@dataclass(slots=True, frozen=True)
class Alive(WireView):
    status: Literal["ok"] = "ok"


@dataclass(slots=True, frozen=True)
class Ready(WireView):
    status: Literal["ready", "not ready"]
    checks: Mapping[str, str]
    """`ok` or the problem, by component."""
