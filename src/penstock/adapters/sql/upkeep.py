"""Periodic upkeep that any process does for all: takeover, ageing, deadlines, retention."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.adapters.lease_watch import LeaseWatch, MemberLook
from penstock.adapters.queue_clock import ClockWatch
from penstock.adapters.sql import lanes
from penstock.adapters.sql.chores import fail_overdue
from penstock.adapters.sql.dialect import Row, Sql
from penstock.adapters.sql.queue import SqlQueue
from penstock.adapters.sql.takeover import found_dead, sweep_files
from penstock.ports.queue import NO_LANE, Topic

AGE_LIMIT = 100
AGE_HEADS = 1000
"""How far down a line is looked for jobs that have waited long."""
FORWARD_LIMIT = 1000
RETENTION_LIMIT = 500
RETENTION_EVERY = 60.0


class Upkeep:
    """The upkeep done by one member. It writes only where reading finds something to do."""

    def __init__(self, queue: SqlQueue, number: int, kinds: Sequence[str]) -> None:
        self._queue = queue
        self._number = number
        self._kinds = kinds
        self._aged_at = 0.0
        self._retained_at = 0.0
        self._clock = ClockWatch()
        self._watch = LeaseWatch()

    async def run(self) -> None:
        queue, now = self._queue, self._queue.now()
        rows = await queue.rows("other_members", me=self._number)
        others = [MemberLook(*row) for row in rows]
        dead, lapsed = found_dead(others, queue.folder), self._watch.lapsed(others)
        if dead or lapsed:
            await queue.take_over(dead, lapsed)
            sweep_files(queue.folder, await queue.life_names())
        ((overdue, cascades, ahead, clock),) = await queue.rows("chores")
        if overdue:  # for when no worker is free to claim
            await queue.change(fail_overdue)
        if cascades:
            await queue.cancel_children()
        if ahead:
            await queue.change(_bring_forward)
        if self._clock.went_back(clock):
            self._aged_at = self._retained_at = 0.0
            if await queue.rows("any_ahead"):
                await queue.change(lambda tx: lanes.set_back(queue.lane_rows(tx)))
        if now >= self._aged_at + queue.ageing_seconds / 4:
            self._aged_at = now
            if await queue.look(self._aged):
                await queue.change(self._age)
        if now >= self._retained_at + RETENTION_EVERY:
            self._retained_at = now
            await retain(queue)

    async def _aged(self, tx: Sql) -> list[Row]:
        rows: list[Row] = []
        lines = [(NO_LANE, kind) for kind in self._kinds]
        for kind in self._kinds:
            lines += await tx.fetch("oldest_lines", kind=kind, limit=AGE_LIMIT)
        limits = {"limit": AGE_LIMIT, "heads": AGE_HEADS}
        before = tx.now - self._queue.ageing_seconds
        for lane, kind in lines:
            for band in (90, 50):
                rows += await tx.fetch(
                    "aged", lane=lane, kind=kind, band=band, before=before, **limits
                )
        return rows

    async def _age(self, tx: Sql) -> None:
        """Lift jobs that waited long by one band, to the end of its line."""
        rows = await self._aged(tx)
        lifted = [(seq, lane, band - 40, tenant) for seq, lane, band, tenant in rows]
        await self._queue.place(tx, lifted)
        tx.wake(Topic.READY)


async def _bring_forward(tx: Sql) -> None:
    """Jobs that were put off while the clock was ahead of now are due as long from now as they were
    from then."""
    await tx.execute("bring_forward", now=tx.now, limit=FORWARD_LIMIT)
    tx.wake(Topic.READY)


async def retain(queue: SqlQueue) -> None:
    """Delete completed and cancelled jobs that are past the retention, and what is spent."""
    while await queue.change(lambda tx: _forget(tx, queue.retention_seconds)):
        pass
    if await queue.rows("any_old_charge", before=queue.now() - queue.usage_retention_seconds):
        from penstock.adapters.sql import ledger

        await ledger.forget(queue.change, queue.now() - queue.usage_retention_seconds)
    if await queue.rows("any_past_unique", now=queue.now()):
        while await queue.change(_forget_unique):
            pass
    await queue.change(lambda tx: lanes.forget_lanes(queue.lane_rows(tx)))
    await queue.forget_feed()


async def _forget_unique(tx: Sql) -> bool:
    """Delete a chunk of what says nothing any more; whether there may be more."""
    count = await tx.execute("forget_unique", now=tx.now, limit=RETENTION_LIMIT)
    return count == RETENTION_LIMIT


async def _forget(tx: Sql, retention_seconds: float) -> bool:
    """Delete a chunk; whether there may be more."""
    rows = await tx.fetch("forget", before=tx.now - retention_seconds, limit=RETENTION_LIMIT)
    for tenant, log in sorted({(tenant, log) for tenant, log in rows if log is not None}):
        # Locked first, then looked at: whoever was writing to it has left a job to be seen.
        lock = "SELECT 1 FROM penstock.logs WHERE tenant = :tenant AND log = :log FOR UPDATE"
        await tx.fetch(lock, tenant=tenant, log=log)
        await tx.execute("forget_changes", tenant=tenant, log=log)
        await tx.execute("forget_log", tenant=tenant, log=log)
    return len(rows) == RETENTION_LIMIT
