"""Chooses among the jobs that wait in a lane: which start, with what permit, when to look again."""

from __future__ import annotations

import json
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from penstock.lanes import limits
from penstock.lanes.state import LaneState
from penstock.model.job import Priority
from penstock.ports.queue import Lease

if TYPE_CHECKING:
    from penstock.model.amounts import Amounts

LINES_PER_CLAIM = 16
"""Lines looked at in one trip; with more, the ones that have waited longest come first."""
TRIAL_CHOICE = 40
"""How far down the line a job for the next try is looked for."""
LATER_SECONDS = 1.0
"""When to look again at a line whose jobs this process may not take just now."""


class Picked(NamedTuple):
    """A job at the head of a line: its place in it, and the lease it may be claimed by."""

    band: int
    turn: float
    lease: Lease
    resumes: bool = False
    """It was suspended, and goes on."""


def room(lanes: list[LaneState], wanted: int, now: float) -> int:
    """How many may be taken from the line at most."""
    most = min(wanted, *(one.slots_for_jobs(now) for one in lanes))
    return 0 if any(not one.may_start(now) for one in lanes) else most


def choice(lane: LaneState, most: int) -> int:
    """How many of the first in line to choose from."""
    return TRIAL_CHOICE if lane.open else most


def chosen(lane: LaneState, picked: list[Picked]) -> list[Picked]:
    """Who may start: with an open breaker only one, which has not failed yet if there is one."""
    if not lane.open:
        return picked
    tried = json.loads(lane.tried)
    others = [one for one in picked if one.lease.seq not in tried]
    others = others or [one for one in picked if one.lease.seq != lane.last_trial]
    return (others or picked)[:1]


def within(picked: list[Picked], ordinary: int | None) -> list[Picked]:
    """`picked` with at most `ordinary` jobs of less than high priority."""
    if ordinary is None:
        return picked
    kept = []
    for one in picked:
        if one.lease.priority > Priority.HIGH:
            ordinary -= 1
            if ordinary < 0:
                continue
        kept.append(one)
    return kept


def starts(
    lanes: list[LaneState], picked: list[Picked], now: float, slack: float = 0.0
) -> list[Lease]:
    """Leases of the first of them, for as many as the lanes can take now; each may start `slack`
    seconds late."""
    granted = limits.starts(lanes, [one.resumes for one in picked], now, slack)
    return [with_permit(one, at, lanes, slack) for one, at in zip(picked, granted, strict=False)]


def with_permit(picked: Picked, start: float, lanes: list[LaneState], slack: float = 0.0) -> Lease:
    """The lease of a job that may start at `start`."""
    lease = picked.lease
    limit, timeout = lanes[0].timeout, lease.timeout
    if limit is not None and (timeout is None or limit < timeout):
        timeout = limit
    void = inf if picked.resumes else start + slack + min(one.tolerance for one in lanes)
    return lease._replace(timeout=timeout, start_at=start, void_at=void)


def look_again(
    lanes: list[LaneState], now: float, amount: Amounts | None = None
) -> tuple[float | None, str | None]:
    """When to look at the line next, and the lane whose slot it waits for; whichever comes first,
    where there are both. `amount` is what the next job reserves, if that counts."""
    full = [one.name for one in lanes if one.slots_for_jobs(now) == 0 or one.trial is not None]
    return limits.next_chance(lanes, now, amount), full[0] if full else None
