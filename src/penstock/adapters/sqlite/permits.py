"""Permits taken inside a job: one trip for all that are asked for at the moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.adapters.sqlite import lanes as store
from penstock.adapters.sqlite.database import Transaction
from penstock.adapters.sqlite.lane_settle import learn_and_save
from penstock.lanes.limits import grant
from penstock.lanes.state import DAY, LaneState
from penstock.model.lane import LaneConfig
from penstock.ports.queue import Busy, Permit, PermitRequest, Returned


def take(
    tx: Transaction,
    holder: int,
    requests: Sequence[PermitRequest],
    lane_config: Callable[[str], LaneConfig],
) -> list[Permit | Busy]:
    """A permit or the reason why not, for each request in order."""
    store.configure(tx, dict.fromkeys(request.lane for request in requests), lane_config)
    if tx.execute("SELECT 1 FROM processes WHERE number = ?", (holder,)).fetchone() is None:
        # A slot taken now would belong to nobody, and never be given back.
        return [
            Busy(request.lane, tx.now, "this process lost its membership") for request in requests
        ]
    answers: list[Permit | Busy] = []
    for request in requests:
        lanes = store.with_parent(tx, request.lane)
        store.end_lost_trials(tx, lanes)
        answers.append(_take(tx, holder, request, lanes))
    return answers


def _take(
    tx: Transaction, holder: int, request: PermitRequest, lanes: list[LaneState]
) -> Permit | Busy:
    rate_only = request.rate_only or store.holds_slot(tx, request.lane, holder, request.job)
    request = request._replace(rate_only=rate_only)
    trial = lanes[0].trial
    if request.rate_only and (trial, lanes[0].trial_holder) == (request.job, holder):
        # The job that makes the try may make all its requests: it is one try to its end.
        lanes[0].trial, lanes[0].retry_at = None, min(lanes[0].retry_at, tx.now)
    starts = grant(lanes, 1, tx.now, ahead=request.patience, slots=not request.rate_only)
    lanes[0].trial = trial
    if not starts:
        return _why_not(lanes, tx.now, slots=not request.rate_only)
    if not request.rate_only:
        store.take_slots(tx, lanes, holder, [request.ref])
        if lanes[0].open:
            lanes[0].trial, lanes[0].trial_holder = request.ref, holder
    for lane in lanes:
        store.save(tx, lane)
    return Permit(
        request.lane, request.ref, starts[0], starts[0] + min(lane.tolerance for lane in lanes)
    )


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


def give_back(tx: Transaction, holder: int, returned: Sequence[Returned]) -> None:
    """End permits, and let their lanes learn how the requests went."""
    for one in returned:
        learn_and_save(tx, one.permit.lane, holder, one.permit.ref, one.job, one.token, one.report)
    store.free_slots(tx, holder, [one.permit.ref for one in returned])
