"""The job queue in a PostgreSQL database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from penstock.adapters.life_file import runtime_folder
from penstock.adapters.listener import Listener
from penstock.adapters.postgres import schema
from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import (
    COMMAND_SECONDS,
    LONG_SECONDS,
    TRIES,
    Connection,
    Database,
    Pool,
    Transaction,
    own,
)
from penstock.adapters.postgres.enqueue import (
    MANY,
    Stored,
    distinct,
    drawn_up,
    jobs_of,
    store,
    store_bursts,
    store_in,
    store_with_more,
)
from penstock.adapters.postgres.errors import PASSING
from penstock.adapters.postgres.errors import connection_lost as lost
from penstock.adapters.postgres.fairness import place
from penstock.adapters.postgres.feed import FeedReader
from penstock.adapters.postgres.lanes import PostgresLanes, configured
from penstock.adapters.postgres.member import PostgresMember
from penstock.adapters.postgres.wakeups import Wakeups
from penstock.adapters.queue import Joining, QueueOptions
from penstock.adapters.sql.chores import Placed
from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.queue import SqlQueue
from penstock.errors import QueueError, QueueUnavailable
from penstock.model.job import Job
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, FeedEntry, NewJob, NewJobs, Topic

if TYPE_CHECKING:
    from penstock.adapters.postgres.caller import CallersTransaction

logger = logging.getLogger("penstock.postgres")
T = TypeVar("T")
POOL_SIZE = 4
RETRY_SECONDS = 0.05


class PostgresQueue(SqlQueue):
    """See `penstock.ports.queue.JobQueue`. Any number of processes on any number of machines.

    `poll_only`: use nothing that belongs to a session (LISTEN, prepared statements), for
    poolers that give each transaction to another.
    """

    def __init__(
        self,
        url: str,
        *,
        poll_only: bool = False,
        **options: Unpack[QueueOptions],
    ) -> None:
        super().__init__(**options)
        self.database = Database(parse(url), poll_only=poll_only)
        self.url = self.database.address.shown
        self.wakeups = Wakeups(self.database)
        self._feed = FeedReader(self)
        self.folder = Path()
        self._id = ""
        self._pool: Pool | None = None

    async def open(self) -> None:
        self._id = await schema.prepare(self.database)
        try:
            self.folder = runtime_folder(self._id)
        except OSError as error:
            raise QueueUnavailable(f"cannot use {error.filename}: {error.strerror}") from error
        self._pool = Pool(self.database, "app", POOL_SIZE)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            self._feed.close()
            try:
                await self.wakeups.close()
            finally:
                await pool.close()

    async def exists(self) -> bool:
        return await schema.exists(self.database)

    def now(self) -> float:
        return self.database.clock.now()

    def pool(self) -> Pool:
        """What this process talks to the queue by, and to documents in the same place."""
        if self._pool is None:
            raise QueueError("the queue is not open; use it inside `async with app:`")
        return self._pool

    async def write(
        self, operation: Callable[[Transaction], Awaitable[T]], *, soft: bool = False
    ) -> T:
        """Run `operation` in a transaction; it may be run several times."""
        topics: set[Topic] = set()

        async def noted(tx: Transaction) -> T:
            outcome = await operation(tx)
            topics.update(tx.topics)
            return outcome

        outcome = await self.pool().write(noted, soft=soft)
        self.wakeups.changed(topics)
        return outcome

    async def change(self, operation: Callable[[Sql], Awaitable[T]], *, soft: bool = False) -> T:
        return await self.write(operation, soft=soft)

    async def look(self, operation: Callable[[Sql], Awaitable[T]], *, long: bool = False) -> T:
        return await self._look(operation, LONG_SECONDS if long else COMMAND_SECONDS)

    async def _look(self, operation: Callable[[Transaction], Awaitable[T]], seconds: float) -> T:
        async with self.pool().connection() as connection:
            return await operation(self._reading(connection, seconds))

    def _reading(self, connection: Connection, seconds: float = COMMAND_SECONDS) -> Transaction:
        return Transaction(self.database, connection, self.now(), seconds)

    async def fetch(self, statement: str, *values: Any) -> list[Any]:
        return await self._look(lambda tx: tx.fetch(statement, *values), COMMAND_SECONDS)

    async def fetchval(self, statement: str, *values: Any) -> Any:
        return await self._look(lambda tx: tx.fetchval(statement, *values), COMMAND_SECONDS)

    async def ring(self, connection: Connection, topic: Topic) -> None:
        """Send a wake-up by itself: all transactions that send one wait for each other's disk."""
        if not self.database.poll_only:
            await connection.execute(self.database.sql("SELECT penstock.ring($1)"), [topic.value])
        self.wakeups.changed([topic])

    async def place(self, tx: Sql, jobs: Sequence[Placed]) -> None:
        await place(own(tx), jobs, self.weights)

    def lane_rows(self, tx: Sql) -> PostgresLanes:
        return PostgresLanes(own(tx))

    async def enqueue(self, batch: NewJobs, conn: Any = None) -> list[Job]:
        items, first = distinct(batch)
        if not items:
            return []
        caller = None if conn is None else self._caller(conn)
        await self._configure({item.lane for item in items} - {NO_LANE, UNKNOWN_LANE})
        drafts: list[Job] | None = None
        if caller is not None:
            place = (self.database, self.pool(), caller, self._id)
            stored = await store_in(*place, batch, items, self.weights)
        elif len(items) >= MANY and not first:
            stored, drafts = await asyncio.gather(self._store(batch, items), drawn_up(batch, items))
        else:
            stored = await self._store(batch, items)
        old: dict[str, Job] = {}
        if stored.found is not None:
            ids = [found for found in stored.found if found is not None]
            # Some may be new in the caller's transaction, and can be seen only there.
            rows = None if caller is None else await caller.rows(ids)
            jobs = await self.look(lambda tx: self.by_id(tx, ids, rows))
            old = {job.id: job for job in jobs}
        self.wakeups.changed([Topic.READY] if batch.log is None else [Topic.READY, Topic.FINISHED])
        return jobs_of(batch, items, first, stored, old, drafts)

    def _caller(self, conn: Any) -> CallersTransaction:
        from penstock.adapters.postgres.caller import CallersTransaction

        return CallersTransaction(self.database, conn)

    async def _store(self, batch: NewJobs, items: list[NewJob]) -> Stored:
        """Store a batch; again, if others got in its way, or once if the connection broke. The
        ids are the same each time, so what was stored already is found and not stored twice."""
        for n in range(1, TRIES):
            try:
                return await self._store_once(batch, items)
            except QueueUnavailable as error:
                cause = error.__cause__
                if not isinstance(cause, PASSING) and (n > 1 or not cause or not lost(cause)):
                    raise
                logger.debug("trying to enqueue again: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
        return await self._store_once(batch, items)

    async def _store_once(self, batch: NewJobs, items: list[NewJob]) -> Stored:
        if batch.bursts:
            pool = self.pool()
            return await store_bursts(self.database, pool, self._id, batch, items, self.weights)
        more = batch.records is not None or batch.tick is not None
        if more or any(item.amount is not None for item in items):
            pool = self.pool()
            return await store_with_more(self.database, pool, batch, items, self.weights)
        async with self.pool().connection() as mine:
            return await store(self.database, mine, batch, items, self.weights)

    async def _configure(self, names: set[str]) -> None:
        """Make lanes known, in a transaction of its own: nobody has to wait for a longer one."""
        for statement, rows in configured(names, self.lane_config):
            async with self.pool().connection() as connection:
                await connection.execute(self.database.sql(statement), rows, self.now())

    async def configure(self, lanes: Sequence[str]) -> None:
        await self._configure(set(lanes))

    def callers_waiting(self) -> int:
        return self.pool().waiting

    async def feed(self, tenant: str, after: str | None, limit: int) -> list[FeedEntry]:
        return await self._feed.read(tenant, after, limit)

    async def feed_end(self, tenant: str) -> str:
        return await self._feed.end()

    async def forget_feed(self) -> None:
        """The entries of the feed are those of the logs, and go with them."""

    def new_member(self, joining: Joining) -> PostgresMember:
        """Nothing is handed over unasked: its inbox stays empty."""
        self.pool()
        return PostgresMember(self, joining)

    def listen(self, topic: Topic) -> Listener:
        self.pool()  # nobody would end what is begun after the end
        return self.wakeups.listen(topic)
