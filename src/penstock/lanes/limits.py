"""Computes how many requests may start in a lane now, and when the next may."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from penstock.lanes.state import LaneState

if TYPE_CHECKING:
    from penstock.lanes.amounts import Booking
    from penstock.model.amounts import Amounts

AHEAD_SECONDS = 0.05
"""A start may be granted this far ahead, so that the next one is at hand when it is due."""


def grant(
    lanes: list[LaneState],
    wanted: int,
    now: float,
    *,
    ahead: float = AHEAD_SECONDS,
    held: Collection[str] = (),
    lead: float = 0.0,
    slack: float = 0.0,
    question: bool = False,
    booking: Booking | None = None,
) -> list[float]:
    """Start times for up to `wanted` requests that every one of `lanes` (a lane and its parent)
    can take within `ahead` seconds; not before `lead` seconds where starts are spaced. Each may
    come `slack` seconds later, so the next one does too. The lanes are charged for them; those
    named by `held` only for the rate, because the slot is held already. A `question` may have the
    slot that jobs leave to it. A `booking` is of one request: `wanted` is 1."""
    if any(not lane.may_start(now) for lane in lanes):
        return []
    needed = [lane for lane in lanes if lane.name not in held]
    slots = [slots_free(lane, now, question=question) for lane in needed]
    most = min([wanted, *slots])
    if any(lane.open for lane in lanes):
        most = min(most, 1)  # one try at a time
    starts: list[float] = []
    while len(starts) < most:
        start = _next_start(lanes, now, ahead, lead)
        if booking is not None and start is not None:
            from penstock.lanes import amounts

            first = max(start, now + min(lead, ahead))
            start = amounts.book(lanes, booking, first, now + ahead, slack)
        if start is None:
            break
        starts.append(start)
        for lane in lanes:
            _charge(lane, start, slack)
        for lane in needed:
            lane.in_flight += 1
            lane.asking += question and lane is lanes[0]
    return starts


def starts(
    lanes: list[LaneState], resumes: Sequence[bool], now: float, slack: float = 0.0
) -> list[float]:
    """Start times of the first of these jobs, for as many as `lanes` can take. They have the slots
    for all. One that resumes was charged when it was started, and takes only its slot again."""
    if not any(resumes):
        return grant(lanes, len(resumes), now, slack=slack)
    found: list[float] = []
    for charged in resumes:
        if charged:
            for lane in lanes:
                lane.in_flight += 1
            found.append(now)
        elif start := grant(lanes, 1, now, slack=slack):
            found += start
        else:
            break
    return found


def slots_free(lane: LaneState, now: float, *, question: bool) -> int:
    return lane.slots_for_questions() if question else lane.slots_for_jobs(now)


def _next_start(lanes: list[LaneState], now: float, ahead: float, lead: float) -> float | None:
    """When all of `lanes` can take one more start, if that is soon enough."""
    # To wait for the answer is worth no more than what a start costs that is lost.
    own, *parents = (
        max(now + min(lead, lane.pace / 2), lane.next_start) if lane.pace else now for lane in lanes
    )
    start = max(own, *parents) if parents else own
    if start > now + ahead:
        return None
    # A start that waits for the lane itself would leave its parent idle until then, for all the
    # parent's children. So far ahead only the parent's own pace is waited for.
    if parents and own > max(parents) and start > now + AHEAD_SECONDS and lanes[1].pace:
        return None
    if any(lane.left_today(start) < 1 for lane in lanes):
        return None
    return start


def _charge(lane: LaneState, start: float, slack: float) -> None:
    if lane.pace:
        lane.next_start = start + slack + lane.pace
    day = lane.day_of(start)
    lane.used_today = 1 + (lane.used_today if lane.day == day else 0)
    lane.day = day


def next_chance(lanes: list[LaneState], now: float, amount: Amounts | None = None) -> float | None:
    """When `lanes` could grant a job a start, as far as time decides; None: when a slot is freed
    or a trial ends. `amount` is what the next job reserves, where any of them counts that."""
    if any(is_full(lane, now) or lane.trial is not None for lane in lanes):
        return None
    at = now
    for lane in lanes:
        at = max(at, lane.blocked_until, lane.retry_at)
        if lane.slots_for_jobs(now) == 0:
            at = max(at, lane.asked_until)
        if lane.pace:
            at = max(at, lane.next_start - AHEAD_SECONDS)
        if lane.left_today(now) < 1:
            at = max(at, lane.day_after(now))
    if amount is not None:
        from penstock.lanes import amounts

        at = max(at, amounts.next_chance(lanes, amount, at, now))
    return at


def is_full(lane: LaneState, now: float) -> bool:
    """Whether a job has to wait until a slot is given back. (Not for a question that may have gone
    away: where nothing is under way, nothing will be given back.)"""
    return lane.slots_for_jobs(now) == 0 and lane.in_flight > 0


def repace(lane: LaneState, old_pace: float, now: float) -> None:
    """The lane goes by another pace from now on, counted from its last start. Where that is not
    known, because it had no pace, somebody may just have started."""
    if not lane.pace:
        return
    last = lane.next_start - old_pace if old_pace else now
    lane.next_start = last + lane.pace
