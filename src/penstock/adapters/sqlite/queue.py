"""The job queue in one SQLite file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from penstock import runtime
from penstock.adapters.sql.dialect import Row, Sql
from penstock.adapters.sql.queue import SqlQueue
from penstock.adapters.sqlite import feed, lane_view
from penstock.adapters.sqlite.dialect import SqliteDatabase
from penstock.adapters.sqlite.enqueue import enqueue
from penstock.adapters.sqlite.file import SqliteFile
from penstock.adapters.sqlite.lanes import configure
from penstock.adapters.sqlite.member import SqliteMember
from penstock.errors import ConfigError
from penstock.model.job import Job
from penstock.model.lane import LaneConfig, LaneLimits
from penstock.ports.lanes import LaneCommand, LaneInfo
from penstock.ports.queue import FeedEntry, Inbox, NewJobs

T = TypeVar("T")


class SqliteQueue(SqliteFile, SqlQueue):
    """See `penstock.ports.queue.JobQueue`. Any number of processes may share the file."""

    def __init__(
        self,
        url: str,
        *,
        durable: bool = True,
        ageing_seconds: float = 300.0,
        retention_seconds: float = 7 * 86400.0,
        weights: Mapping[str, float] | None = None,
        lane_config: Callable[[str], LaneConfig] = lambda name: LaneConfig(),
    ) -> None:
        super().__init__(url, durable=durable)
        self.ageing_seconds = ageing_seconds
        self.weights = dict(weights or {})
        self.lane_config = lane_config
        self.retention_seconds = retention_seconds
        self._shared = SqliteDatabase(self)

    async def look(self, operation: Callable[[Sql], Awaitable[T]], *, long: bool = False) -> T:
        return await self._shared.read(operation)

    async def change(self, operation: Callable[[Sql], Awaitable[T]]) -> T:
        return await self._shared.write(operation)

    async def why_waiting(self, tx: Sql, rows: Sequence[Row]) -> dict[int, str]:
        return await lane_view.why_waiting(tx, rows)

    async def exists(self) -> bool:
        return self.path.exists()

    def now(self) -> float:
        return runtime.now()

    async def enqueue(self, batch: NewJobs, conn: Any = None) -> list[Job]:
        if conn is not None:
            raise ConfigError(
                "conn= is for a queue in PostgreSQL; a SQLite queue cannot join a transaction"
            )
        return await self.write(lambda tx: enqueue(tx, batch, self.weights, self.lane_config))

    async def lanes(self) -> list[LaneInfo]:
        return await self.read(lane_view.infos)

    async def configure(self, lanes: Sequence[str]) -> None:
        await self.write(lambda tx: configure(tx, lanes, self.lane_config))

    async def control(self, lane: str, control: LaneCommand) -> bool:
        return await self.write(lambda tx: lane_view.control(tx, lane, control))

    async def limit(self, lane: str, limits: LaneLimits | None) -> bool:
        return await self.write(lambda tx: lane_view.limit(tx, lane, limits))

    def callers_waiting(self) -> int:
        return self.waiting

    async def feed(self, tenant: str, after: str | None, limit: int) -> list[FeedEntry]:
        return await self.read(lambda connection: feed.read(connection, tenant, after, limit))

    async def feed_end(self, tenant: str) -> str:
        return await self.read(feed.end)

    async def join(
        self,
        kinds: Sequence[str],
        max_workers: int,
        lease_seconds: float,
        inbox: Inbox | None = None,
    ) -> SqliteMember:
        member = SqliteMember(self, kinds, max_workers, lease_seconds, inbox)
        await member.join()
        return member
