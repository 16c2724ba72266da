"""Applies settlements to lanes, and lane verdicts to settlements."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.adapters.sql.lanes import LaneRows, States, family, return_attempts, wake_lane
from penstock.lanes import verdict
from penstock.lanes.breaker import Fault
from penstock.lanes.state import LaneState
from penstock.ports.lanes import Report, Returned
from penstock.ports.queue import Ref, Settlement


class Learning:
    """Lanes, locked, that learn from how requests went. `save` stores what they have learnt."""

    def __init__(self, rows: LaneRows, holder: int, states: States) -> None:
        self._rows = rows
        self._holder = holder
        self._states = states
        self._changed: dict[str, LaneState] = {}
        self._closed: set[str] = set()
        self._refunded: set[str] = set()

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
                    lane, self._holder, lease.seq, lease.seq, lease.token, report, self._rows.tx.now
                )
                faults[lease.seq] = await self._note(lane, learnt)
                self._teach(lane, report)
            if lane.used is not None and name == lease.lane:
                self._pay(lane, settlement)
        return verdict.judge(settlements, self._states, faults, self._rows.tx.now)

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
                    self._rows.tx.now,
                )
                await self._note(lane, learnt)
                self._teach(lane, one.report)
                if lane.used is not None:
                    self._pay(lane, one)

    def _teach(self, lane: LaneState, report: Report | None) -> None:
        lanes = family(self._states, lane.name)
        if verdict.teach(lanes, report, self._rows.tx.now):
            self._changed.update((one.name, one) for one in lanes)

    def _pay(self, lane: LaneState, end: Settlement | Returned) -> None:
        from penstock.adapters.sql import amounts

        lanes = family(self._states, lane.name)
        if amounts.pay(lanes, end, self._rows.tx.now):
            self._refunded.add(lane.name)
        self._changed.update((one.name, one) for one in lanes)

    async def _note(self, lane: LaneState, learnt: verdict.Learnt) -> Fault:
        self._changed[lane.name] = lane
        await return_attempts(self._rows.tx, learnt.spared)
        if learnt.closed:
            self._closed.add(lane.name)
        return learnt.fault

    async def save(self) -> None:
        await self._rows.save(self._changed.values())
        for name in sorted(self._closed):
            await wake_lane(self._rows.tx, name)
        if self._refunded:
            # Whoever settles has a worker to spare: nobody else is told.
            tx = self._rows.tx
            await tx.execute("look_now", lanes=sorted(self._refunded), now=tx.now)
