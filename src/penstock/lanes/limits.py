"""How many may start now in a lane, and when."""

from __future__ import annotations

from penstock.lanes.state import DAY, LaneState

AHEAD_SECONDS = 0.05
"""A start may be granted this far ahead, so that the next one is at hand when it is due."""


def grant(
    lanes: list[LaneState],
    wanted: int,
    now: float,
    *,
    ahead: float = AHEAD_SECONDS,
    slots: bool = True,
) -> list[float]:
    """Start times for up to `wanted` requests that every one of `lanes` (a lane and its parent)
    can take within `ahead` seconds. The lanes are charged for them. Without `slots`, only for
    the rate: the slot is held already."""
    if any(not lane.may_start(now) for lane in lanes):
        return []
    most = min(wanted, *(lane.free_slots() for lane in lanes)) if slots else wanted
    if any(lane.open for lane in lanes):
        most = min(most, 1)  # one try at a time
    most = int(min(most, *(lane.left_today(now) for lane in lanes)))
    starts: list[float] = []
    while len(starts) < most:
        start = max(now, *(lane.next_start for lane in lanes))
        if start > now + ahead:
            break
        starts.append(start)
        for lane in lanes:
            lane.next_start = start + lane.spacing * lane.slowdown
    for lane in lanes:
        _charge(lane, len(starts), now)
        if slots:
            lane.in_flight += len(starts)
    return starts


def _charge(lane: LaneState, count: int, now: float) -> None:
    today = int(now // DAY)
    lane.used_today = count + (lane.used_today if lane.day == today else 0)
    lane.day = today


def next_chance(lanes: list[LaneState], now: float) -> float | None:
    """When `lanes` could grant a start, as far as time decides; None: when a slot is freed or a
    trial ends."""
    if any(lane.free_slots() == 0 or lane.trial is not None for lane in lanes):
        return None
    at = now
    for lane in lanes:
        at = max(at, lane.blocked_until, lane.retry_at, lane.next_start - AHEAD_SECONDS)
        if lane.left_today(now) < 1:
            at = max(at, (now // DAY + 1) * DAY)
    return at
