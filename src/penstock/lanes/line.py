"""Serves the waiting jobs of a lane: which jobs, with which permit, and when to check again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.lanes.limits import next_chance
from penstock.lanes.state import LaneState
from penstock.model.job import Priority
from penstock.ports.queue import Lease

LINES_PER_CLAIM = 16
"""Lines looked at in one trip; with more, the ones that have waited longest come first."""
TRIAL_CHOICE = 40
"""How far down the line a job for the next try is looked for."""
LATER_SECONDS = 1.0
"""When to look again at a line whose jobs this process may not take just now."""

Row = Sequence[Any]
"""[band, turn, *Lease] of a job in a line."""
SEQ, PRIORITY, CRASHES = 2, 7, 18


def room(lanes: list[LaneState], wanted: int, now: float) -> int:
    """How many may be taken from the line at most."""
    most = min(wanted, *(one.slots_for_jobs(now) for one in lanes))
    return 0 if any(not one.may_start(now) for one in lanes) else most


def choice(lane: LaneState, most: int) -> int:
    """How many of the first in line to choose from."""
    return TRIAL_CHOICE if lane.open else most


def chosen(lane: LaneState, rows: list[Any]) -> list[Any]:
    """Who may start: with an open breaker only one, which has not failed yet if there is one."""
    if not lane.open:
        return rows
    tried = json.loads(lane.tried)
    others = [row for row in rows if row[SEQ] not in tried]
    others = others or [row for row in rows if row[SEQ] != lane.last_trial]
    return (others or rows)[:1]


def within(rows: list[Any], ordinary: int | None) -> list[Any]:
    """`rows` with at most `ordinary` jobs of less than high priority."""
    if ordinary is None:
        return rows
    kept = []
    for row in rows:
        if row[PRIORITY] > Priority.HIGH:
            ordinary -= 1
            if ordinary < 0:
                continue
        kept.append(row)
    return kept


def with_permit(row: Row, start: float, lanes: list[LaneState]) -> Lease:
    """The lease of a job that may start at `start`."""
    lane = lanes[0]
    lease = Lease._make([*row[2:-2], start, start + min(one.tolerance for one in lanes)])
    if lane.timeout is not None and (lease.timeout is None or lane.timeout < lease.timeout):
        return lease._replace(timeout=lane.timeout)
    return lease


def look_again(lanes: list[LaneState], now: float) -> tuple[float | None, str | None]:
    """When to look at the line next, and the lane whose slot it waits for; whichever comes first,
    where there are both."""
    full = [one.name for one in lanes if one.slots_for_jobs(now) == 0 or one.trial is not None]
    return next_chance(lanes, now), full[0] if full else None
