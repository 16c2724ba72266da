"""The backlog of a queue, folded: a million jobs are some hundred groups.

Jobs are folded whose kind, tenant, lane and band are the same, and whose size or time is about the
same: the first two digits of the number are. What is told of a group is exact: how many there are,
and what they reserve together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from penstock.model.amounts import NOTHING, Amounts

PAST_RUNS = 4000
"""Runs that are looked back upon, the newest; of all kinds together."""


class WaitingJobs(NamedTuple):
    """Queued jobs that are alike."""

    kind: str
    tenant: str
    lane: str
    """`NO_LANE` or `UNKNOWN_LANE` where there is none."""
    band: int
    """Their priority, as it is by now."""
    due: bool
    """They stand in line. Else they are scheduled, sleep, or wait for a signal."""
    size: int
    """How many there are."""
    first: float
    """Their places are spread from here to `last`: turns of those in line, else times."""
    last: float
    amount: Amounts = NOTHING
    """What they reserve, all together."""


class RunningJob(NamedTuple):
    """A job that a worker process holds: it runs, or is about to."""

    kind: str
    tenant: str
    lane: str
    band: int
    process: str
    """The id of the membership."""
    started_at: float
    """When it was claimed."""
    amount: Amounts = NOTHING


class PastRun(NamedTuple):
    """The last run of a job that was completed."""

    kind: str
    lane: str
    ended_at: float
    seconds: float
    attempts: int
    """Runs that it took."""
    amount: Amounts = NOTHING
    """What it had reserved."""


class Backlog(NamedTuple):
    """Jobs that are queued and run, the lanes as they stand, and how long past runs took."""

    at: float
    waiting: Sequence[WaitingJobs]
    running: Sequence[RunningJob]
    lanes: Sequence[Mapping[str, Any]]
    """Rows of lanes: the fields of `penstock.lanes.state.LaneState`."""
    past: Sequence[PastRun]


def amount_class(amount: Amounts) -> int:
    """What amounts of about the same size have in common."""
    return number_class(amount.tokens) * 10_000 + number_class(amount.cost)


def number_class(number: int) -> int:
    """What whole numbers of about the same size have in common: length and first two digits."""
    text = str(number)
    return len(text) * 100 + int(text[:2])
