"""Lanes as people see and steer them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from penstock.lanes import breaker
from penstock.lanes.state import DAY, LaneState
from penstock.ports.queue import LaneInfo, Steer

LAST_YEAR = 253e9
"""The calendar ends with the year 9999."""


def info(lane: LaneState, waiting: int, now: float) -> LaneInfo:
    blocked = lane.blocked_until > now
    return LaneInfo(
        name=lane.name,
        parent=lane.parent,
        spacing=lane.pace,
        max_parallel=lane.max_parallel,
        in_flight=lane.in_flight,
        waiting=waiting,
        breaker="open" if lane.open else "suspect" if lane.suspect is not None else "closed",
        retry_at=lane.retry_at if lane.open else None,
        blocked_until=lane.blocked_until if blocked else None,
        blocked_why=lane.blocked_why if blocked else None,
        per_day=lane.per_day,
        used_today=lane.used_today if lane.day == int(now // DAY) else 0,
    )


def steer(lane: LaneState, what: Steer) -> None:
    if what is Steer.PAUSE:
        lane.blocked_until, lane.blocked_why = breaker.FOR_EVER, "paused"
    else:
        lane.blocked_until, lane.blocked_why = 0.0, None
        lane.refused = 0
    if what is Steer.RESET:
        breaker.succeeded(lane)
        lane.slowdown, lane.next_start = 1.0, 0.0
        lane.day = lane.used_today = 0


def why_waiting(name: str, lanes: Sequence[LaneState], now: float) -> str:
    """What keeps the first in the line of lane `name` from starting, in words."""
    for lane in lanes:
        if lane.blocked_until > now:
            until = (
                ""
                if lane.blocked_until >= breaker.FOR_EVER
                else f" until {clock(lane.blocked_until)}"
            )
            return f"lane {lane.name}: {lane.blocked_why}{until}"
        if lane.open:
            return f"lane {lane.name}: its breaker is open, next try at {clock(lane.retry_at)}"
        if lane.left_today(now) < 1:
            return f"lane {lane.name}: its daily limit, until {clock((now // DAY + 1) * DAY)}"
        if lane.free_slots() == 0:
            return f"lane {lane.name}: all {lane.max_parallel} slots are taken"
        if lane.next_start > now:
            return f"lane {lane.name}: its rate, next start at {clock(lane.next_start)}"
    return f"lane {name}: its turn"


def clock(at: float) -> str:
    if at > LAST_YEAR:
        return "the end of time"
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
