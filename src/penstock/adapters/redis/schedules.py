"""Schedules that are rows, in Redis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from penstock.ports.schedules import AHEAD_SECONDS, ScheduleRow

if TYPE_CHECKING:
    from penstock.adapters.redis.queue import RedisQueue


class RedisSchedules:
    """See `penstock.ports.schedules.ScheduleStore`."""

    def __init__(self, queue: RedisQueue) -> None:
        self._queue = queue
        self._tag = queue.connections.address.tag

    async def get(self, tenant: str, name: str) -> ScheduleRow | None:
        rows = await self._rows([_key(tenant, name)])
        return rows[0] if rows else None

    async def page(
        self, tenant: str | None, after: tuple[str, str] | None, limit: int
    ) -> list[ScheduleRow]:
        first = "-" if tenant is None else f"[{tenant}\n"
        if after is not None:
            first = f"({_key(*after)}"
        last = "+" if tenant is None else f"[{tenant}\x0b"
        names = f"{self._tag}:schedules"
        keys = await self._command("ZRANGEBYLEX", names, first, last, "LIMIT", 0, limit)
        return await self._rows(keys)

    async def due(self, now: float, limit: int) -> list[ScheduleRow]:
        some = ("LIMIT", 0, limit)
        late, ahead = f"{self._tag}:schedule_next", f"{self._tag}:schedule_counted"
        keys = await self._command("ZRANGEBYSCORE", late, "-inf", repr(now), *some)
        since = f"({now + AHEAD_SECONDS!r}"
        keys += await self._command("ZRANGEBYSCORE", ahead, since, "+inf", *some)
        return await self._rows(list(dict.fromkeys(keys)))

    async def put(self, row: ScheduleRow, was: str | None) -> bool:
        ask = {"tick": written(row, was), "wake": True}
        stored = await self._queue.connections.call("put_schedule", ask)
        await self._queue.synced()
        return bool(stored)

    async def remove(self, tenant: str, name: str) -> bool:
        ask = {"key": _key(tenant, name)}
        removed = await self._queue.connections.call("remove_schedule", ask)
        await self._queue.synced()
        return bool(removed)

    async def _rows(self, keys: Sequence[str]) -> list[ScheduleRow]:
        if not keys:
            return []
        texts = await self._command("HMGET", f"{self._tag}:schedule_rows", *keys)
        # None: removed in this moment.
        return [ScheduleRow(**json.loads(text.partition(" ")[2])) for text in texts if text]

    async def _command(self, *words: str | int) -> Any:
        return await self._queue.connections.command(*words)


def written(row: ScheduleRow, was: str | None) -> dict[str, Any]:
    """A row as scripts take it."""
    ask = {
        "key": _key(row.tenant, row.name),
        "name": row.name,
        "was": was or "",
        "row": f"{row.revision} {json.dumps(asdict(row))}",
    }
    when = {"next_at": row.next_at, "counted_at": row.counted_at}
    return ask if row.next_at is None else {**ask, **when}


def _key(tenant: str, name: str) -> str:
    return f"{tenant}\n{name}"
