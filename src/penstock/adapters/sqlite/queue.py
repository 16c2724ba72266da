"""The job queue in one SQLite file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from penstock import runtime
from penstock.adapters.queue import Joining, QueueOptions
from penstock.adapters.sql.chores import Placed
from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.queue import SqlQueue
from penstock.adapters.sqlite import feed
from penstock.adapters.sqlite.dialect import SqliteDatabase
from penstock.adapters.sqlite.enqueue import enqueue
from penstock.adapters.sqlite.fairness import place
from penstock.adapters.sqlite.file import SqliteFile
from penstock.adapters.sqlite.lanes import SqliteLanes, configure
from penstock.adapters.sqlite.member import SqliteMember
from penstock.adapters.sqlite.transaction import SqliteSql, own
from penstock.model.job import Job
from penstock.ports.queue import FeedEntry, NewJobs

if TYPE_CHECKING:
    from penstock.adapters.sqlite.caller import CallersJobs

T = TypeVar("T")


class SqliteQueue(SqliteFile, SqlQueue):
    """See `penstock.ports.queue.JobQueue`. Any number of processes may share the file."""

    def __init__(self, url: str, *, durable: bool = True, **options: Unpack[QueueOptions]) -> None:
        SqliteFile.__init__(self, url, durable=durable)
        SqlQueue.__init__(self, **options)
        self._shared = SqliteDatabase(self)
        self._callers: CallersJobs | None = None

    async def look(self, operation: Callable[[Sql], Awaitable[T]], *, long: bool = False) -> T:
        return await self._shared.read(operation)

    async def change(self, operation: Callable[[Sql], Awaitable[T]], *, soft: bool = False) -> T:
        return await self._shared.write(operation, soft=soft)

    async def place(self, tx: Sql, jobs: Sequence[Placed]) -> None:
        place(own(tx), jobs, self.weights)

    def lane_rows(self, tx: Sql) -> SqliteLanes:
        assert isinstance(tx, SqliteSql)
        return SqliteLanes(tx)

    async def exists(self) -> bool:
        return self.path.exists()

    def now(self) -> float:
        return runtime.now()

    async def enqueue(self, batch: NewJobs, conn: Any = None) -> list[Job]:
        if conn is not None:
            if self._callers is None:
                from penstock.adapters.sqlite.caller import CallersJobs

                self._callers = CallersJobs(self)
            return await self._callers.enqueue(conn, batch)
        return await self.write(lambda tx: enqueue(tx, batch, self.weights, self.lane_config))

    async def close(self) -> None:
        callers, self._callers = self._callers, None
        if callers is not None:
            await callers.close()
        await super().close()

    async def configure(self, lanes: Sequence[str]) -> None:
        await self.write(lambda tx: configure(tx, lanes, self.lane_config))

    def callers_waiting(self) -> int:
        return self.waiting

    async def feed(self, tenant: str, after: str | None, limit: int) -> list[FeedEntry]:
        return await self.read(lambda connection: feed.read(connection, tenant, after, limit))

    async def feed_end(self, tenant: str) -> str:
        return await self.read(feed.end)

    async def forget_feed(self) -> None:
        while await self.write(feed.forget):
            pass

    def new_member(self, joining: Joining) -> SqliteMember:
        return SqliteMember(self, joining)
