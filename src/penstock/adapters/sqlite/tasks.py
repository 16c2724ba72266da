"""Research tasks in a SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

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
from penstock.adapters.sqlite.database import Transaction, sql
from penstock.adapters.sqlite.file import SqliteFile
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

_SEARCHES = ("research_searches", SEARCH_COLUMNS)
_ANSWERS = ("research_answers", ANSWER_COLUMNS)
_PAGES = ("research_pages", PAGE_COLUMNS)
_MADE = "SELECT created_at, id FROM research_tasks WHERE (tenant, id) = (:tenant, :before)"
_TASK = "(tenant, id) = (:tenant, :task)"
_OF_TASK = "(tenant, task) = (:tenant, :task)"
_RUN = "(tenant, task, id, run) = (:tenant, :task, :search, :run)"


class SqliteTasks:
    """See `penstock.ports.research.TaskStore`. Whoever writes has locked the whole file, and so
    the task."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def _write(self, operation: Callable[[Transaction], T], *, soft: bool = False) -> T:
        with reaching_store():
            return await self._file.write(operation, soft=soft)

    async def _read(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        with reaching_store():
            return await self._file.read(operation)

    async def create(self, task: ResearchTask) -> ResearchTask:
        def create(tx: Transaction) -> ResearchTask:
            tx.execute(
                f"INSERT INTO research_tasks ({TASK_COLUMNS}) VALUES (:tenant, :id, :question,"
                " :created_at, :budget_pages, :budget_seconds, :pages, :ends_at, :seconds_left)"
                " ON CONFLICT DO NOTHING",
                task_values(task),
            )
            there = _task(tx, _named(task.tenant, task.id))
            assert there is not None
            return there

        return await self._write(create)

    async def get(self, tenant: str, task: str) -> ResearchTask | None:
        return await self._read(lambda connection: _task(connection, _named(tenant, task)))

    async def tasks(
        self, tenant: str, limit: int, before: str | None = None
    ) -> list[tuple[ResearchTask, list[Search]]]:
        def read(connection: sqlite3.Connection) -> tuple[list[Row], list[Row]]:
            older = "" if before is None else f" AND (created_at, id) < ({_MADE})"
            tasks = connection.execute(
                f"SELECT {TASK_COLUMNS} FROM research_tasks WHERE tenant = :tenant{older}"
                " ORDER BY created_at DESC, id DESC LIMIT :limit",
                {"tenant": kept(tenant), "before": kept(before), "limit": limit},
            ).fetchall()
            searches = connection.execute(
                f"SELECT {SEARCH_COLUMNS} FROM research_searches WHERE tenant = ?"
                " AND task IN (SELECT value FROM json_each(?)) ORDER BY task, number",
                (kept(tenant), json.dumps([row[1] for row in tasks])),
            ).fetchall()
            return tasks, searches

        return by_task(*await self._read(read))

    async def add_searches(
        self, tenant: str, task: str, new: Sequence[NewSearch], most: int, now: float
    ) -> Added | None:
        def add(tx: Transaction) -> Added | None:
            there = _task(tx, named)
            if there is None:
                return None
            rows = tx.execute(
                f"SELECT {SEARCH_COLUMNS}, hash FROM research_searches WHERE {_OF_TASK}", named
            ).fetchall()
            plan = plan_searches(there, rows, new, most, now)
            for hash, search in plan.fresh.items():  # noqa: A001
                tx.execute(sql("add_search"), search_values(hash, search))
            if plan.fresh and not rows:
                _save(tx, clock_started(there, now))
            return plan.added

        named = _named(tenant, task)
        return await self._write(add)

    async def record(self, tenant: str, task: str) -> TaskRecord | None:
        def read(
            connection: sqlite3.Connection,
        ) -> tuple[ResearchTask, list[Row], list[Row], list[Row]] | None:
            there = _task(connection, named)
            if there is None:
                return None
            searches, answers, pages = (
                connection.execute(
                    f"SELECT {columns} FROM {table} WHERE {_OF_TASK} ORDER BY number", named
                ).fetchall()
                for table, columns in (_SEARCHES, _ANSWERS, _PAGES)
            )
            return there, searches, answers, pages

        named = _named(tenant, task)
        rows = await self._read(read)
        return None if rows is None else await record_of(*rows)

    async def start(self, ref: SearchRef, run: int, now: float) -> Started | None:
        def start(tx: Transaction) -> tuple[ResearchTask, Row, list[Row], list[Row]] | None:
            tx.execute(
                "UPDATE research_searches SET state = 'running',"
                f" started_at = coalesce(started_at, :now) WHERE {_RUN} AND state = 'queued'",
                named | {"now": now},
            )
            row: Row | None = tx.execute(
                f"SELECT {SEARCH_COLUMNS} FROM research_searches WHERE {_RUN}"
                " AND state = 'running'",
                named,
            ).fetchone()
            if row is None:
                return None
            there = _task(tx, named)
            assert there is not None
            answers, pages = (
                tx.execute(
                    f"SELECT {columns} FROM {table} WHERE {_OF_TASK} AND search = :search"
                    " ORDER BY number",
                    named,
                ).fetchall()
                for table, columns in (_ANSWERS, _PAGES)
            )
            return there, row, answers, pages

        named = _of_run(ref, run)
        # A power loss may take it: then the job is run again, and starts it again.
        started = await self._write(start, soft=True)
        if started is None:
            return None
        there, row, answers, pages = started
        found = await answers_of(answers)
        return Started(there, search_of(row), found, [page_of(page) for page in pages])

    async def answer(self, ref: SearchRef, run: int, answer: ProviderReply) -> bool:
        values = _of_run(ref, run) | answer_values(answer)
        return await self._write(lambda tx: tx.execute(sql("answer_search"), values).rowcount == 1)

    async def grant(
        self, ref: SearchRef, run: int, pages: Sequence[NewPage], now: float
    ) -> Granted | None:
        def grant(tx: Transaction) -> Granted | None:
            there = _task(tx, named)
            going_on = tx.execute(
                f"SELECT 1 FROM research_searches WHERE {_RUN} AND state IN ('queued', 'running')",
                named,
            ).fetchone()
            if there is None or going_on is None:
                return None
            rows = tx.execute(
                f"SELECT {PAGE_COLUMNS}, run FROM research_pages WHERE {_OF_TASK}"
                " AND hash IN (SELECT value FROM json_each(:hashes))",
                named | {"hashes": json.dumps([hash_of(page.key) for page in pages])},
            ).fetchall()
            plan = plan_pages(ref, run, there, rows, pages, now)
            for number, page in enumerate(plan.fresh, there.pages + 1):
                values = {"number": number, "hash": hash_of(page.key), "now": now}
                values |= {"key": page.key, "url": page.url}
                tx.execute(sql("grant_page"), named | values)
            for page in plan.again:
                tx.execute(
                    "UPDATE research_pages SET state = 'waiting', reason = NULL, run = :run,"
                    f" at = :now WHERE {_OF_TASK} AND hash = :hash",
                    named | {"hash": hash_of(page.key), "now": now},
                )
            if plan.fresh:
                _save(tx, replace(there, pages=there.pages + len(plan.fresh)))
            return plan.granted

        named = _of_run(ref, run)
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
        named = _of_run(
            ref,
            run,
            hash=hash_of(key),
            state=state.value,
            now=now,
            collection=collection,
            document=document,
            title=title,
            reason=reason,
        )
        return await self._write(lambda tx: tx.execute(sql("mark_page"), named).rowcount == 1)

    async def finish(
        self, ref: SearchRef, run: int, state: SearchState, reason: str | None, now: float
    ) -> bool:
        def finish(tx: Transaction) -> bool:
            tx.execute(sql("finish_search"), named)
            ended = tx.execute(
                f"SELECT 1 FROM research_searches WHERE {_RUN} AND state = :state", named
            )
            return ended.fetchone() is not None

        named = _of_run(ref, run, state=state.value, reason=reason, now=now)
        return await self._write(finish)

    async def restart(self, ref: SearchRef, run: int) -> Search | None:
        def restart(tx: Transaction) -> Search | None:
            rows = tx.execute(sql("restart_search"), named).fetchall()
            return search_of(rows[0]) if rows else None

        named = _of_run(ref, run)
        return await self._write(restart)

    async def stop(self, tenant: str, task: str, now: float, *, refuse: bool) -> bool:
        def stop(tx: Transaction) -> bool:
            there = _task(tx, named)
            if there is None:
                return False
            _save(tx, clock_stopped(there, now))
            if refuse:
                tx.execute(sql("refuse_searches"), named)
            return True

        named = _named(tenant, task)
        return await self._write(stop)

    async def resume(self, tenant: str, task: str, now: float) -> bool:
        def resume(tx: Transaction) -> bool:
            there = _task(tx, named)
            if there is None:
                return False
            begun = f"SELECT 1 FROM research_searches WHERE {_OF_TASK} LIMIT 1"
            if tx.execute(begun, named).fetchone() is not None:
                _save(tx, clock_started(there, now))
            return True

        named = _named(tenant, task)
        return await self._write(resume)

    async def unfinished(
        self, before: float, limit: int, after: SearchRef | None = None
    ) -> list[Search]:
        def read(connection: sqlite3.Connection) -> list[Search]:
            rows = connection.execute(
                sql("unfinished_searches"), named | {"before": before, "limit": limit}
            )
            return [search_of(row) for row in rows]

        tenant, task, search = after or ("", "", "")
        named = _named(tenant, task, search=search)
        return await self._read(read)

    async def seconds_taken(self, tenant: str, last: int) -> float | None:
        def read(connection: sqlite3.Connection) -> float | None:
            row = connection.execute(
                sql("seconds_taken"), {"tenant": kept(tenant), "last": last}
            ).fetchone()
            seconds: float | None = row[0]
            return seconds

        return await self._read(read)


def _named(tenant: str, task: str, **values: Any) -> dict[str, Any]:
    """Parameters of a statement."""
    named: dict[str, Any] = kept({"tenant": tenant, "task": task, **values})
    return named


def _of_run(ref: SearchRef, run: int, **values: Any) -> dict[str, Any]:
    return _named(ref.tenant, ref.task, search=ref.id, run=run, **values)


def _task(
    connection: sqlite3.Connection | Transaction, named: dict[str, Any]
) -> ResearchTask | None:
    row = connection.execute(
        f"SELECT {TASK_COLUMNS} FROM research_tasks WHERE {_TASK}", named
    ).fetchone()
    return None if row is None else task_of(row)


def _save(tx: Transaction, task: ResearchTask) -> None:
    """What changes of a task."""
    tx.execute(
        "UPDATE research_tasks SET pages = ?, ends_at = ?, seconds_left = ?"
        " WHERE (tenant, id) = (?, ?)",
        (task.pages, task.ends_at, task.seconds_left, task.tenant, task.id),
    )
