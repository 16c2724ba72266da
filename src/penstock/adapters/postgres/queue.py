"""The job queue in a PostgreSQL database."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from penstock.adapters.life_file import runtime_folder
from penstock.adapters.listener import Listener
from penstock.adapters.postgres import cascade, figures, lanes, schema, selection, stop
from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import (
    COMMAND_SECONDS,
    LONG_SECONDS,
    TRIES,
    Connection,
    Database,
    Pool,
    Transaction,
)
from penstock.adapters.postgres.enqueue import (
    MANY,
    Stored,
    distinct,
    drawn_up,
    jobs_of,
    store,
    store_in,
)
from penstock.adapters.postgres.errors import PASSING
from penstock.adapters.postgres.errors import connection_lost as lost
from penstock.adapters.postgres.feed import FeedReader
from penstock.adapters.postgres.member import PostgresMember
from penstock.adapters.postgres.rows import read_jobs
from penstock.adapters.postgres.wakeups import Wakeups
from penstock.adapters.sql.job_rows import change_of
from penstock.errors import QueueError, QueueUnavailable
from penstock.lanes import view
from penstock.model.change import Change
from penstock.model.job import Job
from penstock.model.lane import LaneConfig, LaneLimits
from penstock.ports.lanes import LaneCommand, LaneInfo
from penstock.ports.operators import DeadGroup, KindCounts, ProcessInfo
from penstock.ports.queue import (
    CASCADE_SECONDS,
    NO_LANE,
    UNKNOWN_LANE,
    FeedEntry,
    Inbox,
    JobFilter,
    NewJob,
    NewJobs,
    Stopped,
    Topic,
)

logger = logging.getLogger("penstock.postgres")
T = TypeVar("T")
POOL_SIZE = 4
RETRY_SECONDS = 0.05


class PostgresQueue:
    """See `penstock.ports.queue.JobQueue`. Any number of processes on any number of machines.

    `poll_only`: use nothing that belongs to a session (LISTEN, prepared statements), for
    poolers that give each transaction to another.
    """

    def __init__(
        self,
        url: str,
        *,
        ageing_seconds: float = 300.0,
        retention_seconds: float = 7 * 86400.0,
        weights: Mapping[str, float] | None = None,
        lane_config: Callable[[str], LaneConfig] = lambda name: LaneConfig(),
        poll_only: bool = False,
    ) -> None:
        self.database = Database(parse(url), poll_only=poll_only)
        self.url = self.database.address.shown
        self.ageing_seconds = ageing_seconds
        self.retention_seconds = retention_seconds
        self.weights = dict(weights or {})
        self.lane_config = lane_config
        self.wakeups = Wakeups(self.database)
        self._feed = FeedReader(self)
        self.folder = Path()
        self._pool: Pool | None = None

    async def open(self) -> None:
        queue_id = await schema.prepare(self.database)
        try:
            self.folder = runtime_folder(queue_id)
        except OSError as error:
            raise QueueUnavailable(f"cannot use {error.filename}: {error.strerror}") from error
        self._pool = Pool(self.database, "app", POOL_SIZE)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            self._feed.close()
            await self.wakeups.close()
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

    async def write(self, operation: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `operation` in a transaction; it may be run several times."""
        topics: set[Topic] = set()

        async def noted(tx: Transaction) -> T:
            outcome = await operation(tx)
            topics.update(tx.topics)
            return outcome

        outcome = await self.pool().write(noted)
        self.wakeups.changed(topics)
        return outcome

    async def read(self, operation: Callable[[Connection], Awaitable[T]]) -> T:
        async with self.pool().connection() as connection:
            return await operation(connection)

    async def fetch(self, statement: str, *values: Any) -> list[Any]:
        async with self.pool().connection() as connection:
            rows: list[Any] = await connection.fetch(self.database.sql(statement), *values)
            return rows

    async def fetchval(self, statement: str, *values: Any) -> Any:
        async with self.pool().connection() as connection:
            return await connection.fetchval(self.database.sql(statement), *values)

    async def enqueue(self, batch: NewJobs, conn: Connection | None = None) -> list[Job]:
        items, first = distinct(batch)
        if not items:
            return []
        await self._configure({item.lane for item in items} - {NO_LANE, UNKNOWN_LANE})
        drafts: list[Job] | None = None
        if conn is None and len(items) >= MANY and not first:
            stored, drafts = await asyncio.gather(self._store(batch, items), drawn_up(batch, items))
        elif conn is None:
            stored = await self._store(batch, items)
        else:
            pool = self.pool()
            stored = await store_in(self.database, pool, conn, batch, items, self.weights)
        old: dict[str, Job] = {}
        if stored.found is not None:
            ids = [found for found in stored.found if found is not None]
            read = self._by_id(conn, ids) if conn else self.read(lambda own: self._by_id(own, ids))
            old = {job.id: job for job in await read}
        self.wakeups.changed([Topic.READY] if batch.log is None else [Topic.READY, Topic.FINISHED])
        return jobs_of(batch, items, first, stored, old, drafts)

    async def _store(self, batch: NewJobs, items: list[NewJob]) -> Stored:
        """Store a batch; again, if others got in its way, or once if the connection broke. The
        ids are the same each time, so what was stored already is found and not stored twice."""
        for n in range(1, TRIES):
            try:
                async with self.pool().connection() as own:
                    return await store(self.database, own, batch, items, self.weights)
            except QueueUnavailable as error:
                cause = error.__cause__
                if not isinstance(cause, PASSING) and (n > 1 or not cause or not lost(cause)):
                    raise
                logger.debug("trying to enqueue again: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
        async with self.pool().connection() as own:
            return await store(self.database, own, batch, items, self.weights)

    async def _configure(self, names: set[str]) -> None:
        """Make lanes known, in a transaction of its own: nobody has to wait for a longer one."""
        for statement, rows in lanes.configured(names, self.lane_config):
            async with self.pool().connection() as connection:
                await connection.execute(self.database.sql(statement), rows, self.now())

    async def _by_id(self, connection: Connection, ids: Sequence[str]) -> list[Job]:
        return await read_jobs(
            self.database, connection, "WHERE id = ANY ($1)", ids, timeout=COMMAND_SECONDS
        )

    async def get(self, ids: Sequence[str]) -> dict[str, Job]:
        jobs = await self.read(lambda connection: self._by_id(connection, list(ids)))
        return {job.id: job for job in jobs}

    async def finished(self, ids: Sequence[str]) -> list[str]:
        rows = await self.fetch("finished", list(ids))
        return [job_id for (job_id,) in rows]

    async def find(self, where: JobFilter, limit: int, before: str | None = None) -> list[Job]:
        text, values = selection.condition(where)
        if before is not None:
            values.append(before)
            text += f" AND seq < (SELECT seq FROM penstock.jobs WHERE id = ${len(values)})"
        values.append(limit)
        text = f"WHERE {text} ORDER BY seq DESC LIMIT ${len(values)}"
        return await self.read(
            lambda connection: read_jobs(
                self.database, connection, text, *values, timeout=LONG_SECONDS
            )
        )

    async def cancel(self, where: JobFilter) -> list[str]:
        cancelled = await self._in_chunks(selection.cancel, where)
        await self.cancel_children(CASCADE_SECONDS)
        return cancelled

    async def cancel_children(self, seconds: float = math.inf) -> None:
        """Cancel the children of cancelled jobs, for about so long."""
        until = time.monotonic() + seconds
        more = await self.fetchval(cascade.PENDING)
        while more:
            more = await self.write(selection.cancel_children) and time.monotonic() < until

    async def redrive(self, where: JobFilter) -> list[str]:
        return await self._in_chunks(selection.redrive, where)

    async def discard(self, where: JobFilter) -> list[str]:
        return await self._in_chunks(selection.discard, where)

    async def _in_chunks(self, change: selection.Change, where: JobFilter) -> list[str]:
        changed: list[str] = []
        while True:
            some = await self.write(lambda tx: change(tx, where))
            changed += some
            if len(some) < selection.CHUNK:
                return changed

    async def counts(self, tenant: str | None = None) -> list[KindCounts]:
        return await self.read(lambda connection: figures.counts(self.database, connection, tenant))

    async def queued(self, tenant: str | None = None) -> int:
        return await self.read(lambda connection: figures.queued(self.database, connection, tenant))

    async def dead_groups(self, tenant: str | None = None) -> list[DeadGroup]:
        return await self.read(
            lambda connection: figures.dead_groups(self.database, connection, tenant)
        )

    async def lanes(self) -> list[LaneInfo]:
        states = await self.read(lambda connection: lanes.look_at(self.database, connection))
        waiting = dict(
            await self.fetch(
                "SELECT lane, count(*) FROM penstock.jobs"
                " WHERE ready > 0 AND lane NOT IN ('', '?') GROUP BY lane"
            )
        )
        return view.infos(list(states.values()), waiting, self.now())

    async def configure(self, lanes: Sequence[str]) -> None:
        await self._configure(set(lanes))

    async def steer(self, lane: str, steer: LaneCommand) -> bool:
        async def change(tx: Transaction) -> bool:
            state = (await lanes.lock(tx, [lane])).get(lane)
            if state is None:
                return False
            view.steer(state, steer)
            await lanes.save(tx, [state])
            await lanes.wake_lane(tx, lane)
            return True

        return await self.write(change)

    async def limit(self, lane: str, limits: LaneLimits | None) -> bool:
        return await self.write(lambda tx: lanes.limit(tx, lane, limits))

    def callers_waiting(self) -> int:
        return self.pool().waiting

    async def work_left(self, kinds: Sequence[str] | None) -> bool:
        left: bool = await self.fetchval("work_left", None if kinds is None else list(kinds))
        return left

    async def processes(self) -> list[ProcessInfo]:
        rows = await self.fetch(
            "SELECT id, host, pid, kinds, max_workers, joined_at, heartbeat_at, lease_until, status"
            " FROM penstock.processes ORDER BY joined_at"
        )
        return [ProcessInfo(**{**row, "status": json.loads(row["status"])}) for row in rows]

    async def life_names(self) -> set[str]:
        """The life files of all members."""
        return {life for (life,) in await self.fetch("SELECT life FROM penstock.processes")}

    async def stop(self, tenant: str, log: str, *, running: bool, whole: bool = False) -> Stopped:
        stopped = await self.write(lambda tx: stop.stop(tx, tenant, log, running, whole))
        await self.cancel_children(CASCADE_SECONDS)
        return stopped

    async def reopen(self, tenant: str, log: str) -> None:
        await self.write(lambda tx: stop.reopen(tx, tenant, log))

    async def stopped(self, logs: Sequence[tuple[str, str]]) -> list[bool]:
        rows = await self.fetch("stopped", [log[0] for log in logs], [log[1] for log in logs])
        return [is_stopped for (is_stopped,) in rows]

    async def note(self, tenant: str, log: str, what: str, data: Mapping[str, Any]) -> None:
        await self.write(lambda tx: stop.note(tx, tenant, log, what, data))

    async def changes(self, tenant: str, log: str, since: int, limit: int) -> list[Change]:
        rows = await self.fetch(
            "SELECT log, version, at, what, job_id, data FROM penstock.changes"
            " WHERE tenant = $1 AND log = $2 AND version > $3 ORDER BY version LIMIT $4",
            tenant,
            log,
            since,
            limit,
        )
        return [change_of(row) for row in rows]

    async def versions(self, logs: Sequence[tuple[str, str]]) -> list[int]:
        rows = await self.fetch("versions", [log[0] for log in logs], [log[1] for log in logs])
        return [version for (version,) in rows]

    async def feed(self, tenant: str, after: str | None, limit: int) -> list[FeedEntry]:
        return await self._feed.read(tenant, after, limit)

    async def feed_end(self, tenant: str) -> str:
        return await self._feed.end()

    async def join(
        self,
        kinds: Sequence[str],
        max_workers: int,
        lease_seconds: float,
        inbox: Inbox | None = None,
    ) -> PostgresMember:
        """Nothing is handed over unasked: `inbox` stays empty."""
        self.pool()
        member = PostgresMember(self, kinds, max_workers, lease_seconds)
        await member.join()
        return member

    def listen(self, topic: Topic) -> Listener:
        return self.wakeups.listen(topic)
