"""Permits asked for inside a job: granted, or the reason why not."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

from penstock.lanes.limits import grant
from penstock.lanes.state import LaneState
from penstock.ports.lanes import Busy, Permit, PermitRequest, Returned
from penstock.ports.queue import Ref


def ask(
    lanes: list[LaneState], request: PermitRequest, holder: int, held: Collection[str], now: float
) -> Permit | Busy:
    """Ask a lane and its parent. They are charged for a permit; its slots, in the lanes that
    are not `held`, are still to be stored.

    `held` are the lanes whose slot the job that asks has already: it takes no second one, or a
    job in a lane of one slot, or under a parent of one, would wait for itself.
    """
    lane = lanes[0]
    if request.rate_only:
        held = [one.name for one in lanes]
    trial, retry_at = lane.trial, lane.retry_at
    if lane.name in held and (trial, lane.trial_holder) == (request.job, holder):
        # The job that makes the try may make all its requests: it is one try to its end.
        lane.trial, lane.retry_at = None, min(retry_at, now)
    starts = grant(lanes, 1, now, ahead=request.patience, held=held)
    lane.trial, lane.retry_at = trial, retry_at
    if not starts:
        return _why_not(lanes, held, now)
    if lane.open and lane.name not in held:
        lane.trial, lane.trial_holder = request.ref, holder
    timeouts = [one.timeout for one in lanes if one.timeout is not None]
    return Permit(
        request.lane,
        request.ref,
        starts[0],
        starts[0] + min(one.tolerance for one in lanes),
        min(timeouts, default=None),
    )


def still_ours(returned: Sequence[Returned], known: Container[Ref]) -> list[Returned]:
    """What of permits that come back counts. `known` are the leases, of those they were taken
    under, that are this member's. Of another the lane learns nothing: only the slot that the permit
    itself took goes back, not that of the job."""
    return [
        one
        if one.job <= 0 or (one.job, one.id, one.token) in known
        else Returned(one.permit, None, 0, 0)
        for one in returned
        if one.permit.ref < 0 or (one.job, one.id, one.token) in known
    ]


def _why_not(lanes: list[LaneState], held: Collection[str], now: float) -> Busy:
    for lane in lanes:
        if lane.blocked_until > now:
            return Busy(lane.name, lane.blocked_until, lane.blocked_why or "blocked")
        if not lane.may_start(now):
            until = lane.retry_at if lane.retry_at > now else None  # else the try is under way
            return Busy(lane.name, until, "its breaker is open", give_up=True)
        if lane.name not in held and lane.free_slots() == 0:
            return Busy(lane.name, None, "all its slots are taken")
        if lane.left_today(now) < 1:
            return Busy(lane.name, lane.day_after(now), "its daily limit is used up")
    latest = max(lanes, key=lambda lane: lane.next_start)
    return Busy(latest.name, latest.next_start, "its rate")
