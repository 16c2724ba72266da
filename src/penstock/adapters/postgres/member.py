"""One worker process's membership of a PostgreSQL queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg

from penstock.adapters.postgres.claim import Claimed, claim, make_ready
from penstock.adapters.postgres.database import Connection, Pool, Transaction
from penstock.adapters.postgres.lanes import PostgresLanes, free_slots, unserved
from penstock.adapters.postgres.lanes import lock as lock_lanes
from penstock.adapters.postgres.orphans import Orphans
from penstock.adapters.postgres.renewal import Renewal
from penstock.adapters.postgres.settle import (
    IS_MEMBER,
    columns,
    is_plain,
    note_progress,
    refused,
    settle,
    standing_leases,
)
from penstock.adapters.queue import Joining
from penstock.adapters.sql import changes, permits
from penstock.adapters.sql.lane_settle import Learning
from penstock.adapters.sql.member import SqlMember
from penstock.lanes.permit import still_ours, to_nobody
from penstock.lanes.verdict import lane_of
from penstock.ports.lanes import Busy, Permit, PermitRequest, Returned
from penstock.ports.queue import Exchange, Lease, Progress, Ref, Settlement, StepWrite, Topic, Want
from penstock.ports.steps import EVENT_NAME, StepRow

if TYPE_CHECKING:
    from penstock.adapters.postgres.queue import PostgresQueue

_EXCHANGE = (
    "SELECT * FROM penstock.exchange_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
)

_RECORDED = "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"
_RECORD = "SELECT penstock.record_steps_2" + _RECORDED
_RECORD_ONE = "SELECT penstock.record_step_1" + _RECORDED


EFFECTS = 10
"""Transactions of steps at a time; more wait. Apart from the connections of all else: how long
these are in use is the handlers' doing."""
FAULTS_OF_EFFECTS = (
    asyncpg.IntegrityConstraintViolationError,  # of a constraint that is looked at in the end
    asyncpg.InFailedSQLTransactionError,  # it went on after a statement that failed
)


class _Answer(NamedTuple):
    """The first columns of a row of the exchange; a lease follows."""

    refused: list[int] | None
    member: bool
    chores: bool
    lines: bool
    next_at: float | None
    at: float


class _Trip(NamedTuple):
    """The result of one round trip to the server."""

    refused: set[int]
    claimed: Claimed
    chores: bool
    lines: bool
    """There is more to a claim just now; then nothing was claimed."""


class PostgresMember(SqlMember):
    """See `penstock.ports.queue.Member`."""

    transactions = True

    def __init__(self, queue: PostgresQueue, joining: Joining) -> None:
        super().__init__(queue, joining)
        self._queue = queue
        self._database = queue.database
        self._trips = Pool(queue.database, "work", 1)
        self._effects = Pool(queue.database, "effects", EFFECTS)

    async def _enter(self) -> int:
        try:
            return await self._trips.write(self._insert)
        except BaseException:
            await self._trips.close()
            raise

    async def join(self) -> None:
        await super().join()
        self._renewal: Renewal = Renewal(self._database, self._number, self.id, self._lease_seconds)
        self._orphans = Orphans(self._number, self.id, self._trips.made)

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        progress: Sequence[Progress],
        want: Want | None,
        returned: Sequence[Returned] = (),
    ) -> Exchange:
        """Completed runs that concern only their own row are settled in the trip that claims.
        Whatever else there is goes before it, and what needs more than a plain claim after, each
        in a short transaction."""
        if want is not None and not want.looks:
            want = None
        async with self._orphans.watched(self._trips):
            others = [s for s in settlements if not is_plain(s)]
            stale: list[Settlement] = []
            spared: frozenset[Ref] = frozenset()
            woken: list[tuple[str, str]] = []
            if others or progress or returned:
                stale, spared, woken = await self._trips.write(
                    lambda tx: self._settle(tx, others, progress, returned)
                )
            plain = settlements if not others else [s for s in settlements if is_plain(s)]
            trip = await self._plain_trip(plain, want)
            claimed = trip.claimed
            stale += [s for s in plain if s.lease.seq in trip.refused]
            if want is not None and claimed.member:
                if trip.chores:
                    await self._do_chores(want)
                if trip.chores or trip.lines:
                    claimed = await self._claim(want)
            if woken:
                await self._trips.write(lambda tx: self._announce(tx, woken))
            self._orphans.settled(settlements, returned)
            self._orphans.leased(claimed.leases)
        self._tell(settlements, claimed.leases)
        return Exchange(claimed.leases, stale, claimed.next_at, claimed.member, spared)

    async def _plain_trip(self, completed: Sequence[Settlement], want: Want | None) -> _Trip:
        """Settle and claim in one round trip."""
        wanted: list[Any] = [None, 0, False, None, False]
        if want is not None:
            wanted = [list(want.kinds), want.limit, want.crashed, want.ordinary, want.lanes > 0]
        clock = self._database.clock
        async with self._trips.connection() as connection:
            sent = clock.local()
            rows = await connection.fetch(
                self._database.sql(_EXCHANGE), self._number, self.id, *columns(completed), *wanted
            )
        width = len(_Answer._fields)
        answer = _Answer(*rows[0][:width])
        clock.sample(sent, answer.at)
        leases = [Lease(*row[width:]) for row in rows[1:]]
        next_at = answer.next_at
        if want is not None and want.limit and len(leases) == want.limit and not want.lanes:
            next_at = None  # there may be more at once
        claimed = Claimed(leases, next_at, answer.member)
        return _Trip(set(answer.refused or ()), claimed, answer.chores, answer.lines)

    async def _settle(
        self,
        tx: Transaction,
        settlements: Sequence[Settlement],
        progress: Sequence[Progress],
        returned: Sequence[Returned],
    ) -> tuple[list[Settlement], frozenset[Ref], list[tuple[str, str]]]:
        """Who was refused, who was spared, and the lines that slots were freed for."""
        spared: frozenset[Ref] = frozenset()
        if not await tx.fetchval(IS_MEMBER, self._number, self.id):
            return await refused(tx, self._number, self.id, settlements), spared, []
        names = {lane_of(s) for s in settlements} | {one.permit.lane for one in returned}
        names.discard("")
        refs = [s.lease.ref for s in settlements] + [note.lease.ref for note in progress]
        standing: set[Ref] = set()
        if names:
            learning = Learning(PostgresLanes(tx), self._number, await lock_lanes(tx, names))
            asking = {(one.job, one.id, one.token) for one in returned if one.job > 0}
            known = await standing_leases(tx, self._number, asking, ended=True)
            returned = still_ours(returned, known)
            await learning.hear(returned)
            if refs:
                standing = await standing_leases(tx, self._number, refs)
                settlements, spared = await learning.judge(settlements, standing)
            await learning.save()
        elif len({s.outcome for s in settlements}) + bool(progress) > 1:
            # One statement for each outcome: in the order of seq only if they are locked before.
            await standing_leases(tx, self._number, refs)
        # Progress before: it may be the last word of what is settled.
        entries = await note_progress(tx, self._number, progress) if progress else []
        stale, told = await settle(tx, self._number, self.id, settlements)
        entries += told
        slots = [s.lease.seq for s in settlements if s.lease.lane and s.lease.ref in standing]
        slots += [one.permit.ref for one in returned]
        if slots:
            await free_slots(tx, self._number, slots)
        await changes.append(tx, entries)
        woken, tx.woken = tx.woken, []
        return stale, spared, woken

    async def _announce(self, tx: Transaction, woken: Sequence[tuple[str, str]]) -> None:
        """Tell other processes of lines that the claim of this trip has not served: in vain they
        would all come and lock the lanes."""
        if await unserved(tx, woken):
            tx.wake(Topic.READY)

    async def _do_chores(self, want: Want) -> None:
        queue = self._queue
        await self._trips.write(lambda tx: make_ready(tx, want, queue.weights, queue.lane_config))

    async def _claim(self, want: Want) -> Claimed:
        # A claim that a crash of the server forgets leaves its jobs queued, as they were.
        return await self._trips.write(
            lambda tx: claim(tx, self._number, self.id, want, self._queue.lane_config), soft=True
        )

    def _tell(self, settlements: Sequence[Settlement], leases: Sequence[Lease]) -> None:
        if settlements:
            self._queue.wakeups.changed([Topic.FINISHED])
        elif leases:
            self._queue.wakeups.changed([])

    async def permits(self, requests: Sequence[PermitRequest]) -> list[Permit | Busy]:
        await self._queue.configure([request.lane for request in requests])
        async with self._orphans.watched(self._trips):
            answers = await self._trips.write(lambda tx: self._permit(tx, requests))
            self._orphans.permitted(answers)
        return answers

    async def _permit(
        self, tx: Transaction, requests: Sequence[PermitRequest]
    ) -> list[Permit | Busy]:
        here = "SELECT 1 FROM penstock.processes WHERE number = $1 AND id = $2 FOR KEY SHARE"
        if await tx.fetchval(here, self._number, self.id) is None:
            return to_nobody(requests, tx.now)
        return await permits.take(PostgresLanes(tx), self._number, requests)

    async def record(self, writes: Sequence[StepWrite]) -> list[bool]:
        # Not over the connection of the trips, which may be at a claim: one statement, one trip.
        soft = all(row.result is None for _, row in writes)
        rows = [(*lease.ref, *row) for lease, row in writes]
        async with self._queue.pool().connection() as connection:
            if len(rows) == 1:
                stored = [await self._record_one(connection, soft, rows[0])]
            else:
                places = await connection.fetchval(
                    self._database.sql(_RECORD),
                    *(self._number, self.id, soft),
                    *zip(*rows, strict=True),
                )
                stored = [place in places for place in range(1, len(rows) + 1)]
            if any(row.name == EVENT_NAME for _, row in writes):
                await self._queue.ring(connection, Topic.FINISHED)
        return stored

    async def _record_one(self, connection: Connection, soft: bool, row: Sequence[Any]) -> bool:
        record = self._database.sql(_RECORD_ONE)
        return bool(await connection.fetchval(record, self._number, self.id, soft, *row))

    async def transact(
        self, lease: Lease, effect: Callable[[Any], Awaitable[StepRow]]
    ) -> StepRow | None:
        failure: Exception | None = None
        stored: StepRow | None = None
        async with self._effects.connection() as connection:
            transaction = connection.transaction()
            await transaction.start()
            try:
                row = await effect(connection)
            except Exception as error:
                failure = error
                await transaction.rollback()
            else:
                try:
                    stored = await self._record_in(connection, lease, row)
                    await (transaction.commit() if stored else transaction.rollback())
                except FAULTS_OF_EFFECTS as error:
                    failure = error
        if failure is not None:  # outside: it is the function's, not the queue's
            raise failure
        return stored

    async def _record_in(
        self, connection: Connection, lease: Lease, row: StepRow
    ) -> StepRow | None:
        """Store a step in the transaction that is open; None if the lease is lost. The job stays
        locked until its end: nobody takes it over in between."""
        return row if await self._record_one(connection, False, (*lease.ref, *row)) else None

    async def _close(self) -> None:
        async with AsyncExitStack() as closing:  # each of them, whatever becomes of the others
            closing.push_async_callback(self._effects.close)
            closing.push_async_callback(self._trips.close)
            await super()._close()
