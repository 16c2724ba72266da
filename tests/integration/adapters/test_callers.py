"""Jobs stored in a caller's transaction, whichever driver or framework that is open with."""

import asyncio
import sqlite3
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from penstock import Penstock
from penstock.adapters.postgres.address import parse
from penstock.adapters.sqlite import database
from penstock.errors import ConfigError, JobNotFound, KeyConflict, QueueUnavailable
from penstock.ports.queue import Topic
from tests.support.callers import POSTGRES, SQLITE, Caller
from tests.support.postgres import new_url
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("patient_postgres")

WAYS = {**POSTGRES, **SQLITE}


@pytest.fixture(scope="module")
def postgres() -> str:
    return new_url()


@pytest.fixture(params=WAYS)
async def both(
    request: pytest.FixtureRequest, postgres: str, tmp_path: Path
) -> AsyncIterator[tuple[Penstock, Caller]]:
    """An app with one job, and a caller that has begun nothing."""
    way = request.param
    url = postgres if way in POSTGRES else f"sqlite:///{tmp_path}/jobs.db"
    async with Penstock(url) as app:
        await app.enqueue("old", {"way": way}, key=f"old {way}")
        async with WAYS[way](url) as caller:
            yield app, caller


async def test_jobs_come_with_the_callers_commit_and_workers_are_woken_by_it(
    both: tuple[Penstock, Caller],
) -> None:
    app, caller = both
    ready = app.queue.listen(Topic.READY)
    if app.queue.url.startswith("postgres"):
        assert await ready.wait(PATIENCE), "no connection for wake-ups"
    while await ready.wait(0.2):
        pass
    one = await app.enqueue("ship", {"order": "é"}, priority="high", log="paper", conn=caller.conn)
    many = await app.enqueue_many("ship", [{"n": n} for n in range(3)], conn=caller.conn)
    stored = "SELECT count(*) FROM penstock.jobs WHERE kind = 'ship' AND state = 'queued'"
    before = await caller.execute(stored)
    assert before >= 4
    assert await app.queue.get([one.id, *(job.id for job in many)]) == {}
    while await ready.wait(0.1):
        pass  # of what was before: whoever is woken now sees nothing, and is told again
    await caller.commit()
    assert await ready.wait(PATIENCE)
    found = await app.get(one.id)
    assert (found.payload, found.log, found.priority) == ({"order": "é"}, "paper", one.priority)
    assert [(await app.get(job.id)).payload for job in many] == [{"n": n} for n in range(3)]


async def test_jobs_go_with_the_callers_rollback(both: tuple[Penstock, Caller]) -> None:
    app, caller = both
    job = await app.enqueue("ship", {}, key=f"gone {id(both)}", conn=caller.conn)
    await caller.rollback()
    with pytest.raises(JobNotFound):
        await app.get(job.id)
    assert (await app.enqueue("ship", {"n": 2}, key=f"gone {id(both)}")).id != job.id


async def test_refusals_and_jobs_found_leave_the_transaction_as_it_was(
    both: tuple[Penstock, Caller], request: pytest.FixtureRequest
) -> None:
    app, caller = both
    way = request.node.callspec.params["both"]
    first = await app.enqueue("ship", {"n": 1}, key=f"mine {way}", conn=caller.conn)
    same = await app.enqueue("ship", {"n": 1}, key=f"mine {way}", conn=caller.conn)
    assert (same.id, same.payload) == (first.id, {"n": 1}), "not committed, and yet found"
    old = await app.enqueue("old", {"way": way}, key=f"old {way}", conn=caller.conn)
    with pytest.raises(KeyConflict):
        await app.enqueue("old", {"way": "other"}, key=f"old {way}", conn=caller.conn)
    await caller.commit()
    assert set(await app.queue.get([first.id, old.id])) == {first.id, old.id}


async def test_bursts_are_of_the_callers_transaction(
    both: tuple[Penstock, Caller], request: pytest.FixtureRequest
) -> None:
    app, caller = both
    of_way = request.node.callspec.params["both"]
    late: Any = {"debounce": 60, "debounce_key": of_way}
    first = await app.enqueue("late", {"n": 1}, **late)
    new = await app.enqueue("new", {"n": 1}, **late, conn=caller.conn)
    again = await app.enqueue("late", {"n": 2}, **late, conn=caller.conn)
    once = await app.enqueue("once", {"way": of_way}, unique_for=60, conn=caller.conn)
    same = await app.enqueue("once", {"way": of_way}, unique_for=60, conn=caller.conn)
    assert (again.id, again.payload, same.id) == (first.id, {"n": 2}, once.id)
    assert (await app.get(first.id)).payload == {"n": 1}
    assert await app.queue.get([new.id, once.id]) == {}
    await caller.commit()
    assert (await app.get(first.id)).payload == {"n": 2}
    assert (await app.enqueue("once", {"way": of_way}, unique_for=60)).id == once.id


async def test_a_refusal_begins_no_transaction_that_keeps_others_from_writing(
    tmp_path: Path,
) -> None:
    """As Python's sqlite3 begins one by itself."""
    async with Penstock(f"sqlite:///{tmp_path}/jobs.db") as app:
        await app.enqueue("old", key="one")
        with closing(sqlite3.connect(tmp_path / "jobs.db")) as conn:
            with pytest.raises(KeyConflict):
                await app.enqueue("old", {"n": 2}, key="one", conn=conn)
            assert not conn.in_transaction
            await app.enqueue("new")


async def test_connection_is_used_in_the_thread_that_waits(postgres: str, tmp_path: Path) -> None:
    """As code without an event loop does."""

    def store(app: Penstock, conn: Any) -> str:
        q = app.sync()
        with conn:
            job = q.enqueue("ship", {"n": 1}, key="here", conn=conn)
            with pytest.raises(KeyConflict):
                q.enqueue("ship", {"n": 2}, key="here", conn=conn)
            with pytest.raises(JobNotFound):
                q.get(job.id)
        return q.get(job.id).id

    def in_file(app: Penstock) -> str:
        with closing(sqlite3.connect(tmp_path / "jobs.db")) as conn:
            return store(app, conn)

    def on_server(app: Penstock) -> str:
        with closing(psycopg.connect(parse(postgres).dsn)) as conn:
            return store(app, conn)

    for url, work in ((f"sqlite:///{tmp_path}/jobs.db", in_file), (postgres, on_server)):
        async with Penstock(url) as app:
            job_id = await asyncio.to_thread(work, app)
            assert (await app.get(job_id)).payload == {"n": 1}


async def test_connections_that_cannot_be_used_are_refused_with_what_to_do(
    postgres: str, tmp_path: Path
) -> None:
    file = f"sqlite:///{tmp_path}/jobs.db"
    other = sqlite3.connect(tmp_path / "other.db")
    plain = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    stale = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    server = psycopg.connect(parse(postgres).dsn, autocommit=True)
    elsewhere: list[sqlite3.Connection] = []
    thread = threading.Thread(
        target=lambda: elsewhere.append(sqlite3.connect(tmp_path / "jobs.db"))
    )
    thread.start()
    thread.join()
    async with Penstock(file) as app, Penstock(postgres) as remote:
        stale.execute("BEGIN")
        stale.execute("SELECT count(*) FROM jobs").fetchall()
        await app.enqueue("ship")
        refused: list[tuple[Penstock, Any, str]] = [
            (app, object(), "takes a connection of"),
            (app, other, "both have to be the same file"),
            (app, sqlite3.connect(":memory:"), "both have to be the same file"),
            (app, plain, "BEGIN IMMEDIATE first"),
            (app, stale, "begin it with BEGIN IMMEDIATE"),
            (app, server, "the queue is a SQLite file"),
            (app, elsewhere[0], "cannot be used here"),
            (remote, plain, "the queue is in PostgreSQL"),
            (remote, server, "transaction open"),
        ]
        for one, conn, told in refused:
            with pytest.raises(ConfigError, match=told):
                await one.enqueue("ship", conn=conn)
        assert len(await app.jobs()) == 1
    for conn in (other, plain, stale, server):
        conn.close()
    with pytest.raises(ConfigError, match="Enqueue after its commit, with key="):
        await Penstock("redis://localhost:1/0").enqueue("ship", conn=object())


async def test_connection_to_another_database_is_refused() -> None:
    url, name = new_url(), f"other_{uuid.uuid4().hex[:12]}"
    there = urlsplit(url)._replace(path=f"/{name}").geturl()
    with closing(psycopg.connect(parse(url).dsn, autocommit=True)) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            async with Penstock(url) as app, POSTGRES["psycopg_connection"](there) as caller:
                with pytest.raises(ConfigError, match="a database that has no queue of"):
                    await app.enqueue("ship", conn=caller.conn)
                await caller.rollback()
                async with Penstock(there):
                    with pytest.raises(ConfigError, match="a queue of its own under this name"):
                        await app.enqueue("ship", conn=caller.conn)
        finally:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def test_who_waits_for_the_lock_it_has_itself_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.5)
    async with Penstock(f"sqlite:///{tmp_path}/jobs.db") as app:
        with closing(sqlite3.connect(tmp_path / "jobs.db")) as mine:
            mine.execute("CREATE TABLE orders (id text)")
            mine.execute("INSERT INTO orders VALUES ('o1')")
            with pytest.raises(QueueUnavailable, match=r"this process itself.*conn="):
                await app.enqueue("ship")
            with (
                closing(sqlite3.connect(tmp_path / "jobs.db")) as second,
                pytest.raises(QueueUnavailable, match=r"this process itself.*conn="),
            ):
                await app.enqueue("ship", conn=second)
            job = await app.enqueue("ship", conn=mine)
            mine.commit()
        assert [one.id for one in await app.jobs()] == [job.id]
