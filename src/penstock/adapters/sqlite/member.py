"""One worker process's membership of a SQLite queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.adapters.queue import Joining
from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.member import SqlMember
from penstock.adapters.sqlite import lanes
from penstock.adapters.sqlite.claim import claim, claim_new
from penstock.adapters.sqlite.direct_handover import WaitingClaim
from penstock.adapters.sqlite.lane_settle import give_back
from penstock.adapters.sqlite.lanes import SqliteLanes
from penstock.adapters.sqlite.renewal import Renewal
from penstock.adapters.sqlite.settle import note_progress, refused, settle
from penstock.adapters.sqlite.transaction import Transaction, own, run, sql
from penstock.ports.lanes import Busy, Permit, PermitRequest, Returned
from penstock.ports.queue import Exchange, Lease, Progress, Settlement, StepWrite, Topic, Want
from penstock.ports.steps import EVENT_NAME

if TYPE_CHECKING:
    from penstock.adapters.sqlite.queue import SqliteQueue


class SqliteMember(SqlMember):
    """See `penstock.ports.queue.Member`."""

    def __init__(self, queue: SqliteQueue, joining: Joining) -> None:
        super().__init__(queue, joining)
        self._queue = queue

    async def join(self) -> None:
        await super().join()
        self._renewal: Renewal = Renewal(self._queue, self._number, self.id, self._lease_seconds)

    def _is_member(self, tx: Transaction) -> bool:
        """Whether the number is this membership's: the id is what nobody else ever has."""
        here = "SELECT 1 FROM processes WHERE number = ? AND id = ?"
        return tx.execute(here, (self._number, self.id)).fetchone() is not None

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        progress: Sequence[Progress],
        want: Want | None,
        returned: Sequence[Returned] = (),
    ) -> Exchange:
        loop = asyncio.get_running_loop()

        def trip(tx: Transaction) -> Exchange:
            tx.standing.pop(self.id, None)
            if not self._is_member(tx):
                return Exchange([], refused(tx, settlements), None, False)
            if returned:
                give_back(tx, self._number, returned)
            if progress:  # before: it may be the last word of what is settled
                note_progress(tx, self._number, progress)
            stale, spared = settle(tx, self._number, self.id, settlements)
            if want is None or not want.looks:
                lanes.announce(tx)
                self._stand(tx, loop, want, 0)
                return Exchange([], stale, None, True, spared)
            claimed = claim(tx, self._number, want, self._queue.weights, self._queue.lane_config)
            lanes.announce(tx)
            found = sum(not lease.lane for lease in claimed.leases)
            self._stand(tx, loop, want, found)
            return Exchange(claimed.leases, stale, claimed.next_at, True, spared)

        soft = not settlements and not progress and not returned
        return await self._queue.write(trip, soft=soft)

    def _stand(
        self, tx: Transaction, loop: asyncio.AbstractEventLoop, want: Want | None, found: int
    ) -> None:
        """Leave word of what would be taken before the next trip, `found` having been claimed."""
        if self._inbox is not None and want is not None and want.later > found:
            kinds, room = tuple(want.kinds), want.later - found

            def claim_now(tx: Transaction) -> list[Lease]:
                return claim_new(tx, self._number, kinds, room) if self._is_member(tx) else []

            tx.standing[self.id] = WaitingClaim(claim_now, self._inbox, loop)

    async def permits(self, requests: Sequence[PermitRequest]) -> list[Permit | Busy]:
        from penstock.adapters.sql import permits  # many processes need none
        from penstock.lanes.permit import to_nobody

        def take(tx: Transaction) -> list[Permit | Busy]:
            names = dict.fromkeys(request.lane for request in requests)
            lanes.configure(tx, names, self._queue.lane_config)
            if not self._is_member(tx):
                return to_nobody(requests, tx.now)
            return run(permits.take(SqliteLanes(tx.shared), self._number, requests))

        return await self._queue.write(take)

    def record(self, writes: Sequence[StepWrite]) -> asyncio.Future[list[bool]]:
        def store(tx: Transaction) -> list[bool]:
            statement, stored = sql("record_step"), []
            holder = {"member": self._number, "member_id": self.id}
            for lease, row in writes:
                fence = {"seq": lease.seq, "id": lease.id, "token": lease.token}
                values = {**row._asdict(), **fence, **holder}
                stored.append(tx.execute(statement, values).rowcount > 0)
                if row.name == EVENT_NAME:
                    tx.wake(Topic.FINISHED)
            return stored

        soft = all(row.result is None for _, row in writes)
        return self._queue.submit(store, soft=soft)

    async def _end(self, tx: Sql) -> None:
        own(tx).standing.pop(self.id, None)
        await super()._end(tx)
