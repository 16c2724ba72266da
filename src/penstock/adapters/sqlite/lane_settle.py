"""Lets lanes learn from settlements, and from permits that come back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from penstock.adapters.sql.lane_settle import Learning
from penstock.adapters.sqlite import lanes as store
from penstock.adapters.sqlite.transaction import Transaction, run
from penstock.lanes import verdict
from penstock.ports.lanes import Report, Returned
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
    told = ((verdict.lane_of(one), one.report) for one in settlements)
    learning = _learning(tx, holder, told)
    judged = run(learning.judge(settlements, standing))
    run(learning.save())
    return judged


def give_back(tx: Transaction, holder: int, returned: Sequence[Returned]) -> None:
    """End permits, and let their lanes learn how the requests of jobs held here went."""
    from penstock.lanes.permit import still_ours  # here, because many processes take no permits

    refs = [(one.job, one.id, one.token) for one in returned if one.job > 0]
    known = standing_leases(tx, holder, refs, ended=True) if refs else set()
    returned = still_ours(returned, known)
    learning = _learning(tx, holder, ((one.permit.lane, one.report) for one in returned))
    run(learning.hear(returned))
    run(learning.save())
    store.free_slots(tx, holder, [one.permit.ref for one in returned])


def _learning(tx: Transaction, holder: int, told: Iterable[tuple[str, Report | None]]) -> Learning:
    """With the parents of those lanes of which they learn, or have to settle, something."""
    timed: dict[str, bool] = {}
    for name, report in told:
        timed[name] = timed.get(name, False) or (report is not None and report.took is not None)
    found = [store.load(tx, name) for name in timed if name]
    states = {lane.name: lane for lane in found if lane is not None}
    for lane in list(states.values()):
        if lane.parent is None or lane.parent in states:
            continue
        if lane.used is not None or timed[lane.name]:
            states |= {one.name: one for one in store.with_parent(tx, lane.name)[1:]}
    return Learning(store.SqliteLanes(tx.shared), holder, states)
