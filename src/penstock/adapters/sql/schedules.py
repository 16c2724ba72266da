"""Schedules that are rows, in a database. Statements: `schedules.sql`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from penstock.adapters.sql.dialect import Row, Sql
from penstock.errors import ScheduleChanged
from penstock.ports.queue import Topic
from penstock.ports.schedules import ScheduleRow, ScheduleTick

if TYPE_CHECKING:
    from penstock.adapters.sql.queue import SqlQueue


class SqlSchedules:
    """See `penstock.ports.schedules.ScheduleStore`."""

    def __init__(self, queue: SqlQueue) -> None:
        self._queue = queue

    async def get(self, tenant: str, name: str) -> ScheduleRow | None:
        rows = await self._queue.rows("schedule", tenant=tenant, name=name)
        return _row(rows[0]) if rows else None

    async def page(
        self, tenant: str | None, after: tuple[str, str] | None, limit: int
    ) -> list[ScheduleRow]:
        of, name = after or (tenant or "", "")
        given = {"tenant": of, "name": name, "limit": limit}
        statement = "schedules_of" if tenant is not None else "schedules"
        return [_row(row) for row in await self._queue.rows(statement, **given)]

    async def due(self, now: float, limit: int) -> list[ScheduleRow]:
        rows = await self._queue.rows("due_schedules", now=now, limit=limit)
        rows += await self._queue.rows("schedules_ahead", now=now, limit=limit)
        return [_row(row) for row in rows]

    async def put(self, row: ScheduleRow, was: str | None) -> bool:
        async def put(tx: Sql) -> bool:
            stored = await _write(tx, row, was)
            if stored:
                tx.wake(Topic.SCHEDULED)
            return stored

        return await self._queue.change(put)

    async def remove(self, tenant: str, name: str) -> bool:
        values = {"tenant": tenant, "name": name}
        return bool(await self._queue.change(lambda tx: tx.execute("remove_schedule", **values)))


async def move(tx: Sql, tick: ScheduleTick) -> None:
    """Move a schedule on; ScheduleChanged if that was done already."""
    if not await _write(tx, *tick):
        raise ScheduleChanged(tick.row.name)


async def _write(tx: Sql, row: ScheduleRow, was: str | None) -> bool:
    values = {**asdict(row), "overlap": int(row.overlap)}
    if was is None:
        return bool(await tx.execute("add_schedule", **values))
    return bool(await tx.execute("move_schedule", **values, was=was))


def _row(row: Row) -> ScheduleRow:
    values = dict(row)
    return ScheduleRow(**{**values, "overlap": bool(values["overlap"])})
