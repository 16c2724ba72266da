"""Decides on permits requested inside a job or for a question.

Somebody waits for the answer to a question. So where questions are asked, jobs leave them a slot:
one of several for `RESERVED_SECONDS` after each, the only one to a question that waits for it. Of
several slots jobs keep one, too, and of the only one the turn after each question.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

from penstock.lanes import amounts
from penstock.lanes.limits import grant, slots_free
from penstock.lanes.state import QUESTIONS, LaneState
from penstock.ports.lanes import RATE, Busy, Permit, PermitRequest, Returned
from penstock.ports.queue import Ref

RESERVED_SECONDS = 10.0
"""How long after a question jobs leave a slot to the next one."""
WAITING_SECONDS = 1.0
"""How long they leave the only one to a question that waits: it asks again before that."""


def ask(
    lanes: list[LaneState], request: PermitRequest, holder: int, held: Collection[str], now: float
) -> Permit | Busy:
    """Ask a lane and its parent. They are charged for a permit; its slots, in the lanes that
    are not `held`, are still to be stored.

    `held` are the lanes whose slot the job that asks has already: it takes no second one, or a
    job in a lane of one slot, or under a parent of one, would wait for itself.
    """
    lane = lanes[0]
    if request.slot_only:
        return _slot_only(lanes, request, now)
    if request.rate_only:
        held = [one.name for one in lanes]
    booking = None
    if any(one.amounts is not None for one in lanes):
        booking = amounts.booking(lanes, request.ref, 0, request.amount, request.kind)
        if booking.refusal is not None:
            return Busy(lane.name, None, booking.refusal, refused=True)
    trial, retry_at = lane.trial, lane.retry_at
    if lane.name in held and (trial, lane.trial_holder) == (request.job, holder):
        # The job that makes the try may make all its requests: it is one try to its end.
        lane.trial, lane.retry_at = None, min(retry_at, now)
    question = request.question
    starts = grant(
        lanes,
        1,
        now,
        ahead=request.patience,
        held=held,
        lead=request.lead,
        slack=request.slack,
        question=question,
        booking=booking,
    )
    lane.trial, lane.retry_at = trial, retry_at
    if not starts:
        busy = _why_not(lanes, held, now, question=question, booking=booking)
        if question and busy == _full(lane):
            lane.asked_until = max(lane.asked_until, now + WAITING_SECONDS)
        return busy
    if question:
        lane.asked_until = now + RESERVED_SECONDS if lane.max_parallel > 1 else 0.0
    trying = lane.open and lane.name not in held
    if trying:
        lane.trial, lane.trial_holder = request.ref, holder
    timeouts = [one.timeout for one in lanes if one.timeout is not None]
    late = min(one.tolerance for one in lanes) if booking is None else amounts.tolerance(lanes)
    return Permit(
        request.lane,
        request.ref,
        starts[0],
        starts[0] + request.slack + late,
        min(timeouts, default=None),
        trying,
    )


def to_nobody(requests: Sequence[PermitRequest], now: float) -> list[Permit | Busy]:
    """The answers to a process that lost its membership: a slot taken now would belong to nobody,
    and never be given back."""
    return [Busy(request.lane, now, "this process lost its membership") for request in requests]


def still_ours(returned: Sequence[Returned], known: Container[Ref]) -> list[Returned]:
    """What of permits that come back counts. `known` are the leases, of those they were taken
    under, that are this member's. Of another the lane learns nothing: only the slot that the permit
    itself took goes back, not that of the job."""
    return [
        one
        if one.job <= 0 or (one.job, one.id, one.token) in known
        else Returned(one.permit, None, 0, 0, used=one.used)
        for one in returned
        if one.permit.ref < 0 or (one.job, one.id, one.token) in known
    ]


def slots(lanes: list[LaneState], request: PermitRequest, held: Collection[str]) -> list[str]:
    """Where a slot is to be stored for a permit."""
    if request.rate_only:
        return []
    names = [lane.name for lane in lanes if lane.name not in held]
    return [*names, lanes[0].name + QUESTIONS] if request.question else names


def _full(lane: LaneState) -> Busy:
    return Busy(lane.name, None, "all its slots are taken")


def _slot_only(lanes: list[LaneState], request: PermitRequest, now: float) -> Permit | Busy:
    """No request is started: neither rate nor breaker has a say."""
    for lane in lanes:
        if slots_free(lane, now, question=False) == 0:
            return _full(lane)
    for lane in lanes:
        lane.in_flight += 1
    return Permit(request.lane, request.ref, now)


def _why_not(
    lanes: list[LaneState],
    held: Collection[str],
    now: float,
    *,
    question: bool,
    booking: amounts.Booking | None,
) -> Busy:
    for lane in lanes:
        if lane.blocked_until > now:
            return Busy(lane.name, lane.blocked_until, lane.blocked_why or "blocked")
        if not lane.may_start(now):
            until = lane.retry_at if lane.retry_at > now else None  # else the try is under way
            return Busy(lane.name, until, lane.outage, give_up=True)
        if lane.name not in held and slots_free(lane, now, question=question) == 0:
            return _full(lane)
        if lane.left_today(now) < 1:
            return Busy(lane.name, lane.day_after(now), "its daily limit is used up")
    latest = max(lanes, key=lambda lane: lane.next_start)
    if booking is not None:
        coming = amounts.room(lanes, booking.amount, now)
        if coming.at > max(now, latest.next_start):
            return Busy(coming.lane, coming.at, coming.why)
    return Busy(latest.name, latest.next_start, RATE)
