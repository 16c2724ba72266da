"""Applies settlements to lanes, and lane verdicts to settlements."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.adapters.postgres import lanes as store
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.lanes import States, return_attempts, wake_lane
from penstock.lanes import verdict
from penstock.lanes.breaker import Fault
from penstock.lanes.state import LaneState
from penstock.ports.lanes import Returned
from penstock.ports.queue import Ref, Settlement


async def standing_leases(
    tx: Transaction, holder: int, leases: Collection[Ref], *, ended: bool = False
) -> set[Ref]:
    """Which leases still stand: only these teach a lane anything, or have a slot to free. Their
    jobs are locked, so that they stand until this transaction ends. With `ended`, also those that
    have ended since and nobody else has begun; then nothing is locked."""
    if not leases:
        return set()
    rows = await tx.fetch(
        "SELECT j.seq, j.id, j.token FROM penstock.jobs AS j"
        " JOIN unnest($1::bigint[], $2::text[], $3::bigint[]) AS s (seq, id, token)"
        " ON j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token"
        " WHERE j.holder IS NOT DISTINCT FROM $4 OR $5 AND j.holder IS NULL"
        f" ORDER BY j.seq {'' if ended else 'FOR UPDATE OF j'}",
        *zip(*sorted(leases), strict=True),
        holder,
        ended,
    )
    return {(seq, job_id, token) for seq, job_id, token in rows}


class Learning:
    """Lanes, locked, that learn from how requests went. `save` stores what they have learnt."""

    def __init__(self, tx: Transaction, holder: int, states: States) -> None:
        self._tx = tx
        self._holder = holder
        self._states = states
        self._changed: dict[str, LaneState] = {}
        self._closed: set[str] = set()

    async def judge(
        self, settlements: Sequence[Settlement], standing: set[Ref]
    ) -> tuple[list[Settlement], frozenset[Ref]]:
        """Let lanes learn from settlements, and say what is to be stored; see `verdict.judge`."""
        faults: dict[int, Fault] = {}
        for settlement in settlements:
            lease, name = settlement.lease, verdict.lane_of(settlement)
            lane = self._states.get(name)
            if lane is None or lease.ref not in standing:
                continue
            report = settlement.report
            if report is not None and report.told:
                faults[lease.seq] = verdict.fault_of_told(lane, report)
            else:
                learnt = verdict.learn(
                    lane, self._holder, lease.seq, lease.seq, lease.token, report, self._tx.now
                )
                faults[lease.seq] = await self._note(lane, learnt)
        return verdict.judge(settlements, self._states, faults, self._tx.now)

    async def hear(self, returned: Sequence[Returned]) -> None:
        """Let lanes learn from permits that come back."""
        for one in returned:
            lane = self._states.get(one.permit.lane)
            if lane is not None:
                learnt = verdict.learn(
                    lane,
                    self._holder,
                    one.permit.ref,
                    one.job,
                    one.token,
                    one.report,
                    self._tx.now,
                )
                await self._note(lane, learnt)

    async def _note(self, lane: LaneState, learnt: verdict.Learnt) -> Fault:
        self._changed[lane.name] = lane
        await return_attempts(self._tx, learnt.spared)
        if learnt.closed:
            self._closed.add(lane.name)
        return learnt.fault

    async def save(self) -> None:
        await store.save(self._tx, self._changed.values())
        for name in sorted(self._closed):
            await wake_lane(self._tx, name)
