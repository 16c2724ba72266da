"""What settlements tell of lanes, and what lanes make of settlements."""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.adapters.sqlite import lanes as store
from penstock.adapters.sqlite.database import Transaction
from penstock.lanes import breaker
from penstock.lanes.breaker import Fault
from penstock.lanes.state import LaneState
from penstock.ports.queue import News, Outcome, Ref, Report, Settlement, Topic

_FAILURES = (Outcome.RETRY, Outcome.FAILED)
LONGEST_SECONDS = 300.0
"""A job waiting for a lane that is not its own looks again after this at the latest."""


def standing_leases(tx: Transaction, settlements: Sequence[Settlement]) -> set[Ref]:
    """Which leases still stand: only these teach a lane anything, or have a slot to free."""
    batch = json.dumps([s.lease.ref for s in settlements])
    rows = tx.execute(
        "SELECT seq, token FROM json_each(?) AS s JOIN jobs ON jobs.seq = s.value ->> 0"
        " WHERE jobs.token = s.value ->> 1 AND jobs.holder IS NOT NULL",
        (batch,),
    )
    return set(rows.fetchall())


def judge(
    tx: Transaction, holder: int, settlements: Sequence[Settlement], standing: set[Ref]
) -> tuple[list[Settlement], frozenset[Ref]]:
    """Let lanes learn from settlements. Where a failure is the lane's, the job is handed back
    instead: to its line, or, if the lane is not its own, until that lane may be tried."""
    faults: dict[int, Fault] = {}
    lanes: dict[str, LaneState] = {}
    for settlement in settlements:
        lease, name = settlement.lease, _lane_of(settlement)
        if not name or lease.ref not in standing:
            continue
        if settlement.report is not None and settlement.report.told:
            lane, fault = store.load(tx, name), Fault.JOB
            if lane is not None:
                fault = _fault_of_told(lane, settlement.report)
        else:
            lane, fault = learn_and_save(
                tx, name, holder, lease.seq, lease.seq, lease.token, settlement.report
            )
        if lane is not None:
            lanes[name], faults[lease.seq] = lane, fault
    # Only now: the first to fail may be in the same batch as the one that opens the breaker.
    judged = [
        _verdict(s, lanes[_lane_of(s)], faults[s.lease.seq], tx.now) if s.lease.seq in faults else s
        for s in settlements
    ]
    spared = {
        new.lease.ref
        for old, new in zip(settlements, judged, strict=True)
        if new.outcome is not old.outcome
    }
    return judged, frozenset(spared)


def _lane_of(settlement: Settlement) -> str:
    """The lane a settlement tells of; '' for none."""
    report = settlement.report
    return (report.lane if report else None) or settlement.lease.lane


def _verdict(settlement: Settlement, lane: LaneState, fault: Fault, now: float) -> Settlement:
    down = settlement.report is not None and settlement.report.news is News.UNAVAILABLE
    if settlement.outcome not in _FAILURES or not (fault is Fault.LANE or (down and lane.open)):
        return settlement
    later = 0.0
    if lane.name != settlement.lease.lane:
        later = min(max(lane.retry_at, lane.blocked_until, now), now + LONGEST_SECONDS)
    waits_lane = lane.name if later else None
    return settlement._replace(outcome=Outcome.HANDED_BACK, run_at=later, waits_lane=waits_lane)


def _fault_of_told(lane: LaneState, report: Report) -> Fault:
    """Whose a failure is that the lane has learnt of already, when the permit came back."""
    match report.news:
        case News.RATE_LIMITED:
            return Fault.LANE
        case News.REFUSED:
            return Fault.LANE if lane.blocked_why == "credentials" else Fault.JOB
        case _:
            return Fault.LANE if lane.open else Fault.JOB


def learn_and_save(
    tx: Transaction, name: str, holder: int, ref: int, job: int, token: int, report: Report | None
) -> tuple[LaneState | None, Fault]:
    """Apply what request `ref` of `job` tells of a lane."""
    lane = store.load(tx, name)
    if lane is None:
        return None, Fault.JOB
    was_open = lane.open
    trying = lane.trial == ref and lane.trial_holder == holder
    if trying:
        lane.trial = job
    if report is None:
        # A request that tells nothing ends the try only if it was the try itself.
        fault = Fault.JOB
        if trying:
            breaker.abandoned(lane, job)
    else:
        fault = _learn(lane, job, token, report, tx.now)
    if report is not None and report.address is not None:
        lane.address = report.address
    if lane.open and not was_open:
        return_attempt(tx, lane)
    if was_open and not lane.open:
        store.wake_lane(tx, name)
    store.save(tx, lane)
    return lane, fault


def _learn(lane: LaneState, job: int, token: int, report: Report, now: float) -> Fault:
    """Apply a report to a lane; whose fault the failure is."""
    match report.news:
        case News.SUCCESS:
            breaker.succeeded(lane)
            return Fault.JOB
        case News.UNAVAILABLE:
            return breaker.unavailable(lane, job, token, now)
        case News.RATE_LIMITED:
            breaker.rate_limited(lane, job, report.retry_after, now)
            return Fault.LANE
        case News.REFUSED:
            return breaker.refused(lane, job)


def return_attempt(tx: Transaction, lane: LaneState) -> None:
    """The breaker opens: the job that failed first has spent no attempt either, not even its
    last one."""
    if lane.suspect is None:
        return
    tx.execute(
        "UPDATE jobs SET attempts = attempts - 1, run_at = ?, state = 'queued',"
        " ready = 1 + (crashes > 0), finished_at = NULL"
        " WHERE seq = ? AND token = ? AND state IN ('queued', 'failed') AND attempts > 0",
        (tx.now, lane.suspect, lane.suspect_token),
    )
    tx.wake(Topic.READY)
    lane.suspect = None
