"""The job queue in one SQLite file."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from penstock import runtime
from penstock.adapters.sql.job_rows import change_of
from penstock.adapters.sqlite import cascade, feed, figures, lane_view, selection, stop
from penstock.adapters.sqlite.database import Transaction
from penstock.adapters.sqlite.enqueue import enqueue
from penstock.adapters.sqlite.file import SqliteFile
from penstock.adapters.sqlite.lanes import configure, free_lost_slots
from penstock.adapters.sqlite.member import RETENTION_LIMIT, SqliteMember
from penstock.adapters.sqlite.rows import read_jobs
from penstock.errors import ConfigError
from penstock.lanes.state import DAY
from penstock.model.change import Change
from penstock.model.job import Job
from penstock.model.lane import LaneConfig, LaneLimits
from penstock.ports.lanes import LaneCommand, LaneInfo
from penstock.ports.operators import DeadGroup, KindCounts, ProcessInfo
from penstock.ports.queue import CASCADE_SECONDS, FeedEntry, Inbox, JobFilter, NewJobs, Stopped

IDLE_LANE_SECONDS = 3600.0


class SqliteQueue(SqliteFile):
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
        self._retention_seconds = retention_seconds

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

    async def get(self, ids: Sequence[str]) -> dict[str, Job]:
        jobs = await self.find(JobFilter(ids=ids), limit=len(ids))
        return {job.id: job for job in jobs}

    async def finished(self, ids: Sequence[str]) -> list[str]:
        def read(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(
                "SELECT s.value FROM json_each(?) AS s LEFT JOIN jobs ON jobs.id = s.value"
                " WHERE jobs.state IS NULL OR jobs.state NOT IN ('queued', 'running')",
                (json.dumps(list(ids)),),
            )
            return [job_id for (job_id,) in rows]

        return await self.read(read)

    async def find(self, where: JobFilter, limit: int, before: str | None = None) -> list[Job]:
        text, values = selection.condition(where)
        if before is not None:
            text += " AND seq < (SELECT seq FROM jobs WHERE id = ?)"
            values.append(before)
        return await self.read(
            lambda connection: read_jobs(
                connection, f"WHERE {text} ORDER BY seq DESC LIMIT ?", [*values, limit]
            )
        )

    async def cancel(self, where: JobFilter) -> list[str]:
        cancelled = await self._in_chunks(selection.cancel, where)
        await self.cancel_children(CASCADE_SECONDS)
        return cancelled

    async def cancel_children(self, seconds: float = math.inf) -> None:
        """Cancel the children of cancelled jobs, for about so long."""
        until = runtime.monotonic() + seconds
        more = await self.read(cascade.pending)
        while more:
            more = await self.write(selection.cancel_children) and runtime.monotonic() < until

    async def redrive(self, where: JobFilter) -> list[str]:
        return await self._in_chunks(selection.redrive, where)

    async def discard(self, where: JobFilter) -> list[str]:
        return await self._in_chunks(selection.discard, where)

    async def _in_chunks(
        self, change: Callable[[Transaction, JobFilter], list[str]], where: JobFilter
    ) -> list[str]:
        changed: list[str] = []
        while True:
            some = await self.write(lambda tx: change(tx, where))
            changed += some
            if len(some) < selection.CHUNK:
                return changed

    async def counts(self, tenant: str | None = None) -> list[KindCounts]:
        return await self.read(lambda connection: figures.counts(connection, tenant))

    async def queued(self, tenant: str | None = None) -> int:
        return await self.read(lambda connection: figures.queued(connection, tenant))

    async def dead_groups(self, tenant: str | None = None) -> list[DeadGroup]:
        return await self.read(lambda connection: figures.dead_groups(connection, tenant))

    async def lanes(self) -> list[LaneInfo]:
        return await self.read(lane_view.infos)

    async def configure(self, lanes: Sequence[str]) -> None:
        await self.write(lambda tx: configure(tx, lanes, self.lane_config))

    async def steer(self, lane: str, steer: LaneCommand) -> bool:
        return await self.write(lambda tx: lane_view.steer(tx, lane, steer))

    async def limit(self, lane: str, limits: LaneLimits | None) -> bool:
        return await self.write(lambda tx: lane_view.limit(tx, lane, limits))

    def callers_waiting(self) -> int:
        return self.waiting

    async def work_left(self, kinds: Sequence[str] | None) -> bool:
        some = None if kinds is None else list(kinds)
        return await self.read(lambda connection: selection.work_left(connection, some))

    async def processes(self) -> list[ProcessInfo]:
        def read(connection: sqlite3.Connection) -> list[ProcessInfo]:
            rows = connection.execute(
                "SELECT id, host, pid, kinds, max_workers, joined_at, heartbeat_at, lease_until,"
                " status FROM processes ORDER BY joined_at"
            )
            return [_process(row) for row in rows]

        return await self.read(read)

    async def stop(self, tenant: str, log: str, *, running: bool, whole: bool = False) -> Stopped:
        stopped = await self.write(lambda tx: stop.stop(tx, tenant, log, running, whole))
        await self.cancel_children(CASCADE_SECONDS)
        return stopped

    async def reopen(self, tenant: str, log: str) -> None:
        await self.write(lambda tx: stop.reopen(tx, tenant, log))

    async def stopped(self, logs: Sequence[tuple[str, str]]) -> list[bool]:
        return await self.read(lambda connection: stop.stopped(connection, logs))

    async def note(self, tenant: str, log: str, what: str, data: Mapping[str, Any]) -> None:
        await self.write(lambda tx: stop.note(tx, tenant, log, what, data))

    async def changes(self, tenant: str, log: str, since: int, limit: int) -> list[Change]:
        def read(connection: sqlite3.Connection) -> list[Change]:
            rows = connection.execute(
                "SELECT log, version, at, what, job_id, data FROM changes"
                " WHERE tenant = ? AND log = ? AND version > ? ORDER BY version LIMIT ?",
                (tenant, log, since, limit),
            )
            return [change_of(row) for row in rows]

        return await self.read(read)

    async def versions(self, logs: Sequence[tuple[str, str]]) -> list[int]:
        def read(connection: sqlite3.Connection) -> list[int]:
            rows = connection.execute(
                "SELECT coalesce(logs.version, 0) FROM json_each(?) AS s LEFT JOIN logs"
                " ON logs.tenant = s.value ->> 0 AND logs.log = s.value ->> 1 ORDER BY s.key",
                (json.dumps(list(logs)),),
            )
            return [version for (version,) in rows]

        return await self.read(read)

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

    async def retain(self) -> None:
        """Delete completed and cancelled jobs that are past the retention, and what is spent."""
        for forget in (partial(_forget, retention_seconds=self._retention_seconds), feed.forget):
            while await self.write(forget):
                pass


def _forget(tx: Transaction, retention_seconds: float) -> bool:
    """Delete a chunk; whether there may be more."""
    rows = tx.execute(
        "DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs"
        " WHERE state IN ('completed', 'cancelled') AND finished_at < ? AND holder IS NULL"
        " ORDER BY finished_at LIMIT ?) RETURNING tenant, log",
        (tx.now - retention_seconds, RETENTION_LIMIT),
    ).fetchall()
    for tenant, log in {row for row in rows if row[1] is not None}:
        for table in ("changes", "logs"):
            tx.execute(
                f"DELETE FROM {table} WHERE tenant = :tenant AND log = :log AND NOT EXISTS"
                " (SELECT 1 FROM jobs WHERE tenant = :tenant AND log = :log)",
                {"tenant": tenant, "log": log},
            )
    free_lost_slots(tx)
    # A lane nobody uses, in no trouble and as configured, is made again when somebody does.
    tx.execute(
        "DELETE FROM lanes WHERE touched_at < :idle AND step = 0 AND suspect_at < :idle"
        " AND limits IS NULL"
        " AND slowdown = 1 AND blocked_until < :now AND (per_day IS NULL OR day < :yesterday)"
        " AND NOT EXISTS (SELECT 1 FROM lines WHERE lines.lane = lanes.name)"
        " AND NOT EXISTS (SELECT 1 FROM slots WHERE slots.lane = lanes.name)"
        " AND NOT EXISTS (SELECT 1 FROM lanes AS child WHERE child.parent = lanes.name)",
        # A provider's day may begin when UTC's is nearly over: hence yesterday.
        {"idle": tx.now - IDLE_LANE_SECONDS, "now": tx.now, "yesterday": int(tx.now // DAY) - 1},
    )
    # A tenant that has had all its turns starts where everybody stands: its row says nothing.
    tx.execute(
        "DELETE FROM turns WHERE last <= (SELECT turn FROM served"
        " WHERE served.lane = turns.lane AND served.band = turns.band)"
    )
    return len(rows) == RETENTION_LIMIT


def _process(row: Sequence[Any]) -> ProcessInfo:
    member, host, pid, kinds, max_workers, joined_at, heartbeat_at, lease_until, status = row
    return ProcessInfo(
        id=member,
        host=host,
        pid=pid,
        kinds=json.loads(kinds),
        max_workers=max_workers,
        joined_at=joined_at,
        heartbeat_at=heartbeat_at,
        lease_until=lease_until,
        status=json.loads(status),
    )
