"""Decides whether the lane or the job is at fault for a failed request, and tells the breaker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.lanes import breaker
from penstock.lanes.breaker import FailureVerdict, Fault, Spared
from penstock.lanes.state import LaneState
from penstock.ports.lanes import News, Report
from penstock.ports.queue import Outcome, Ref, Settlement

_FAILURES = (Outcome.RETRY, Outcome.FAILED)
MAX_SECONDS = 300.0
"""A job waiting for a lane that is not its own looks again after this at the latest."""


class Learnt(NamedTuple):
    fault: Fault
    spared: Sequence[Spared] = ()
    """Earlier failures that turn out to be the lane's: attempts to return."""
    closed: bool = False
    """The breaker has closed: who waits for the lane can be woken."""


def lane_of(settlement: Settlement) -> str:
    """The lane a settlement tells of; '' for none."""
    report = settlement.report
    return (report.lane if report else None) or settlement.lease.lane


def learn(
    lane: LaneState, holder: int, ref: int, job: int, token: int, report: Report | None, now: float
) -> Learnt:
    """Apply what request `ref` of `job` tells of a lane."""
    was_open = lane.open
    trying = lane.trial == ref and lane.trial_holder == holder
    if trying:
        lane.trial = job
    lesson = FailureVerdict(Fault.JOB)
    if report is not None:
        lesson = _learn(lane, job, token, report, now)
        lane.address = report.address or lane.address
    elif trying:
        # A request that tells nothing ends the try only if it was the try itself.
        breaker.abandoned(lane, job)
    return Learnt(lesson.fault, lesson.spared, was_open and not lane.open)


def _learn(lane: LaneState, job: int, token: int, report: Report, now: float) -> FailureVerdict:
    """Apply a report to a lane."""
    match report.news:
        case News.SUCCESS:
            breaker.succeeded(lane)
            return FailureVerdict(Fault.JOB)
        case News.UNAVAILABLE:
            return breaker.unavailable(lane, job, token, now)
        case News.RATE_LIMITED:
            told = (report.retry_after, report.resets_after, now)
            return breaker.rate_limited(lane, job, *told, gives_way=_gives_way(lane))
        case News.REFUSED:
            return breaker.refused(lane, job, token)


def _gives_way(lane: LaneState) -> bool:
    if lane.auto is None:
        return False
    from penstock.lanes import learnt

    return learnt.gives_way(lane)


def teach(lanes: Sequence[LaneState], report: Report | None, now: float) -> bool:
    """Let a lane, and its parent, learn how many requests at a time they take; whether any of them
    does. Where none is configured to, whoever reports knows that, and tells no time."""
    if report is None or (report.took is None and lanes[0].auto is None):
        return False
    from penstock.lanes import learnt

    for lane in lanes:
        learnt.hear(lane, report, now)
    return True


def fault_of_told(lane: LaneState, report: Report) -> Fault:
    """Whose a failure is that the lane has learnt of already, when the permit came back."""
    match report.news:
        case News.RATE_LIMITED:
            return Fault.LANE
        case News.REFUSED:
            return Fault.LANE if lane.blocked_why == breaker.CREDENTIALS else Fault.JOB
        case News.SUCCESS:
            return Fault.JOB
        case News.UNAVAILABLE:
            return Fault.LANE if lane.open else Fault.JOB


def judge(
    settlements: Sequence[Settlement],
    lanes: Mapping[str, LaneState],
    faults: Mapping[int, Fault],
    now: float,
) -> tuple[list[Settlement], frozenset[Ref]]:
    """The settlements as they are to be stored, and the leases that are spared: where a failure
    is the lane's, the job is handed back instead, to its line, or, if the lane is not its own,
    until that lane may be tried. `lanes` have learnt from all of them: the first to fail may be
    in the same batch as the one that opens the breaker."""
    judged = [
        _verdict(s, lanes[lane_of(s)], faults[s.lease.seq], now) if s.lease.seq in faults else s
        for s in settlements
    ]
    spared = {
        new.lease.ref
        for old, new in zip(settlements, judged, strict=True)
        if new.outcome is not old.outcome
    }
    return judged, frozenset(spared)


def _verdict(settlement: Settlement, lane: LaneState, fault: Fault, now: float) -> Settlement:
    down = settlement.report is not None and settlement.report.news is News.UNAVAILABLE
    if settlement.outcome not in _FAILURES or not (fault is Fault.LANE or (down and lane.open)):
        return settlement
    later = 0.0
    if lane.name != settlement.lease.lane:
        later = min(max(lane.retry_at, lane.blocked_until, now), now + MAX_SECONDS)
    waits_lane = lane.name if later else None
    return settlement._replace(outcome=Outcome.HANDED_BACK, run_at=later, waits_lane=waits_lane)
