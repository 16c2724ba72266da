"""Research tasks in a PostgreSQL database.

Locks are taken in one order: the task, then its searches. A job that brings something locks only
its search, and shares it with the others of that search; who gives the search another run waits
for them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from penstock.adapters.postgres.database import (
    LONG_SECONDS,
    Connection,
    Database,
    Pool,
    Transaction,
)
from penstock.adapters.sql.task_rows import (
    ANSWER_COLUMNS,
    PAGE_COLUMNS,
    SEARCH_COLUMNS,
    TASK_COLUMNS,
    Row,
    answer_values,
    answers_of,
    by_task,
    clock_started,
    clock_stopped,
    hash_of,
    kept,
    page_of,
    plan_pages,
    plan_searches,
    record_of,
    search_of,
    search_values,
    task_of,
    task_values,
)
from penstock.adapters.unreachable import reaching_store
from penstock.model.research import (
    PageState,
    ProviderReply,
    ResearchTask,
    Search,
    SearchRef,
    SearchState,
    TaskRecord,
)
from penstock.ports.research import Added, Granted, NewPage, NewSearch, Started

T = TypeVar("T")

_TASK = f"SELECT {TASK_COLUMNS} FROM penstock.research_tasks WHERE (tenant, id) = ($1, $2)"
_SEARCHES = f"SELECT {SEARCH_COLUMNS} FROM penstock.research_searches"
_ANSWERS = f"SELECT {ANSWER_COLUMNS} FROM penstock.research_answers"
_PAGES = f"SELECT {PAGE_COLUMNS} FROM penstock.research_pages"
_OF_TASK = "WHERE (tenant, task) = ($1, $2)"
_OF_SEARCH = "WHERE (tenant, task, search) = ($1, $2, $3)"
_RUN = "WHERE (tenant, task, id, run) = ($1, $2, $3, $4)"


class PostgresTasks:
    """See `penstock.ports.research.TaskStore`. `pool` is that of the store it is in."""

    def __init__(self, database: Database, pool: Callable[[], Pool]) -> None:
        self._database = database
        self._pool = pool

    async def _write(
        self, operation: Callable[[Transaction], Awaitable[T]], *, soft: bool = False
    ) -> T:
        with reaching_store():
            return await self._pool().write(operation, soft=soft)

    async def _fetch(self, statement: str, *values: Any) -> list[Row]:
        with reaching_store():
            async with self._pool().connection() as connection:
                rows: list[Row] = await connection.fetch(self._database.sql(statement), *values)
                return rows

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[Connection]:
        with reaching_store():
            async with (
                self._pool().connection() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                yield connection

    async def create(self, task: ResearchTask) -> ResearchTask:
        values = task_values(task)

        async def create(tx: Transaction) -> ResearchTask:
            await tx.execute(
                f"INSERT INTO penstock.research_tasks ({TASK_COLUMNS})"
                " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
                *values.values(),
            )
            return task_of(await tx.fetchrow(_TASK, values["tenant"], values["id"]))

        return await self._write(create)

    async def get(self, tenant: str, task: str) -> ResearchTask | None:
        rows = await self._fetch(_TASK, *kept((tenant, task)))
        return task_of(rows[0]) if rows else None

    async def tasks(
        self, tenant: str, limit: int, before: str | None = None
    ) -> list[tuple[ResearchTask, list[Search]]]:
        older = ""
        values: list[Any] = [tenant, limit]
        async with self._snapshot() as connection:
            if before is not None:
                # Not in the statement itself: the index is searched for values only.
                there = await connection.fetchrow(
                    self._database.sql(_TASK), *kept((tenant, before))
                )
                if there is None:
                    return []
                older = "AND (created_at, id) < ($3, $4)"
                values += [there["created_at"], before]
            tasks = await connection.fetch(
                self._database.sql(
                    f"SELECT {TASK_COLUMNS} FROM penstock.research_tasks WHERE tenant = $1 {older}"
                    " ORDER BY created_at DESC, id DESC LIMIT $2"
                ),
                *kept(values),
            )
            searches = await connection.fetch(
                self._database.sql(
                    f"{_SEARCHES} WHERE tenant = $1 AND task = ANY ($2) ORDER BY task, number"
                ),
                kept(tenant),
                [row["id"] for row in tasks],
            )
        return by_task(tasks, searches)

    async def add_searches(
        self, tenant: str, task: str, new: Sequence[NewSearch], most: int, now: float
    ) -> Added | None:
        where = kept((tenant, task))

        async def add(tx: Transaction) -> Added | None:
            there = await _lock(tx, where)
            if there is None:
                return None
            rows = await tx.fetch(
                f"SELECT {SEARCH_COLUMNS}, hash FROM penstock.research_searches {_OF_TASK}", *where
            )
            plan = plan_searches(there, rows, new, most, now)
            if plan.fresh:
                fresh = [search_values(*one) for one in plan.fresh.items()]
                columns = [[one[name] for one in fresh] for name in fresh[0]]
                await tx.execute("add_searches", *where, *columns[2:])
            if plan.fresh and not rows:
                await _save(tx, clock_started(there, now))
            return plan.added

        return await self._write(add)

    async def record(self, tenant: str, task: str) -> TaskRecord | None:
        where = kept((tenant, task))
        async with self._snapshot() as connection:
            row = await connection.fetchrow(self._database.sql(_TASK), *where)
            if row is None:
                return None
            searches, answers, pages = [
                await connection.fetch(
                    self._database.sql(f"{select} {_OF_TASK} ORDER BY number"),
                    *where,
                    timeout=LONG_SECONDS,
                )
                for select in (_SEARCHES, _ANSWERS, _PAGES)
            ]
        return await record_of(task_of(row), searches, answers, pages)

    async def start(self, ref: SearchRef, run: int, now: float) -> Started | None:
        where = kept(ref)

        async def start(tx: Transaction) -> tuple[ResearchTask, Row, list[Row], list[Row]] | None:
            await tx.execute(
                "UPDATE penstock.research_searches SET state = 'running',"
                f" started_at = coalesce(started_at, $5) {_RUN} AND state = 'queued'",
                *(*where, run, now),
            )
            row = await tx.fetchrow(f"{_SEARCHES} {_RUN} AND state = 'running'", *where, run)
            if row is None:
                return None
            there = task_of(await tx.fetchrow(_TASK, *where[:2]))
            answers = await tx.fetch(f"{_ANSWERS} {_OF_SEARCH} ORDER BY number", *where)
            pages = await tx.fetch(f"{_PAGES} {_OF_SEARCH} ORDER BY number", *where)
            return there, row, answers, pages

        # A crash of the server may take it: then the job is run again, and starts it again.
        started = await self._write(start, soft=True)
        if started is None:
            return None
        there, row, answers, pages = started
        found = await answers_of(answers)
        return Started(there, search_of(row), found, [page_of(page) for page in pages])

    async def answer(self, ref: SearchRef, run: int, answer: ProviderReply) -> bool:
        values = (*kept(ref), run, *answer_values(answer).values())

        async def keep(tx: Transaction) -> bool:
            return await tx.execute("answer_search", *values) == 1

        return await self._write(keep)

    async def grant(
        self, ref: SearchRef, run: int, pages: Sequence[NewPage], now: float
    ) -> Granted | None:
        where = kept(ref)

        async def grant(tx: Transaction) -> Granted | None:
            there = await _lock(tx, where[:2])
            going_on = await tx.fetchrow(
                f"SELECT FROM penstock.research_searches {_RUN}"
                " AND state IN ('queued', 'running') FOR SHARE",
                *(*where, run),
            )
            if there is None or going_on is None:
                return None
            rows = await tx.fetch(
                f"SELECT {PAGE_COLUMNS}, run FROM penstock.research_pages {_OF_TASK}"
                " AND hash = ANY ($3)",
                *(*where[:2], [hash_of(page.key) for page in pages]),
            )
            plan = plan_pages(ref, run, there, rows, pages, now)
            if plan.fresh:
                fresh = [(hash_of(one.key), one.key, one.url) for one in plan.fresh]
                columns = zip(*fresh, strict=True)
                await tx.execute("grant_pages", *where, run, there.pages, now, *columns)
                await _save(tx, replace(there, pages=there.pages + len(plan.fresh)))
            if plan.again:
                await tx.execute(
                    "UPDATE penstock.research_pages SET state = 'waiting', reason = NULL,"
                    f" run = $3, at = $4 {_OF_TASK} AND hash = ANY ($5)",
                    *(*where[:2], run, now, [hash_of(page.key) for page in plan.again]),
                )
            return plan.granted

        return await self._write(grant)

    async def page(
        self,
        ref: SearchRef,
        run: int,
        key: str,
        state: PageState,
        now: float,
        *,
        collection: str | None = None,
        document: str | None = None,
        title: str = "",
        reason: str | None = None,
    ) -> bool:
        known = kept((collection, document, title, reason))

        async def note(tx: Transaction) -> bool:
            values = (*kept(ref), run, hash_of(key), state.value, now, *known)
            return await tx.execute("mark_page", *values) == 1

        return await self._write(note)

    async def finish(
        self, ref: SearchRef, run: int, state: SearchState, reason: str | None, now: float
    ) -> bool:
        where = (*kept(ref), run, state.value)

        async def finish(tx: Transaction) -> bool:
            await tx.execute("finish_search", *where, kept(reason), now)
            ended = f"SELECT FROM penstock.research_searches {_RUN} AND state = $5"
            return await tx.fetchrow(ended, *where) is not None

        return await self._write(finish)

    async def restart(self, ref: SearchRef, run: int) -> Search | None:
        async def restart(tx: Transaction) -> Search | None:
            row = await tx.fetchrow("restart_search", *kept(ref), run)
            return None if row is None else search_of(row)

        return await self._write(restart)

    async def stop(self, tenant: str, task: str, now: float, *, refuse: bool) -> bool:
        where = kept((tenant, task))

        async def stop(tx: Transaction) -> bool:
            there = await _lock(tx, where)
            if there is None:
                return False
            await _save(tx, clock_stopped(there, now))
            if refuse:
                await tx.execute("refuse_searches", *where)
            return True

        return await self._write(stop)

    async def resume(self, tenant: str, task: str, now: float) -> bool:
        where = kept((tenant, task))

        async def resume(tx: Transaction) -> bool:
            there = await _lock(tx, where)
            if there is None:
                return False
            begun = f"SELECT FROM penstock.research_searches {_OF_TASK} LIMIT 1"
            if await tx.fetchrow(begun, *where) is not None:
                await _save(tx, clock_started(there, now))
            return True

        return await self._write(resume)

    async def unfinished(
        self, before: float, limit: int, after: SearchRef | None = None
    ) -> list[Search]:
        where = kept(after or ("", "", ""))
        rows = await self._fetch("unfinished_searches", *where, before, limit)
        return [search_of(row) for row in rows]

    async def seconds_taken(self, tenant: str, last: int) -> float | None:
        ((seconds,),) = await self._fetch("seconds_taken", kept(tenant), last)
        return None if seconds is None else float(seconds)


async def _lock(tx: Transaction, where: Sequence[str]) -> ResearchTask | None:
    row = await tx.fetchrow(f"{_TASK} FOR UPDATE", *where)
    return None if row is None else task_of(row)


async def _save(tx: Transaction, task: ResearchTask) -> None:
    """What changes of a task."""
    await tx.execute(
        "UPDATE penstock.research_tasks SET pages = $3, ends_at = $4, seconds_left = $5"
        " WHERE (tenant, id) = ($1, $2)",
        *(task.tenant, task.id, task.pages, task.ends_at, task.seconds_left),
    )
