"""Applies settlements to lanes, and lane verdicts to settlements."""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.adapters.sql.lanes import return_attempts, wake_lane
from penstock.adapters.sqlite import lanes as store
from penstock.adapters.sqlite.transaction import Transaction, run
from penstock.lanes import verdict
from penstock.lanes.breaker import Fault
from penstock.lanes.state import LaneState
from penstock.ports.lanes import Report
from penstock.ports.queue import Ref, Settlement


def standing_leases(
    tx: Transaction, holder: int, refs: Sequence[Ref], *, ended: bool = False
) -> set[Ref]:
    """Which leases still stand: only these teach a lane anything, or have a slot to free. With
    `ended`, also those that have ended since and nobody else has begun."""
    rows = tx.execute(
        "SELECT jobs.seq, jobs.id, jobs.token FROM json_each(?) AS s"
        " JOIN jobs ON jobs.seq = s.value ->> 0"
        " WHERE +jobs.id = s.value ->> 1 AND jobs.token = s.value ->> 2"
        f" AND (+jobs.holder = ? {'OR jobs.holder IS NULL' if ended else ''})",
        (json.dumps(refs), holder),
    )
    return set(rows.fetchall())


def judge(
    tx: Transaction, holder: int, settlements: Sequence[Settlement], standing: set[Ref]
) -> tuple[list[Settlement], frozenset[Ref]]:
    """Let lanes learn from settlements, and say what is to be stored; see `verdict.judge`."""
    faults: dict[int, Fault] = {}
    lanes: dict[str, LaneState] = {}
    for settlement in settlements:
        lease, name = settlement.lease, verdict.lane_of(settlement)
        if not name or lease.ref not in standing:
            continue
        if settlement.report is not None and settlement.report.told:
            lane, fault = store.load(tx, name), Fault.JOB
            if lane is not None:
                fault = verdict.fault_of_told(lane, settlement.report)
        else:
            lane, fault = learn_and_save(
                tx, name, holder, lease.seq, lease.seq, lease.token, settlement.report
            )
        if lane is not None:
            lanes[name], faults[lease.seq] = lane, fault
    return verdict.judge(settlements, lanes, faults, tx.now)


def learn_and_save(
    tx: Transaction, name: str, holder: int, ref: int, job: int, token: int, report: Report | None
) -> tuple[LaneState | None, Fault]:
    """Apply what request `ref` of `job` tells of a lane."""
    lane = store.load(tx, name)
    if lane is None:
        return None, Fault.JOB
    learnt = verdict.learn(lane, holder, ref, job, token, report, tx.now)
    if learnt.spared:
        run(return_attempts(tx.shared, learnt.spared))
    if learnt.closed:
        run(wake_lane(tx.shared, name))
    store.save(tx, lane)
    return lane, learnt.fault
