"""Permits asked for inside a job: granted, or the reason why not."""

from __future__ import annotations

from penstock.lanes.limits import grant
from penstock.lanes.state import DAY, LaneState
from penstock.ports.queue import Busy, Permit, PermitRequest


def ask(lanes: list[LaneState], request: PermitRequest, holder: int, now: float) -> Permit | Busy:
    """Ask a lane and its parent. They are charged for a permit; its slot, unless it is for the
    rate only, is still to be stored."""
    lane, slots = lanes[0], not request.rate_only
    trial = lane.trial
    if request.rate_only and (trial, lane.trial_holder) == (request.job, holder):
        # The job that makes the try may make all its requests: it is one try to its end.
        lane.trial, lane.retry_at = None, min(lane.retry_at, now)
    starts = grant(lanes, 1, now, ahead=request.patience, slots=slots)
    lane.trial = trial
    if not starts:
        return _why_not(lanes, now, slots=slots)
    if slots and lane.open:
        lane.trial, lane.trial_holder = request.ref, holder
    void_at = starts[0] + min(one.tolerance for one in lanes)
    return Permit(request.lane, request.ref, starts[0], void_at)


def _why_not(lanes: list[LaneState], now: float, *, slots: bool) -> Busy:
    for lane in lanes:
        if lane.blocked_until > now:
            return Busy(lane.name, lane.blocked_until, lane.blocked_why or "blocked")
        if not lane.may_start(now):
            until = lane.retry_at if lane.retry_at > now else None
            return Busy(lane.name, until, "its breaker is open")
        if slots and lane.free_slots() == 0:
            return Busy(lane.name, None, "all its slots are taken")
        if lane.left_today(now) < 1:
            return Busy(lane.name, (now // DAY + 1) * DAY, "its daily limit is used up")
    latest = max(lanes, key=lambda lane: lane.next_start)
    return Busy(latest.name, latest.next_start, "its rate")
