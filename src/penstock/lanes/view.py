"""Lanes as operators see and control them."""

from __future__ import annotations

import json
from datetime import datetime

from penstock.lanes import breaker
from penstock.lanes.breaker import FOR_EVER
from penstock.lanes.state import LaneState
from penstock.model.lane import LaneLimits
from penstock.ports.lanes import LaneCommand, LaneInfo, LearntLimit

LAST_YEAR = 253e9
"""The calendar ends with the year 9999."""


def info(lane: LaneState, waiting: int, now: float) -> LaneInfo:
    blocked = lane.blocked_until > now
    failing = lane.open or breaker.suspected(lane, now)
    return LaneInfo(
        name=lane.name,
        parent=lane.parent,
        spacing=lane.pace,
        configured_spacing=lane.spacing if lane.slowdown > 1 else None,
        max_parallel=lane.max_parallel,
        in_flight=lane.in_flight,
        waiting=waiting,
        breaker="open" if lane.open else "suspect" if breaker.suspected(lane, now) else "closed",
        retry_at=lane.retry_at if lane.open else None,
        failing_since=lane.suspect_at if failing else None,
        limits=None if lane.limits is None else LaneLimits(**json.loads(lane.limits)),
        overridden=lane.limits is not None,
        probe_ok=None if lane.probe_ok is None else bool(lane.probe_ok),
        blocked_until=lane.blocked_until if blocked and lane.blocked_until < FOR_EVER else None,
        blocked_why=lane.blocked_why if blocked else None,
        per_day=lane.per_day,
        used_today=lane.used_today if lane.day == lane.day_of(now) else 0,
        learnt=None if lane.auto is None else _learnt(lane, now),
        usual_tokens=_usual_tokens(lane),
    )


def _learnt(lane: LaneState, now: float) -> LearntLimit:
    from penstock.lanes import learnt

    return learnt.shown(lane, now)


def _usual_tokens(lane: LaneState) -> dict[str, int] | None:
    if lane.amounts is None or not lane.used:
        return None
    from penstock.lanes import amounts

    return {kind: one.tokens for kind, one in amounts.usual_of(lane).items()} or None


def infos(lanes: list[LaneState], waiting: dict[str, int], now: float) -> list[LaneInfo]:
    """`waiting` counts the jobs in each lane's own line."""
    counts = dict(waiting)
    for lane in lanes:
        if lane.parent is not None:  # what waits for a child waits for its parent too
            counts[lane.parent] = counts.get(lane.parent, 0) + waiting.get(lane.name, 0)
    return [info(lane, counts.get(lane.name, 0), now) for lane in lanes]


def control(lane: LaneState, what: LaneCommand) -> None:
    if what is LaneCommand.PAUSE:
        lane.blocked_until, lane.blocked_why = FOR_EVER, "paused"
        return
    lane.blocked_until, lane.blocked_why, lane.refusers = 0.0, None, "[]"
    if what is LaneCommand.RESET:
        breaker.succeeded(lane)
        lane.slowdown, lane.limited, lane.next_start = 1.0, 0, 0.0
        lane.day, lane.used_today, lane.day_offset = 0, 0, 0.0
        lane.used, lane.use = None if lane.used is None else "[]", None
        lane.learnt, lane.learnt_parallel = None if lane.learnt is None else "", None


def why_waiting(name: str, lanes: list[LaneState], ahead: int, now: float) -> str:
    """What keeps a job from starting with `ahead` others before it in the line of lane `name`,
    in words, and when it is expected to start as far as that is a matter of time."""
    why, at = _reason(name, lanes, now)
    if ahead:
        why += f"; {ahead:,} ahead of it"
    pace = max((lane.pace for lane in lanes), default=0.0)
    # Without a rate the line moves as slots are freed, and nobody knows when that is.
    if at is not None and (pace or not ahead):
        why += f"; expected at {clock(at + ahead * pace)}"
    return why


def _reason(name: str, lanes: list[LaneState], now: float) -> tuple[str, float | None]:
    """What is in the way, and when it will not be any more."""
    for lane in lanes:
        if lane.blocked_until >= FOR_EVER:
            return f"lane {lane.name}: {lane.blocked_why}", None
        if lane.blocked_until > now:
            until = lane.blocked_until
            return f"lane {lane.name}: {lane.blocked_why} until {clock(until)}", until
        if lane.open:
            then = clock(lane.retry_at)
            return f"lane {lane.name}: {lane.outage}, next attempt at {then}", None
        if lane.left_today(now) < 1:
            until = lane.day_after(now)
            return f"lane {lane.name}: its daily limit, until {clock(until)}", until
        if lane.free_slots() == 0:
            return f"lane {lane.name}: all {lane.max_parallel} slots are taken", None
        if lane.slots_for_jobs(now) == 0:
            return f"lane {lane.name}: its last slot is kept for questions", None
        if lane.next_start > now:
            return f"lane {lane.name}: its rate", max(one.next_start for one in lanes)
    if any(lane.amounts is not None for lane in lanes):
        return f"lane {name}: its turn, or room for its amount", None
    return f"lane {name}: its turn", None


def clock(at: float) -> str:
    if at > LAST_YEAR:
        return "the end of time"
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
