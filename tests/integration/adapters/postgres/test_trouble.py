"""The server stopped, killed, frozen, cut off, read-only, not ours: a clear error, nothing lost,
no meltdown, recovery."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from penstock import Job, JobOrchestrator, JobState, Penstock
from penstock.adapters.postgres import PostgresQueue, lanes
from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.postgres.schema import migrations
from penstock.cli.errors import ExitCode
from penstock.errors import ConfigError, QueueUnavailable, QueueUnusable
from penstock.ports.lanes import LaneCommand
from penstock.ports.queue import Topic
from tests.conformance.lane_support import want_lanes
from tests.conformance.support import KIND, LONG, claim, completed, new_jobs, no_limits, want
from tests.support.cli import Cli
from tests.support.cpu_time import cpu_share
from tests.support.database_servers import PostgresServer
from tests.support.postgres import new_url, psql
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

RECOVERY = 40.0
"""Work resumes within 2 s, on a machine that has nothing else to do: `make bench` asks for that."""
NOTICED = 60.0
"""A server that says nothing is noticed after a command's time limit of 5 s."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    server = PostgresServer().start()
    yield server
    server.remove()


@asynccontextmanager
async def jobs_running(
    folder: Path, url: str
) -> AsyncIterator[tuple[Farm, Penstock, JobOrchestrator, list[Job]]]:
    """A worker in this process with two jobs in the middle of their run, and two waiting."""
    farm = Farm(folder, url=url, max_workers=2, lease_seconds=60.0)
    app = farm.app()
    async with app.running() as orchestrator:
        jobs = await app.enqueue_many("gated", [{"gate": str(farm.gate)}] * 4)
        await until(lambda: len(farm.side.notes()) == 2, "two jobs to run")
        yield farm, app, orchestrator, jobs


async def at_rest_in_trouble(orchestrator: JobOrchestrator, patience: float) -> None:
    """Degraded, and doing next to nothing about it."""
    await until(lambda: orchestrator.degraded, "the worker to be degraded", patience)
    assert orchestrator.running
    assert await cpu_share(1.0) < 0.3
    assert orchestrator.dispatcher_task is not None
    assert not orchestrator.dispatcher_task.done()


async def all_is_well_again(
    app: Penstock, orchestrator: JobOrchestrator, jobs: list[Job], patience: float = RECOVERY
) -> None:
    async with asyncio.timeout(patience):
        for job in jobs:
            assert (await app.wait(job.id)).state is JobState.COMPLETED
        await until(lambda: orchestrator.degraded is None, "recovery", patience)
        new = await app.enqueue("work", {"n": 1})
        assert (await app.wait(new.id)).state is JobState.COMPLETED
    assert {job.id for job in await app.jobs(limit=100)} == {job.id for job in [*jobs, new]}


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_worker_outlives_a_restart_of_the_server_and_loses_nothing(
    server: PostgresServer, tmp_path: Path, how: str
) -> None:
    async with jobs_running(tmp_path, new_url(server.url)) as (farm, app, orchestrator, jobs):
        await asyncio.to_thread(getattr(server, how))
        try:
            farm.gate.touch()  # they end while their outcome cannot be stored
            await at_rest_in_trouble(orchestrator, RECOVERY)
            with pytest.raises(QueueUnavailable, match="cannot reach"):
                await app.enqueue("work", {"n": 0})
        finally:
            await asyncio.to_thread(server.start)
        await all_is_well_again(app, orchestrator, jobs)
        done = [await app.get(job.id) for job in jobs]
        assert [job.attempts for job in done] == [1] * 4


async def test_server_that_hangs_is_noticed_and_worked_with_again_when_it_goes_on(
    server: PostgresServer, tmp_path: Path
) -> None:
    async with jobs_running(tmp_path, new_url(server.url)) as (farm, app, orchestrator, jobs):
        server.freeze()
        try:
            farm.gate.touch()
            await at_rest_in_trouble(orchestrator, NOTICED)
        finally:
            server.thaw()
        await all_is_well_again(app, orchestrator, jobs)


async def test_connections_that_went_dead_without_a_word_are_replaced(
    server: PostgresServer, tmp_path: Path
) -> None:
    """As when a firewall forgets them: nothing is answered, nothing is closed."""
    with Proxy(new_url(server.url)) as proxy:
        async with jobs_running(tmp_path, proxy.url) as (farm, app, orchestrator, jobs):
            proxy.swallow()
            farm.gate.touch()
            await all_is_well_again(app, orchestrator, jobs, NOTICED)


async def test_claim_whose_answer_is_lost_leaves_no_job_and_no_slot_behind(
    server: PostgresServer,
) -> None:
    """The server has leased the jobs; the process never heard of it, and lives on."""
    url = new_url(server.url)
    with Proxy(url) as proxy:
        queue, direct = PostgresQueue(proxy.url, lane_config=no_limits), PostgresQueue(url)
        await queue.open()
        await direct.open()
        member = await queue.join([KIND], 10, LONG)
        await queue.enqueue(new_jobs(3))
        await queue.enqueue(new_jobs(2, lane="api"))
        known = await claim(member, 1)
        for wanted in (want_lanes(5), want(5)):
            proxy.half_close()
            with pytest.raises(QueueUnavailable):
                await member.exchange([], [], wanted)
            await member.exchange([], [], None)
        leases = (await member.exchange([], [], want_lanes(5, limit=5))).leases

        assert len(leases) == 4
        assert {lease.attempts for lease in leases} == {1}
        assert not {lease.seq for lease in leases} & {lease.seq for lease in known}
        (lane,) = await direct.lanes()
        assert lane.in_flight == 2
        assert (await member.exchange([*map(completed, [*known, *leases])], [], None)).stale == []
        async with asyncio.timeout(60):
            await queue.counts()  # the connection of its pool was no better, and is replaced
        await member.leave()
        await queue.close()
        await direct.close()


async def test_enqueue_whose_answer_is_lost_stores_its_jobs_once(server: PostgresServer) -> None:
    with Proxy(new_url(server.url)) as proxy:
        async with Penstock(proxy.url) as app:
            first = await app.enqueue("work")
            proxy.half_close()
            second = await app.enqueue("work")
            assert {job.id for job in await app.jobs()} == {first.id, second.id}


async def test_listener_hears_again_after_its_connection_was_cut(server: PostgresServer) -> None:
    with Proxy(new_url(server.url)) as proxy:
        async with Penstock(proxy.url) as app:
            ready = app.queue.listen(Topic.READY)
            assert await ready.wait(PATIENCE), (
                "woken when it begins to hear: something may be there"
            )
            proxy.drop()
            assert await ready.wait(PATIENCE), "and when it hears again"
            while await ready.wait(0.2):
                pass
            await app.enqueue("work")
            assert await ready.wait(PATIENCE)


async def test_process_frozen_in_a_transaction_holds_up_others_for_seconds_only() -> None:
    """The server ends its session; what it had locked is free."""
    url = new_url()
    frozen, other = PostgresQueue(url), PostgresQueue(url)
    await frozen.open()
    await other.open()
    await frozen.configure(["api"])
    locked = asyncio.Event()

    async def freeze(tx: Transaction) -> None:
        await lanes.lock(tx, ["api"])
        locked.set()
        await asyncio.Event().wait()

    freezing = asyncio.create_task(frozen.write(freeze))
    await locked.wait()
    async with asyncio.timeout(RECOVERY):
        assert await other.control("api", LaneCommand.PAUSE)
    freezing.cancel()
    await asyncio.gather(freezing, return_exceptions=True)
    await frozen.close()
    await other.close()


async def test_read_only_server_is_said_and_survived(
    server: PostgresServer, tmp_path: Path
) -> None:
    """As after a fail-over, when the old primary is a standby now."""
    async with jobs_running(tmp_path, new_url(server.url)) as (farm, app, orchestrator, jobs):
        await read_only(server, "on")
        try:
            farm.gate.touch()
            degraded = await until(lambda: orchestrator.degraded, "it to be degraded", RECOVERY)
            assert "read-only" in degraded
            with pytest.raises(QueueUnavailable, match="read-only"):
                await app.enqueue("work", {"n": 0})
            assert len(await app.jobs()) == 4, "what is there can be read"
        finally:
            await read_only(server, "off")
        await all_is_well_again(app, orchestrator, jobs)


async def read_only(server: PostgresServer, value: str) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute("SET default_transaction_read_only = off")
    await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("postgresql://host", "names no database"),
        ("postgresql://", "names no database"),
        ("postgresql://h/db?namespace=Bad", "namespace 'Bad'"),
        ("postgresql://h/db?namespace=pg_x", "namespace 'pg_x'"),
        ("postgresql://h/db?namespace=", "namespace ''"),
        ("postgresql://h/db?namespace=a%22b", "namespace 'a\"b'"),
        ("postgresql://h/db?nonsense", "cannot be read"),
        ("mysql://h/db", "no queue for 'mysql' URLs"),
    ],
)
def test_bad_url_is_refused_with_a_word_on_how_to_write_it(url: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as refusal:
        Penstock(url)
    assert "postgresql://" in str(refusal.value) or "namespace" in str(refusal.value)


async def test_nothing_there_is_said_without_the_password() -> None:
    app = Penstock("postgres://someone:s3cret@127.0.0.1:1/db?namespace=x&password=s3cret")
    with pytest.raises(QueueUnavailable, match="cannot reach postgresql://someone@") as refusal:
        await app.queue.open()
    assert "s3cret" not in str(refusal.value)
    assert "s3cret" not in app.queue.url


async def opening(url: str) -> str:
    """What is said when the queue cannot be used."""
    with pytest.raises(QueueUnusable) as refusal:
        await Penstock(url).queue.open()
    return str(refusal.value)


async def test_missing_database_is_said() -> None:
    url = parse(new_url()).dsn.rpartition("/")[0] + "/nowhere"
    assert "no such database" in await opening(url)


async def test_namespace_of_another_program_is_left_alone() -> None:
    url = new_url()
    async with psql(url) as mine:
        await mine.execute(f"CREATE SCHEMA {mine.schema}")
        await mine.execute("CREATE TABLE penstock.jobs (mine text)")
        await mine.execute("CREATE TABLE penstock.migrations (mine text)")
        assert "another program" in await opening(url)
        assert await mine.fetch("SELECT * FROM penstock.jobs") == []


async def test_user_without_rights_is_told_which_are_missing() -> None:
    url = new_url()
    async with psql(url) as mine:
        role = mine.schema.strip('"')
        await mine.execute(f"CREATE ROLE {role} LOGIN")
        try:
            limited = url.replace("penstock@", f"{role}@")
            assert "GRANT" in await opening(limited)
            async with Penstock(url) as app:
                await app.enqueue("work")
            assert "GRANT" in await opening(limited), "it may not even look"
            await mine.execute(f"GRANT USAGE ON SCHEMA {mine.schema} TO {role}")
            for what in ("TABLES", "SEQUENCES", "FUNCTIONS", "PROCEDURES"):
                await mine.execute(f"GRANT ALL ON ALL {what} IN SCHEMA {mine.schema} TO {role}")
            async with Penstock(limited) as app:
                app.job("work")(_nothing)
                async with app.running():
                    await app.drain(timeout=PATIENCE)
        finally:
            await mine.execute(f"DROP OWNED BY {role}")
            await mine.execute(f"DROP ROLE {role}")


async def _nothing(ctx: object) -> None:
    pass


async def test_newer_schema_works_unless_it_says_otherwise() -> None:
    url = new_url()
    async with Penstock(url) as app, psql(url) as mine:
        await app.enqueue("work")
        newer = migrations()[-1].version + 1
        note = "INSERT INTO penstock.migrations (version, name, needs) VALUES ($1, 'later', $2)"
        await mine.execute(note, newer, 1)
        async with Penstock(url) as other:
            assert len(await other.jobs()) == 1
        await mine.execute("UPDATE penstock.migrations SET needs = $1 WHERE version = $1", newer)
        assert "upgrade Penstock" in await opening(url)


async def test_processes_that_start_together_make_the_tables_once() -> None:
    url = new_url()
    apps = [Penstock(url) for _ in range(5)]
    await asyncio.gather(*(app.queue.open() for app in apps))
    async with psql(url) as mine:
        assert await mine.fetchval("SELECT count(*) FROM penstock.migrations") == len(migrations())
    for app in apps:
        await app.queue.close()


def test_missing_driver_is_said_with_what_to_install() -> None:
    code = (
        "import sys; sys.modules['asyncpg'] = None\n"
        "from penstock import Penstock\n"
        "from penstock.errors import ConfigError\n"
        "try: Penstock('postgresql://h/db')\n"
        "except ConfigError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'penstock[postgres]'" in said.stdout, said.stderr


def test_looking_at_a_queue_that_is_not_there_does_not_make_one(cli: Cli) -> None:
    url = new_url()
    assert "no queue at" in cli("--queue", url, "status", code=ExitCode.NOT_FOUND).err
    cli("--queue", url, "jobs", "list", code=ExitCode.NOT_FOUND)
    cli("--queue", url, "enqueue", "work")
    assert "work" in cli("--queue", url, "status").out


async def test_a_connection_that_was_told_of_its_end_is_one_that_is_lost() -> None:
    """The server's last words have come, and the end of the connection has not: in between, the
    driver refuses whatever it is asked with an error that is neither of the two."""
    app = Penstock(new_url())
    assert isinstance(app.queue, PostgresQueue)
    text = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
    async with app:
        before = await app.enqueue(KIND)
        async with app.queue.pool().connection() as connection:
            # As `data_received` of its protocol gets them.
            connection._protocol.data_received(b"E" + (len(text) + 4).to_bytes(4, "big") + text)
        with pytest.raises(QueueUnavailable, match="cannot reach"):
            await app.get(before.id)
        assert (await app.get(before.id)).id == before.id
