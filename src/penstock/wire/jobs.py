"""Jobs, and the results of bulk operations on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.ticker import PeriodicKind
from penstock.model.job import Job, PriorityName
from penstock.ports.operators import DeadGroup
from penstock.wire.view import ListPage, WireView, described


@dataclass(slots=True)
class JobView(Job):
    """A job as `Job.as_dict` returns it, with its priority by name."""

    priority: PriorityName = "medium"  # type: ignore[assignment]
    error: dict[str, Any] | None = None  # type: ignore[assignment]
    history: list[dict[str, Any]] = field(default_factory=list)  # type: ignore[assignment]
    lines: list[dict[str, Any]] = field(default_factory=list)  # type: ignore[assignment]


described(DeadGroup, JobView, PeriodicKind)


@dataclass(slots=True, frozen=True)
class JobPage(ListPage):
    jobs: Sequence[JobView]


@dataclass(slots=True, frozen=True)
class Refusal(WireView):
    id: str
    why: str


@dataclass(slots=True, frozen=True)
class ChangedJobs(WireView):
    """Jobs that were cancelled, redriven or discarded together."""

    count: int
    ids: Sequence[str]
    refused: Sequence[Refusal]
    """Those of the given ids that were not changed."""


@dataclass(slots=True, frozen=True)
class SignalStored(WireView):
    """A signal that a job was sent."""

    stored: bool
    """False: the job has got one of the same key before."""


@dataclass(slots=True, frozen=True)
class DeadGroups(WireView):
    groups: Sequence[DeadGroup]


@dataclass(slots=True, frozen=True)
class PeriodicKinds(WireView):
    periodic: Sequence[PeriodicKind]
