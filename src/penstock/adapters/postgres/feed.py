"""The feed of a tenant: the entries of all its logs, in one order.

An entry can be read once every transaction that began to write before its own has ended. Until
then its wake-up was early; so whoever listens is woken again, soon and then ever more slowly.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING

from penstock.adapters.feed_position import foreign, parse
from penstock.adapters.sql.job_rows import change_of
from penstock.ports.queue import FeedEntry, Topic

if TYPE_CHECKING:
    from penstock.adapters.postgres.queue import PostgresQueue

FORM = r"p(\d{1,18})\.(\d{1,18})\.([\w=-]*)"
"""A transaction's id, a version, and a log; encoded, because any text may be the name of one."""
AGAIN_FIRST, AGAIN_LAST = 0.02, 1.0
# Numbers travel as text: the driver knows no xid8.
_READ = (
    "SELECT horizon::text::bigint, next::text::bigint, feed::text::bigint,"
    " log, version, at, what, job_id, data"
    " FROM penstock.feed_1($1, $2::bigint::text::xid8, $3, $4, $5)"
)
_END = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"


class FeedReader:
    """Reads feeds for one queue object."""

    def __init__(self, queue: PostgresQueue) -> None:
        self._queue = queue
        self._again: dict[str, tuple[float, asyncio.TimerHandle]] = {}
        """By tenant, of those with an entry that cannot be read yet: the pause, and its end."""

    async def read(self, tenant: str, after: str | None, limit: int) -> list[FeedEntry]:
        place = (0, "", 0) if after is None else _place(after)
        rows = await self._queue.fetch(_READ, tenant, *place, limit)
        if after is not None and place[0] > rows[0]["next"]:
            raise foreign(after)
        found = [row for row in rows if row["feed"] is not None]
        readable = [row for row in found if row["feed"] < row["horizon"]]
        if len(readable) < len(found):
            self._look_again(tenant)
        else:
            self._forget(tenant)
        return [FeedEntry(_position(*row[2:5]), change_of(row[3:])) for row in readable]

    async def end(self) -> str:
        return _position(await self._queue.fetchval(_END), "", 0)

    def close(self) -> None:
        for tenant in list(self._again):
            self._forget(tenant)

    def _look_again(self, tenant: str) -> None:
        pause, timer = self._again.get(tenant, (AGAIN_FIRST / 2, None))
        if timer is not None and timer.when() > asyncio.get_running_loop().time():
            return
        pause = min(pause * 2, AGAIN_LAST)
        timer = asyncio.get_running_loop().call_later(
            pause, self._queue.wakeups.ring, [Topic.FINISHED]
        )
        self._again[tenant] = (pause, timer)

    def _forget(self, tenant: str) -> None:
        if tenant in self._again:
            self._again.pop(tenant)[1].cancel()


def _position(feed: int, log: str, version: int) -> str:
    return f"p{feed}.{version}.{urlsafe_b64encode(log.encode()).decode()}"


def _place(position: str) -> tuple[int, str, int]:
    feed, version, encoded = parse(FORM, position)
    try:
        log = urlsafe_b64decode(encoded).decode()
    except ValueError:
        raise foreign(position) from None
    if "\0" in log:
        raise foreign(position)
    return int(feed), log, int(version)
