"""The parts of a job queue that both databases share: what operators see and do."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from penstock import runtime
from penstock.adapters.lease_watch import MemberLook
from penstock.adapters.queue import BaseQueue
from penstock.adapters.sql import lanes, selection, stop, takeover
from penstock.adapters.sql.chores import Placed
from penstock.adapters.sql.dialect import Row, Sql
from penstock.adapters.sql.job_rows import change_of, jobs_in, kind_counts, read_jobs
from penstock.adapters.sql.lanes import LaneRows
from penstock.model.change import Change
from penstock.model.job import Job
from penstock.model.lane import LaneLimits
from penstock.ports.lanes import LaneCommand, LaneInfo
from penstock.ports.operators import MAX_GROUPS, DeadGroup, KindCounts, ProcessInfo
from penstock.ports.queue import CASCADE_SECONDS, NO_LANE, UNKNOWN_LANE, JobFilter, Stopped
from penstock.ports.steps import SECRET_BYTES, Recorded, StepRow

if TYPE_CHECKING:
    from penstock.adapters.sql.schedules import SqlSchedules
    from penstock.model.budget import BudgetConfig, BudgetState
    from penstock.ports.backlog import Backlog
    from penstock.ports.ledger import Charge, Charged, UsageQuery, UsageSum

T = TypeVar("T")


class SqlQueue(BaseQueue):
    """The common part of `penstock.ports.queue.JobQueue`."""

    folder: Path
    """Where the processes of this machine keep their life files."""

    @abstractmethod
    async def look(self, operation: Callable[[Sql], Awaitable[T]], *, long: bool = False) -> T:
        """Run what only reads. `long`: it may read the whole table."""

    @abstractmethod
    async def change(self, operation: Callable[[Sql], Awaitable[T]], *, soft: bool = False) -> T:
        """Run it in a transaction, perhaps more than once. A `soft` one may be forgotten by a crash
        of the machine."""

    @abstractmethod
    def lane_rows(self, tx: Sql) -> LaneRows:
        """The lanes, as a transaction or snapshot sees them."""

    @abstractmethod
    async def place(self, tx: Sql, jobs: Sequence[Placed]) -> None:
        """Put jobs at the end of their lines."""

    @abstractmethod
    def now(self) -> float: ...

    @abstractmethod
    async def forget_feed(self) -> None:
        """Delete entries of the feed that are past their time."""

    async def take_over(self, dead: Sequence[MemberLook], lapsed: Sequence[MemberLook]) -> None:
        """End memberships whose process is dead, and those that have lapsed unless they were
        renewed since; each in a transaction of its own."""
        for end, members in ((takeover.dead, dead), (takeover.lapsed, lapsed)):
            for member in members:
                await self.change(partial(end, self, member))

    async def rows(self, statement: str, /, **values: Any) -> list[Row]:
        """The rows of one statement that only reads."""
        return await self.look(lambda tx: tx.fetch(statement, **values))

    async def get(self, ids: Sequence[str]) -> dict[str, Job]:
        jobs = await self.look(lambda tx: self.by_id(tx, ids))
        return {job.id: job for job in jobs}

    async def by_id(
        self, tx: Sql, ids: Sequence[str], rows: Sequence[Row] | None = None
    ) -> list[Job]:
        """These jobs. Their rows may have been read where a transaction cannot see them."""
        if rows is not None:
            return await jobs_in(self.lane_rows(tx), rows)
        return await read_jobs(self.lane_rows(tx), "WHERE id = ANY (:ids)", ids=list(ids))

    async def find(self, where: JobFilter, limit: int, before: str | None = None) -> list[Job]:
        text, values = selection.condition(where)
        if before is not None:
            text += " AND seq < (SELECT seq FROM penstock.jobs WHERE id = :before)"
        text, values = f"WHERE {text} ORDER BY seq DESC LIMIT :limit", {**values, "limit": limit}
        return await self.look(
            lambda tx: read_jobs(self.lane_rows(tx), text, **values, before=before), long=True
        )

    async def finished(self, ids: Sequence[str]) -> list[str]:
        return [job_id for (job_id,) in await self.rows("finished_jobs", ids=list(ids))]

    async def cancel(self, where: JobFilter) -> list[str]:
        cancelled = await self._in_chunks(selection.cancel, where)
        await self.cancel_children(CASCADE_SECONDS)
        return cancelled

    async def cancel_children(self, seconds: float = math.inf) -> None:
        """Cancel the children of cancelled jobs, for about so long."""
        until = runtime.monotonic() + seconds
        more = bool(await self.rows("any_cascade"))
        while more:
            more = await self.change(selection.cancel_children) and runtime.monotonic() < until

    async def redrive(self, where: JobFilter, *, from_scratch: bool = False) -> list[str]:
        return await self._in_chunks(partial(selection.redrive, from_scratch=from_scratch), where)

    async def signal(self, job_id: str, name: str, payload: str, key: str | None) -> bool:
        from penstock.adapters.sql import signals  # most jobs wait for none

        return await self.change(lambda tx: signals.signal(tx, job_id, name, payload, key))

    async def secret(self, name: str) -> bytes:
        async def read(tx: Sql) -> Any:
            return await tx.one("secret", name=name)

        async def make(tx: Sql) -> Any:
            await tx.execute("make_secret", name=name, value=runtime.random_bytes(SECRET_BYTES))
            return await read(tx)

        found = await self.look(read) or await self.change(make)
        return bytes(found["value"])

    async def steps(self, job_id: str) -> list[StepRow]:
        rows = await self.look(lambda tx: tx.fetch("steps_of", id=job_id), long=True)
        return [StepRow(*row) for row in rows]

    async def recorded(self, job_id: str, after: int, limit: int) -> list[Recorded]:
        rows = await self.rows("recorded_after", id=job_id, after=after, limit=limit)
        return [Recorded(position, StepRow(*row)) for position, *row in rows]

    async def last_recorded(self, ids: Sequence[str]) -> dict[str, int]:
        rows = await self.rows("last_recorded", ids=list(ids))
        return {job_id: int(last) for job_id, last in rows}

    async def discard(self, where: JobFilter) -> list[str]:
        return await self._in_chunks(selection.discard, where)

    async def _in_chunks(
        self, change: Callable[[Sql, JobFilter], Awaitable[list[str]]], where: JobFilter
    ) -> list[str]:
        changed: list[str] = []
        while True:
            some = await self.change(lambda tx: change(tx, where))
            changed += some
            if len(some) < selection.CHUNK:
                return changed

    async def counts(self, tenant: str | None = None) -> list[KindCounts]:
        rows = await self.look(lambda tx: tx.fetch("count_jobs", tenant=tenant), long=True)
        return kind_counts(rows)

    async def queued(self, tenant: str | None = None) -> int:
        (count,) = await self.look(lambda tx: tx.one("count_queued", tenant=tenant), long=True)
        return int(count)

    async def dead_groups(self, tenant: str | None = None) -> list[DeadGroup]:
        rows = await self.look(
            lambda tx: tx.fetch("dead_groups", tenant=tenant, most=MAX_GROUPS), long=True
        )
        return [
            DeadGroup(kind, error_type, count, first_at, last_at, _message(error), newest_id)
            for kind, error_type, count, first_at, last_at, error, newest_id in rows
        ]

    async def work_left(self, kinds: Sequence[str] | None) -> bool:
        if kinds is None:
            ((left,),) = await self.rows("any_work")
        else:
            named = {"none": NO_LANE, "unknown": UNKNOWN_LANE}
            ((left,),) = await self.rows("any_work_of", kinds=list(kinds), **named)
        return bool(left)

    async def charge(self, charges: Sequence[Charge], *, soft: bool = False) -> Charged:
        from penstock.adapters.sql import ledger  # most jobs use nothing that is counted

        charged, opened = await self.change(lambda tx: ledger.charge(tx, charges), soft=soft)
        if opened:
            await self.change(opened)
        return charged

    async def budgets(self) -> list[BudgetState]:
        from penstock.adapters.sql import budgets  # few queues have any

        return await self.look(budgets.read)

    async def set_budget(
        self, payer: str, config: BudgetConfig | None, configured: str | None = None
    ) -> bool:
        from penstock.adapters.sql import budgets

        return await budgets.set_budget(self.change, payer, config, configured)

    async def usage(self, query: UsageQuery) -> list[UsageSum]:
        from penstock.adapters.sql import ledger

        return await self.look(lambda tx: ledger.usage(tx, query), long=True)

    @property
    def schedules(self) -> SqlSchedules:
        from penstock.adapters.sql.schedules import SqlSchedules  # most queues have none

        return SqlSchedules(self)

    async def next_schedule(self, now: float) -> float | None:
        ((at,),) = await self.rows("next_schedule", now=now)
        return None if at is None else float(at)

    async def lanes(self) -> list[LaneInfo]:
        return await self.look(lambda tx: lanes.infos(self.lane_rows(tx)))

    async def backlog(self) -> Backlog:
        from penstock.adapters.sql import backlog  # for forecasts alone

        return await self.look(lambda tx: backlog.read(self.lane_rows(tx)), long=True)

    async def control(self, lane: str, control: LaneCommand) -> bool:
        return await self.change(lambda tx: lanes.control(self.lane_rows(tx), lane, control))

    async def limit(self, lane: str, limits: LaneLimits | None) -> bool:
        return await self.change(lambda tx: lanes.limit(self.lane_rows(tx), lane, limits))

    async def processes(self) -> list[ProcessInfo]:
        return [ProcessInfo(**{**row, **_decoded(row)}) for row in await self.rows("processes")]

    async def life_names(self) -> set[str]:
        """The life files of all members."""
        return {life for (life,) in await self.rows("life_names")}

    async def stop(self, tenant: str, log: str, *, running: bool, whole: bool = False) -> Stopped:
        stopped = await self.change(lambda tx: stop.stop(tx, tenant, log, running, whole))
        await self.cancel_children(CASCADE_SECONDS)
        return stopped

    async def reopen(self, tenant: str, log: str) -> None:
        await self.change(lambda tx: stop.reopen(tx, tenant, log))

    async def stopped(self, logs: Sequence[tuple[str, str]]) -> list[bool]:
        return [bool(is_stopped) for (is_stopped,) in await self._of_logs("are_stopped", logs)]

    async def note(self, tenant: str, log: str, what: str, data: Mapping[str, Any]) -> None:
        await self.change(lambda tx: stop.note(tx, tenant, log, what, data))

    async def changes(self, tenant: str, log: str, since: int, limit: int) -> list[Change]:
        rows = await self.rows("read_changes", tenant=tenant, log=log, since=since, limit=limit)
        return [change_of(row) for row in rows]

    async def versions(self, logs: Sequence[tuple[str, str]]) -> list[int]:
        return [version for (version,) in await self._of_logs("log_versions", logs)]

    async def _of_logs(self, statement: str, logs: Sequence[tuple[str, str]]) -> list[Row]:
        tenants, names = [tenant for tenant, _ in logs], [name for _, name in logs]
        return await self.rows(statement, pairs=list(logs), tenants=tenants, logs=names)


def _decoded(row: Row) -> dict[str, Any]:
    """What SQLite keeps as JSON: lists, and what both keep so: the status."""
    kinds = row["kinds"]
    return {
        "kinds": json.loads(kinds) if isinstance(kinds, str) else kinds,
        "status": json.loads(row["status"]),
    }


def _message(error: str | None) -> str:
    """What an error says, whatever became of its row."""
    try:
        return str(json.loads(error or "{}").get("message", ""))
    except (ValueError, AttributeError):
        return ""
