"""What the end of a request tells of its lane, and what the lane makes of a job's failure."""

from __future__ import annotations

from penstock.lanes import breaker
from penstock.lanes.breaker import Fault, Lesson
from penstock.lanes.state import LaneState
from penstock.ports.queue import News, Outcome, Report, Settlement

_FAILURES = (Outcome.RETRY, Outcome.FAILED)
LONGEST_SECONDS = 300.0
"""A job waiting for a lane that is not its own looks again after this at the latest."""


def lane_told_of(settlement: Settlement) -> str:
    """The lane a settlement tells of; '' for none."""
    report = settlement.report
    return (report.lane if report else None) or settlement.lease.lane


def learn(
    lane: LaneState,
    holder: int,
    ref: int,
    job: int,
    token: int,
    report: Report | None,
    now: float,
) -> Lesson:
    """Apply what request `ref` of `job` tells of a lane."""
    trying = lane.trial == ref and lane.trial_holder == holder
    if trying:
        lane.trial = job
    if report is None:
        # A request that tells nothing ends the try only if it was the try itself.
        if trying:
            breaker.abandoned(lane, job)
        return Lesson(Fault.JOB)
    if report.address is not None:
        lane.address = report.address
    match report.news:
        case News.SUCCESS:
            breaker.succeeded(lane)
            return Lesson(Fault.JOB)
        case News.UNAVAILABLE:
            return breaker.unavailable(lane, job, token, now)
        case News.RATE_LIMITED:
            return breaker.rate_limited(lane, job, report.retry_after, report.resets_after, now)
        case News.REFUSED:
            return breaker.refused(lane, job, token)


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


def verdict(settlement: Settlement, lane: LaneState, fault: Fault, now: float) -> Settlement:
    """The settlement as it is to be stored: where the failure is the lane's, the job is handed
    back instead, to its line or, if the lane is not its own, until that lane may be tried."""
    down = settlement.report is not None and settlement.report.news is News.UNAVAILABLE
    if settlement.outcome not in _FAILURES or not (fault is Fault.LANE or (down and lane.open)):
        return settlement
    later = 0.0
    if lane.name != settlement.lease.lane:
        later = min(max(lane.retry_at, lane.blocked_until, now), now + LONGEST_SECONDS)
    waits_lane = lane.name if later else None
    return settlement._replace(outcome=Outcome.HANDED_BACK, run_at=later, waits_lane=waits_lane)
