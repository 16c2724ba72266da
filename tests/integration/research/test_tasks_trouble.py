"""Research tasks in a store that is away, behind a pooler, or made by an older Penstock."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.postgres import schema
from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Database
from penstock.adapters.postgres.store import PostgresStore
from penstock.adapters.sql.store import Store
from penstock.adapters.sql.tasks import TaskStore
from penstock.adapters.sqlite import database
from penstock.adapters.sqlite import schema as sqlite_schema
from penstock.adapters.sqlite.file import SqliteFile
from penstock.adapters.sqlite.store import SqliteStore
from penstock.errors import StoreUnavailable
from penstock.model.access import hash_of, new_key
from penstock.model.ids import new_id
from penstock.model.research import PageState, ResearchTask, Search, SearchState
from tests.conformance.task_support import (
    NOW,
    TENANT,
    add,
    answer_of,
    begun,
    finish,
    grant,
    mark,
    new_pages,
    new_search,
    new_task,
    record_there,
    restart,
)
from tests.support.postgres import new_url, psql
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import until

NOTICED = 60.0
"""A server that says nothing is noticed after a command's time limit of 5 s."""

Calls = dict[str, Callable[[], Awaitable[Any]]]


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy(new_url()) as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: Proxy) -> AsyncIterator[TaskStore]:
    store = PostgresStore(Database(parse(proxy.url)))
    await store.open()
    yield store.research()
    await store.close()


def writes(store: TaskStore, search: Search) -> Calls:
    """Calls that change something, each the same however often it is made."""
    tenant, task, _ = ref = search.ref
    run, other, new = search.run, ResearchTask(TENANT, new_id(), "?", NOW), [new_search("new")]
    return {
        "create": lambda: store.create(other),
        "add_searches": lambda: store.add_searches(tenant, task, new, 9, NOW),
        "start": lambda: store.start(ref, run, NOW),
        "answer": lambda: store.answer(ref, run, answer_of(search, titles=["A"])),
        "grant": lambda: store.grant(ref, run, new_pages("a.org", "b.org", "c.org"), NOW),
        "page": lambda: mark(store, search, "a.org", PageState.READ),
        "stop": lambda: store.stop(tenant, task, NOW + 10, refuse=False),
        "resume": lambda: store.resume(tenant, task, NOW + 20),
        "finish": lambda: finish(store, search),
    }


def reads(store: TaskStore, search: Search) -> Calls:
    tenant, task, _ = search.ref
    return {
        "get": lambda: store.get(tenant, task),
        "tasks": lambda: store.tasks(tenant, 10),
        "record": lambda: store.record(tenant, task),
        "unfinished": lambda: store.unfinished(NOW + 1, 10),
        "seconds_taken": lambda: store.seconds_taken(tenant, 10),
    }


async def test_a_server_that_is_gone_is_told_and_nothing_is_changed(
    proxy: Proxy, store: TaskStore
) -> None:
    search = await begun(store)
    before = await record_there(store, search.ref)
    proxy.leave()
    for call in (writes(store, search) | reads(store, search)).values():
        with pytest.raises(StoreUnavailable):
            await call()
    with pytest.raises(StoreUnavailable):
        await restart(store, search)
    proxy.come_back()
    assert await record_there(store, search.ref) == before


async def test_a_server_that_says_nothing_is_not_waited_for_without_end(
    proxy: Proxy, store: TaskStore
) -> None:
    search = await begun(store)
    proxy.silence()
    calls = (writes(store, search)["answer"], *reads(store, search).values())
    async with asyncio.timeout(NOTICED):
        outcomes = await asyncio.gather(*(call() for call in calls), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    proxy.resume()


async def test_a_call_whose_answer_was_lost_can_be_made_again(
    proxy: Proxy, store: TaskStore
) -> None:
    """It was done, and nobody was told."""
    search = await begun(store, budget_pages=2, budget_seconds=60.0)
    for count, (name, call) in enumerate(writes(store, search).items(), 1):
        proxy.lose = b"COMMIT"
        with pytest.raises(StoreUnavailable):
            await call()
        assert proxy.lost == count
        done = await record_there(store, search.ref)
        assert await call(), name
        assert await record_there(store, search.ref) == done
    done = await record_there(store, search.ref)
    assert [one.query for one in done.searches] == ["q", "new"]
    assert done.searches[0].state is SearchState.COMPLETED
    assert [page.state for page in done.pages] == [PageState.READ, PageState.WAITING]
    assert (done.task.pages, done.task.ends_at) == (2, NOW + 70)
    assert len(done.answers) == 1


@pytest.mark.parametrize("name", ["start", "answer", "grant", "page", "finish"])
async def test_what_is_brought_in_the_moment_of_another_run_is_refused(
    proxy: Proxy, store: TaskStore, name: str
) -> None:
    """The other run is not committed when the job brings something: it has to wait and see."""
    task = await new_task(store)
    (search,) = (await add(store, task, "q")).searches
    await grant(store, search, "a.org")
    before = await record_there(store, task)
    async with psql(proxy.url) as mine:
        transaction = mine.connection.transaction()
        await transaction.start()
        await mine.execute("UPDATE penstock.research_searches SET run = run + 1")
        pid = mine.connection.get_server_pid()
        bringing = asyncio.ensure_future(writes(store, search)[name]())

        async def waits() -> bool:
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))"
            return bringing.done() or await mine.fetchval(waiting, pid) > 0

        await until(waits, "the job to wait")
        await transaction.commit()
    assert not await bringing
    after = await record_there(store, task)
    (again,) = after.searches
    assert after == replace(before, searches=[again])
    assert again == replace(search, run=search.run + 1)


async def test_a_file_that_is_locked_is_told_and_works_again_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    file = SqliteFile(f"sqlite:///{tmp_path}/store.db", durable=False)
    await file.open()
    store = SqliteStore(file, shared=True).research()
    search = await begun(store)
    before = await record_there(store, search.ref)
    with closing(sqlite3.connect(file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for call in writes(store, search).values():
            with pytest.raises(StoreUnavailable, match="locked"):
                await call()
        assert await record_there(store, search.ref) == before, "readers are not kept waiting"
        other.execute("ROLLBACK")
    assert await finish(store, search)
    await file.close()


async def test_a_store_behind_a_pooler_works(proxy: Proxy) -> None:
    store = PostgresStore(Database(parse(proxy.url), poll_only=True))
    await store.open()
    tasks = store.research()
    search = await begun(tasks)
    await grant(tasks, search, "a.org")
    for call in (writes(tasks, search) | reads(tasks, search)).values():
        await call()
    assert (await record_there(tasks, search.ref)).searches[0].state is SearchState.COMPLETED
    await store.close()


async def test_a_file_of_before_there_were_tasks_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sqlite_schema.migrations()[:3]
    file = SqliteFile(f"sqlite:///{tmp_path}/store.db", durable=False)
    with monkeypatch.context() as then:
        then.setattr(sqlite_schema, "migrations", lambda: before)
        await file.open()
        await file.close()
    with closing(sqlite3.connect(file.path)) as old:
        there = [name for (name,) in old.execute("SELECT name FROM sqlite_master")]
        assert "jobs" in there
        assert "research_tasks" not in there
    await brought_up_to_date(SqliteStore(file, shared=False))


async def test_a_database_of_before_there_were_tasks_is_brought_up_to_date(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, known = new_url(), schema.migrations
    with monkeypatch.context() as then:
        old = tuple(step for step in known() if step.version < 5)
        then.setattr(schema, "migrations", lambda series=schema.QUEUE: old)
        await schema.prepare(Database(parse(url)))
    async with psql(url) as mine:
        assert await mine.fetchval("SELECT max(version) FROM penstock.migrations") == len(old)
        with pytest.raises(Exception, match="research_tasks"):
            await mine.fetch("SELECT FROM penstock.research_tasks")
    await brought_up_to_date(PostgresStore(Database(parse(url))))


async def brought_up_to_date(store: Store) -> None:
    """It takes tasks now, and what else it is for."""
    for _ in range(2):
        await store.open()
        search = await begun(store.research())
        assert await finish(store.research(), search)
        key, secret = new_key("ci")
        await store.access().add_key(key, hash_of(secret.reveal()))
        await store.close()
