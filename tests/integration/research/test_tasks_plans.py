"""How the stores go about research tasks: by index, however many tasks there are.

Every method is called, and the plan of every statement it executes is looked at.
"""

import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Database
from penstock.adapters.postgres.store import PostgresStore
from penstock.adapters.sql.tasks import TaskStore
from penstock.adapters.sqlite.file import SqliteFile
from penstock.adapters.sqlite.store import SqliteStore
from penstock.model.research import PageState, SearchRef, SearchState
from tests.conformance.task_support import (
    NOW,
    add,
    answer_of,
    finish,
    grant,
    mark,
    new_task,
    record_there,
    restart,
)
from tests.support.postgres import new_url, psql

TASKS, EACH = 300, 20
"""Tasks there are already, and how many searches and pages each has."""

FILL = [
    "INSERT INTO research_tasks (tenant, id, question, created_at, pages)"
    " SELECT 't' || (n % 3), '00' || n, '?', 1, {EACH} FROM many WHERE n <= {TASKS}",
    "INSERT INTO research_searches (tenant, task, id, number, hash, query, wanted, priority,"
    " providers, state, run, queued_at, started_at, finished_at)"
    " SELECT 't' || ((n % {TASKS} + 1) % 3), '00' || (n % {TASKS} + 1), n, n, n, '?', 10, 50,"
    " '[]', CASE WHEN n % 50 = 0 THEN 'queued' ELSE 'completed' END, 1, 1, 1, n FROM many",
    "INSERT INTO research_answers (tenant, task, search, provider, skipped, done, at, findings)"
    " SELECT tenant, task, id, 'p', 0, {true}, 1, '[]' FROM research_searches",
    "INSERT INTO research_pages (tenant, task, number, hash, search, run, key, url, state, title,"
    " at) SELECT tenant, task, number, hash, id, 1, id, id, 'read', '', 1 FROM research_searches",
]


async def everything(store: TaskStore) -> None:
    """Whatever can be asked of a store, with something to do for each."""
    task = await new_task(store, "t1", budget_pages=100, budget_seconds=60.0)
    first, second = (await add(store, task, "one", "two")).searches
    await add(store, task, "three", "one")
    await store.start(first.ref, first.run, NOW)
    await store.answer(first.ref, first.run, answer_of(first, titles=["A"]))
    await grant(store, first, "a.org", "b.org")
    await mark(store, first, "a.org", PageState.FAILED)
    again = await restart(store, first)
    assert (await grant(store, again, "a.org")).pages[0].state is PageState.WAITING
    assert (await store.start(again.ref, again.run, NOW)) is not None
    await finish(store, again)
    await store.stop("t1", task.id, NOW, refuse=True)
    await store.resume("t1", task.id, NOW)
    assert not await finish(store, second, SearchState.FAILED)
    assert len((await record_there(store, task)).searches) == 3
    listed = await store.tasks("t1", 10)
    assert [len(searches) for _, searches in listed] == [3] + [EACH] * 9
    assert len(await store.tasks("t1", 10, before=task.id)) == 10
    assert len(await store.unfinished(NOW + 1, 10)) == 10
    assert len(await store.unfinished(NOW + 1, 10, SearchRef("t1", "1", "1"))) == 10
    assert await store.seconds_taken("t1", 5) is not None


# SQLite

MANY = (
    "CREATE TEMP TABLE many AS WITH RECURSIVE many (n) AS"
    f" (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < {TASKS * EACH}) SELECT n FROM many"
)


async def test_whatever_is_asked_of_a_file_goes_by_index(tmp_path: Path) -> None:
    file = SqliteFile(f"sqlite:///{tmp_path}/store.db", durable=False)
    await file.open()
    with closing(file.connect()) as connection:
        connection.execute(MANY)
        for statement in FILL:
            connection.execute(statement.format(TASKS=TASKS, EACH=EACH, true=1))
        seen: list[str] = []
        await file.write(lambda tx: tx.connection.set_trace_callback(seen.append))
        await file.read(lambda reader: reader.set_trace_callback(seen.append))
        await everything(SqliteStore(file, shared=True).research())
        await file.close()

        statements = {statement for statement in seen if "research_" in statement}
        assert len(statements) > 30
        for statement in statements:
            assert_by_index(connection, statement)


def assert_by_index(connection: sqlite3.Connection, statement: str) -> None:
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    for step in steps:
        assert not re.match(r"SCAN (TABLE )?research_", step), (statement, steps)
        assert "TEMP B-TREE" not in step, (statement, steps)
    if "(tenant, task, id) >" in statement:
        expected = "research_searches_unfinished ((tenant,task,id)>(?,?,?))"
    elif "avg(" in statement:
        expected = "research_searches_taken (tenant=?)"
    elif "ORDER BY created_at DESC" in statement:
        expected = "research_tasks_newest (tenant=?"
    else:
        expected = "AND search=?" if "search = " in statement else "(tenant=? AND "
    # What only adds a row has no steps.
    assert not steps or any(expected in step for step in steps), (statement, steps)


# PostgreSQL


@pytest.fixture
async def plans(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The plan of every statement about research tasks, at the moment it is executed."""
    plans: dict[str, str] = {}
    fetch = asyncpg.Connection.fetch

    def watch(name: str, original: Callable[..., Awaitable[Any]]) -> None:
        async def watched(connection: Any, statement: str, *values: Any, **options: Any) -> Any:
            if "research_" in statement and statement not in plans:
                rows = await fetch(connection, f"EXPLAIN {statement}", *values)
                plans[statement] = "\n".join(row[0] for row in rows)
            return await original(connection, statement, *values, **options)

        monkeypatch.setattr(asyncpg.Connection, name, watched)

    for name in ("fetch", "fetchrow", "fetchval", "execute"):
        watch(name, getattr(asyncpg.Connection, name))
    return plans


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    url = new_url()
    store = PostgresStore(Database(parse(url)))
    await store.open()
    async with psql(url) as mine:
        many = f"generate_series(1, {TASKS * EACH}) AS n"
        for statement in FILL:
            text = statement.format(TASKS=TASKS, EACH=EACH, true="true").replace(
                "FROM many", f"FROM {many}"
            )
            await mine.execute(text.replace("research_", "penstock.research_"))
        await mine.execute("ANALYZE penstock.research_tasks, penstock.research_searches")
        await mine.execute("ANALYZE penstock.research_answers, penstock.research_pages")
    yield store
    await store.close()


async def test_whatever_is_asked_of_a_database_goes_by_index(
    store: PostgresStore, plans: dict[str, str]
) -> None:
    await everything(store.research())

    assert len(plans) > 25
    scans = {one: plan for one, plan in plans.items() if "Seq Scan on research_" in plan}
    assert scans == {}
    (unfinished,) = [plan for one, plan in plans.items() if "(tenant, task, id) >" in one]
    assert "research_searches_unfinished" in unfinished
    assert "Sort" not in unfinished
    newest = [plan for one, plan in plans.items() if "ORDER BY created_at DESC" in one]
    assert newest
    assert all("research_tasks_newest" in plan and "Sort" not in plan for plan in newest)
    (taken,) = [plan for one, plan in plans.items() if "avg(" in one]
    assert "research_searches_taken" in taken
    assert "Sort" not in taken
