"""How many connections a process makes, and that it can do without a session of its own."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from asyncpg import ConnectionDoesNotExistError, InterfaceError

from penstock import JobContext, JobState, Penstock
from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Database
from tests.support.postgres import Psql, new_url, psql
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("patient_postgres")


async def connections(mine: Psql) -> Counter[str]:
    """The connections to this queue, by purpose."""
    namespace = mine.schema.strip('"')
    rows = await mine.fetch(
        "SELECT application_name FROM pg_stat_activity WHERE application_name LIKE '%' || $1",
        namespace,
    )
    return Counter(name.removeprefix("penstock ").removesuffix(f" {namespace}") for (name,) in rows)


async def test_worker_process_makes_three_connections_and_a_pool_of_four() -> None:
    url = new_url()
    lanes = {"wide": {"min_interval_seconds": 0.0, "max_parallel": 20}}
    app = Penstock(url, max_workers=20, lease_seconds=15.0, lanes=lanes)  # renewed every 5 s

    @app.job("parent")
    async def parent(ctx: JobContext, children: int) -> None:
        for n in range(children):
            async with ctx.lanes.permit("wide"):
                await ctx.enqueue("child", {"n": n})

    @app.job("child")
    async def child(ctx: JobContext, n: int) -> None:
        await ctx.progress(0.5)

    most: Counter[str] = Counter()
    async with app, psql(url) as mine:
        assert await connections(mine) == {}, "none before there is anything to do"
        async with app.running():
            jobs = await app.enqueue_many("parent", [{"children": 3}] * 30)
            waiting = [asyncio.create_task(app.wait(job.id, timeout=60)) for job in jobs]
            renewed = False
            while not renewed or not all(task.done() for task in waiting):
                now = await connections(mine)
                most |= now
                renewed = renewed or now["renew"] > 0
                await asyncio.sleep(0.005)
            done = await asyncio.gather(*waiting)
            assert {job.state for job in done} == {JobState.COMPLETED}
    assert (most["work"], most["listen"], most["renew"]) == (1, 1, 1)
    assert most["app"] <= 4
    assert sum(most.values()) - most["set-up"] <= 7


async def test_connections_end_with_the_app() -> None:
    url = new_url()
    app = Penstock(url, lease_seconds=3.0)
    app.job("work")(_nothing)
    async with psql(url) as mine:
        async with app.running():
            job = await app.enqueue("work")
            await app.wait(job.id, timeout=60)
            await until(lambda: _renewing(mine), "a renewal")
        await until(lambda: _none_left(mine), "all of them to end")


async def _nothing(ctx: JobContext) -> None:
    pass


async def _renewing(mine: Psql) -> bool:
    return (await connections(mine))["renew"] == 1


async def _none_left(mine: Psql) -> bool:
    return not await connections(mine)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every connection made during the test, but for that of renewals: it has another loop."""
    found: list[Any] = []
    connect = Database.connect

    async def noted(self: Database, purpose: str) -> Any:
        connection = await connect(self, purpose)
        if purpose != "renew":
            found.append(connection)
        return connection

    monkeypatch.setattr(Database, "connect", noted)
    return found


SESSION = """
SELECT (SELECT count(*) FROM pg_prepared_statements),
       (SELECT count(*) FROM pg_listening_channels()),
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
       current_setting('enable_seqscan'), current_setting('synchronous_commit'),
       current_setting('lock_timeout')
"""


async def test_poll_only_leaves_nothing_in_a_session(made: list[Any]) -> None:
    """A pooler that gives each transaction another session must not be noticed. Without a rate no
    start is too late: a busy machine would miss one at every look."""
    lanes: dict[str, Any] = {
        "api": {"min_interval_seconds": 0.0},
        "other": {"min_interval_seconds": 0.0},
    }
    app = Penstock(new_url(), poll_only=True, upkeep_seconds=0.1, lanes=lanes)

    @app.job("work", lane="api")
    async def work(ctx: JobContext) -> None:
        await ctx.progress(0.5)
        async with ctx.lanes.permit("other"):
            pass

    async with app.running():
        jobs = await app.enqueue_many("work", [{}] * 3, log="paper")
        for job in jobs:
            assert (await app.wait(job.id, timeout=60)).state is JobState.COMPLETED
        assert [change.what for change in await app.changes("paper")].count("completed") == 3
        await app.counts()
        checked: set[int] = set()

        async def two_are_clean() -> bool:
            for connection in [one for one in made if not one.is_closed()]:
                try:
                    state = await _session(connection)
                except ConnectionDoesNotExistError:
                    continue  # the app wanted it just then, and has made another
                if state is not None:
                    assert tuple(state) == (0, 0, 0, "on", "on", "0")
                    checked.add(id(connection))
            return len(checked) >= 2

        await until(two_are_clean, "two connections were found unused")


async def _session(connection: Any) -> Any:
    """None while the app itself uses the connection."""
    try:
        return await connection.fetchrow(SESSION)
    except InterfaceError:
        return None
    except AttributeError:  # asyncpg's way to say that it was closed in the middle of this
        if connection.is_closed():
            raise ConnectionDoesNotExistError from None
        raise


async def test_poll_only_notices_what_another_process_enqueues_and_finishes() -> None:
    url = new_url()
    worker, other = Penstock(url, poll_only=True), Penstock(url, poll_only=True)
    worker.job("work")(_nothing)
    async with worker.running(), other:
        for _ in range(3):
            job = await other.enqueue("work")
            assert (await other.wait(job.id, timeout=60)).state is JobState.COMPLETED


async def test_only_the_first_connection_asks_the_server_for_its_types() -> None:
    database = Database(parse(new_url()))
    asked: list[str] = []

    async def numbers() -> None:
        connection = await database.connect("test")
        connection.add_query_logger(lambda record: asked.append(record.query))
        try:
            assert await connection.fetchval("SELECT $1::int[] || 3", [1, 2]) == [1, 2, 3]
        finally:
            await connection.close()

    await numbers()
    asked.clear()
    await numbers()
    assert asked == ["SELECT $1::int[] || 3"]


async def test_types_of_one_database_are_not_taken_for_those_of_another() -> None:
    """Names and numbers of enums and composites are each database's own."""
    database = Database(parse(new_url()))
    for members in (("sun", "moon"), ("rain", "snow")):
        connection = await database.connect("test")
        try:
            async with connection.transaction():
                await connection.execute(f"CREATE TYPE weather AS ENUM {members}")
                found = await connection.fetchval(f"SELECT ARRAY['{members[0]}']::weather[]")
                assert found == [members[0]]
                await connection.execute("DROP TYPE weather")
        finally:
            await connection.close()
