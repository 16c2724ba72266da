"""Periodic upkeep that any process does for all: takeover, ageing, deadlines, retention."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.adapters.postgres import takeover
from penstock.adapters.postgres.claim import fail_overdue
from penstock.adapters.postgres.database import Pool, Transaction
from penstock.adapters.postgres.fairness import place
from penstock.adapters.postgres.lanes import free_lost_slots, set_back
from penstock.adapters.queue_clock import ClockWatch
from penstock.adapters.sql.dialect import Row, Sql
from penstock.adapters.sql.takeover import sweep_files
from penstock.lanes.state import DAY
from penstock.ports.queue import NO_LANE, Topic

if TYPE_CHECKING:
    from penstock.adapters.postgres.queue import PostgresQueue

AGE_LIMIT = 100
AGE_HEADS = 1000
"""How far down a line is looked for jobs that have waited long."""
RETENTION_LIMIT = 500
RETENTION_EVERY = 60.0
IDLE_LANE_SECONDS = 3600.0
_CHORES = (
    "SELECT EXISTS (SELECT 1 FROM penstock.jobs"
    " WHERE state = 'queued' AND deadline IS NOT NULL AND deadline <= penstock.clock()),"
    " EXISTS (SELECT 1 FROM penstock.cascades), penstock.clock()"
)
"""Whether queued jobs are overdue, and whether cancelled ones have children left."""


class Upkeep:
    """The upkeep done by one member. It writes only where reading finds something to do."""

    def __init__(self, queue: PostgresQueue, number: int, kinds: Sequence[str]) -> None:
        self._queue = queue
        self._number = number
        self._kinds = kinds
        self._aged_at = 0.0
        self._retained_at = 0.0
        self._clock = ClockWatch()

    async def run(self) -> None:
        queue = self._queue
        now = queue.now()
        rows = await queue.fetch("SELECT number, life, lease_until FROM penstock.processes")
        if suspects := takeover.suspects(rows, queue.folder, self._number, now):
            for number, life in suspects:
                await queue.write(
                    partial(takeover.dead, folder=queue.folder, number=number, life=life)
                )
            await self.end_lapsed(queue)
            sweep_files(queue.folder, await queue.life_names())
        overdue, cascades, clock = (await queue.fetch(_CHORES))[0]
        if overdue:  # for when no worker is free to claim
            await queue.write(fail_overdue)
        if cascades:
            await queue.cancel_children()
        if self._clock.went_back(clock):
            self._aged_at = self._retained_at = 0.0
            await queue.write(set_back)
        if now >= self._aged_at + queue.ageing_seconds / 4:
            self._aged_at = now
            if await queue.look(self._aged):
                await queue.write(self._age)
        if now >= self._retained_at + RETENTION_EVERY:
            self._retained_at = now
            await retain(queue)

    async def end_lapsed(self, writer: PostgresQueue | Pool) -> None:
        """End every membership that was not renewed in time, each in a transaction of its own."""
        queue = self._queue
        rows = await queue.fetch(takeover.LAPSED, queue.now(), self._number)
        for number, life in rows:
            await writer.write(
                partial(takeover.lapsed, folder=queue.folder, number=number, life=life)
            )

    async def _aged(self, tx: Sql) -> list[Row]:
        queue, rows = self._queue, list[Row]()
        lines = [(NO_LANE, kind) for kind in self._kinds]
        for kind in self._kinds:
            lines += await tx.fetch("oldest_lines", kind=kind, limit=AGE_LIMIT)
        limits = {"limit": AGE_LIMIT, "heads": AGE_HEADS}
        before = queue.now() - queue.ageing_seconds
        for lane, kind in lines:
            for band in (90, 50):
                rows += await tx.fetch(
                    "aged", lane=lane, kind=kind, band=band, before=before, **limits
                )
        return rows

    async def _age(self, tx: Transaction) -> None:
        """Lift jobs that waited long by one band, to the end of its line."""
        rows = await self._aged(tx)
        lifted = [(seq, lane, band - 40, tenant) for seq, lane, band, tenant in rows]
        await place(tx, lifted, self._queue.weights)
        tx.wake(Topic.READY)


async def retain(queue: PostgresQueue) -> None:
    """Delete completed and cancelled jobs that are past the retention, and what is spent."""
    more = True
    while more:
        more = await queue.write(lambda tx: _forget(tx, queue.retention_seconds))
    await queue.write(_forget_lanes)


async def _forget(tx: Transaction, retention_seconds: float) -> bool:
    """Delete a chunk; whether there may be more."""
    rows = await tx.fetch("forget", tx.now - retention_seconds, RETENTION_LIMIT)
    logs = sorted({(row["tenant"], row["log"]) for row in rows if row["log"] is not None})
    for tenant, log in logs:
        # Locked first, then looked at: whoever was writing to it has left a job to be seen.
        lock = "SELECT 1 FROM penstock.logs WHERE tenant = $1 AND log = $2 FOR UPDATE"
        await tx.execute(lock, tenant, log)
        await tx.execute("forget_log", tenant, log)
    return len(rows) == RETENTION_LIMIT


async def _forget_lanes(tx: Transaction) -> None:
    await free_lost_slots(tx)
    # A provider's day may begin when UTC's is nearly over: hence yesterday.
    yesterday = int(tx.now // DAY) - 1
    await tx.execute("forget_lanes", tx.now - IDLE_LANE_SECONDS, tx.now, yesterday)
    # A tenant that has had all its turns starts where everybody stands: its row says nothing.
    await tx.execute("forget_turns")
