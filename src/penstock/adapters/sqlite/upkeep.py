"""Periodic upkeep that any process does for all: take-over, ageing, deadlines, retention."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock import runtime
from penstock.adapters.queue_clock import ClockWatch
from penstock.adapters.sql.takeover import sweep_files
from penstock.adapters.sqlite import feed, lanes, takeover
from penstock.adapters.sqlite.claim import fail_overdue
from penstock.adapters.sqlite.fairness import place
from penstock.adapters.sqlite.transaction import Transaction, sql
from penstock.lanes.state import DAY
from penstock.ports.queue import NO_LANE, Topic

if TYPE_CHECKING:
    from penstock.adapters.sqlite.queue import SqliteQueue

AGE_LIMIT = 100
AGE_HEADS = 1000
"""How far down a line is looked for jobs that have waited long."""
RETENTION_LIMIT = 500
RETENTION_EVERY = 60.0
IDLE_LANE_SECONDS = 3600.0


class Upkeep:
    """The upkeep done by one member. It writes only where reading finds something to do."""

    def __init__(self, queue: SqliteQueue, number: int, kinds: Sequence[str]) -> None:
        self._queue = queue
        self._number = number
        self._kinds = kinds
        self._aged_at = 0.0
        self._retained_at = 0.0
        self._clock = ClockWatch()

    async def run(self) -> None:
        queue = self._queue
        suspects = await queue.read(
            lambda connection: takeover.suspects(
                connection, queue.folder, self._number, runtime.now()
            )
        )
        if suspects:
            await queue.write(lambda tx: self._take_over(tx, suspects))
            sweep_files(queue.folder, await queue.life_names())
        await queue.cancel_children()
        await self._if_any(_overdue, fail_overdue)
        now = runtime.now()
        if self._clock.went_back(now):
            self._aged_at = self._retained_at = 0.0
            await self._if_any(lanes.is_ahead, lanes.set_back)
        if now >= self._aged_at + queue.ageing_seconds / 4:
            self._aged_at = now
            await self._if_any(self._aged, self._age)
        if now >= self._retained_at + RETENTION_EVERY:
            self._retained_at = now
            await retain(queue)

    def _take_over(self, tx: Transaction, suspects: list[tuple[int, str]]) -> None:
        for member, life in suspects:
            takeover.dead(tx, self._queue.folder, member, life)
        takeover.lapsed(tx, self._queue.folder, self._number)

    async def _if_any(
        self,
        look: Callable[[sqlite3.Connection, float], list[Any]],
        act: Callable[[Transaction], None],
    ) -> None:
        if await self._queue.read(lambda connection: look(connection, runtime.now())):
            await self._queue.write(act)

    def _aged(self, connection: sqlite3.Connection, now: float) -> list[Any]:
        rows: list[Any] = []
        lines = [(NO_LANE, kind) for kind in self._kinds]
        for kind in self._kinds:
            values = {"kind": kind, "limit": AGE_LIMIT}
            lines += connection.execute(sql("oldest_lines"), values).fetchall()
        limits = {"limit": AGE_LIMIT, "heads": AGE_HEADS}
        before = now - self._queue.ageing_seconds
        for lane, kind in lines:
            for band in (90, 50):
                values = {"lane": lane, "kind": kind, "band": band, "before": before, **limits}
                rows += connection.execute(sql("aged"), values).fetchall()
        return rows

    def _age(self, tx: Transaction) -> None:
        """Lift jobs that waited long by one band, to the end of its line."""
        rows = self._aged(tx.connection, tx.now)
        lifted = [(seq, lane, band - 40, tenant) for seq, lane, band, tenant in rows]
        place(tx, lifted, self._queue.weights)
        tx.wake(Topic.READY)


async def retain(queue: SqliteQueue) -> None:
    """Delete completed and cancelled jobs that are past the retention, and what is spent."""
    for forget in (partial(_forget, retention_seconds=queue.retention_seconds), feed.forget):
        while await queue.write(forget):
            pass


def _forget(tx: Transaction, retention_seconds: float) -> bool:
    """Delete a chunk; whether there may be more."""
    before = tx.now - retention_seconds
    rows = tx.execute(sql("forget"), {"before": before, "limit": RETENTION_LIMIT}).fetchall()
    for tenant, log in {row for row in rows if row[1] is not None}:
        for statement in ("forget_changes", "forget_log"):
            tx.execute(sql(statement), {"tenant": tenant, "log": log})
    lanes.free_lost_slots(tx)
    # A provider's day may begin when UTC's is nearly over: hence yesterday.
    days = {"idle": tx.now - IDLE_LANE_SECONDS, "yesterday": int(tx.now // DAY) - 1}
    tx.execute(sql("forget_lanes"), {"now": tx.now, **days})
    tx.execute(sql("forget_turns"))
    return len(rows) == RETENTION_LIMIT


def _overdue(connection: sqlite3.Connection, now: float) -> list[Any]:
    """A queued job whose deadline has passed; for when no worker is free to claim."""
    return connection.execute(sql("any_overdue"), {"now": now}).fetchall()
