"""The doctor and the queue: servers with bad settings, away, refusing, of another version."""

import asyncio
import re
import sqlite3
import time
from collections.abc import Iterator

import asyncpg
import pytest

from penstock import Penstock, runtime
from penstock.adapters.database_facts import ClockSkew, Schema
from penstock.adapters.postgres.facts import Pgvector, PostgresFacts
from penstock.adapters.redis.facts import RedisFacts
from penstock.adapters.sqlite.facts import SqliteFacts
from penstock.doctor import postgres, redis, sqlite
from penstock.doctor.databases import judge_schema
from tests.support.database_servers import PostgresServer, RedisServer, free_port, postgres_url
from tests.support.doctor import Clinic
from tests.support.postgres import new_url, psql

HOUR = 3600.0
PASSWORD = "sesame-open"


def make(url: str) -> None:
    """A queue with one job in it."""

    async def inside() -> None:
        async with Penstock(url) as app:
            await app.enqueue("mail")

    asyncio.run(inside())


@pytest.fixture(scope="module")
def durable() -> Iterator[PostgresServer]:
    """PostgreSQL as it should be, but for a user that needs a password."""
    server = PostgresServer(durable=True)
    rules = server.folder / "data" / "pg_hba.conf"
    rules.write_text(f"host all locked 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    server.start()
    asyncio.run(_execute(server.url, f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'"))
    yield server
    server.remove()


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


@pytest.fixture(scope="module")
def locked_redis() -> Iterator[RedisServer]:
    """Redis that fsyncs, evicts nothing, and wants a password."""
    server = RedisServer(durable=True, requirepass=PASSWORD).start()
    yield server
    server.remove()


def test_a_sqlite_queue_that_is_fine_is_said_to_be(clinic: Clinic) -> None:
    make("sqlite:///jobs.db")
    report = clinic.ask("sqlite:///jobs.db")
    for part in ("queue", "queue schema", "queue durability", "queue clock", "store", "lanes"):
        report.says(part, "ok")
    report.says(
        "workers", "warning", "kind without a worker: mail", "1 job waiting", "penstock worker"
    )
    assert report.code == 0


def test_looking_makes_nothing(clinic: Clinic) -> None:
    report = clinic.ask("sqlite:///jobs.db")
    report.says("queue schema", "ok", "does not exist yet")
    report.says("work", "skipped")
    assert list(clinic.folder.iterdir()) == []


def test_an_older_sqlite_schema_is_told_and_left_alone(clinic: Clinic) -> None:
    make("sqlite:///jobs.db")
    with sqlite3.connect("jobs.db") as connection:
        connection.execute("PRAGMA user_version = 3")
    report = clinic.ask("sqlite:///jobs.db")
    report.says("queue schema", "warning", "version 3", "back it up")
    report.says("work", "skipped", "changes nothing")
    with sqlite3.connect("jobs.db") as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


def test_a_sqlite_schema_that_is_too_new_is_broken(clinic: Clinic) -> None:
    make("sqlite:///jobs.db")
    with sqlite3.connect("jobs.db") as connection:
        connection.execute("PRAGMA user_version = 999")
    report = clinic.ask("sqlite:///jobs.db")
    report.says("queue schema", "broken", "version 999", "upgrade Penstock")
    assert report.code == 1


def test_another_programs_file_and_a_damaged_one_are_broken(clinic: Clinic) -> None:
    with sqlite3.connect("other.db") as connection:
        connection.execute("CREATE TABLE theirs (x)")
    clinic.ask("sqlite:///other.db").says("queue", "broken", "another program")
    (clinic.folder / "noise.db").write_bytes(b"this is no database, " * 500)
    clinic.ask("sqlite:///noise.db").says("queue", "broken", "damaged")


def test_a_sqlite_queue_that_may_forget_is_a_warning(clinic: Clinic) -> None:
    clinic.config("engine: {durable: false}\n")
    report = clinic.ask("sqlite:///jobs.db")
    report.says("queue durability", "warning", "power loss", "durable: true")
    assert report.code == 0


def test_a_missing_folder_is_broken(clinic: Clinic) -> None:
    report = clinic.ask("sqlite:///nowhere/jobs.db")
    report.says("queue", "broken", "does not exist")


def test_a_network_file_system_and_a_foreign_journal_mode_are_noticed() -> None:
    facts = SqliteFacts(Schema(1, 1, 1), "wal", None)
    judged = sqlite.judge_durability("queue", facts, durable=True, system="nfs4")
    assert (judged.status, "local disk" in judged.advice) == ("broken", True)
    judged = sqlite.judge_durability(
        "queue", facts._replace(journal="delete"), durable=True, system="ext4"
    )
    assert (judged.status, "delete" in judged.found) == ("warning", True)


def test_postgres_that_is_fine_is_said_to_be(clinic: Clinic, durable: PostgresServer) -> None:
    url = new_url(durable.url)
    make(url)
    clinic.config(f"blobs: {clinic.folder}\n")
    report = clinic.ask(url)
    for part in ("queue", "queue schema", "queue durability", "queue clock", "pgvector", "lanes"):
        report.says(part, "ok")
    assert report.code == 0


def test_postgres_without_fsync_is_broken(clinic: Clinic) -> None:
    """As the server is that most tests share."""
    report = clinic.ask(new_url(postgres_url()))
    report.says("queue durability", "broken", "fsync is off", "fsync = on")
    assert report.code == 1


def test_postgres_that_answers_before_it_has_stored_is_a_warning(
    clinic: Clinic, durable: PostgresServer
) -> None:
    asyncio.run(_execute(durable.url, "CREATE ROLE hasty LOGIN"))
    asyncio.run(_execute(durable.url, "ALTER ROLE hasty SET synchronous_commit = off"))
    report = clinic.ask(durable.url.replace("penstock@", "hasty@"))
    report.says("queue durability", "warning", "synchronous_commit is off")


@pytest.mark.parametrize(
    "place", ["postgresql://u:{}@127.0.0.1:{}/db", "redis://u:{}@127.0.0.1:{}/0"]
)
def test_a_server_that_is_away_is_broken_and_its_password_not_shown(
    place: str, clinic: Clinic
) -> None:
    port = free_port()
    report = clinic.ask(place.format(PASSWORD, port))
    report.says("queue", "broken", "cannot reach", str(port), "start it")
    report.says("work", "skipped")
    assert PASSWORD not in report.text


def test_a_wrong_password_is_broken_and_not_shown(
    clinic: Clinic, durable: PostgresServer, locked_redis: RedisServer
) -> None:
    postgres_place = durable.url.replace("penstock@", "locked:not-sesame@")
    redis_place = locked_redis.url.replace("redis://", "redis://:not-sesame@")
    for place in (postgres_place, redis_place):
        report = clinic.ask(place)
        report.says("queue", "broken", "refuses this")
        assert "not-sesame" not in report.text


def test_postgres_schemas_of_other_versions_are_told_and_left_alone(
    clinic: Clinic, durable: PostgresServer
) -> None:
    url = new_url(durable.url)
    make(url)
    count = "SELECT count(*) FROM penstock.migrations"

    async def change(statement: str) -> int:
        async with psql(url) as server:
            await server.execute(statement)
            return int(await server.fetchval(count))

    newest = "(SELECT max(version) FROM penstock.migrations)"
    before = asyncio.run(change(f"DELETE FROM penstock.migrations WHERE version = {newest}"))
    clinic.ask(url).says("queue schema", "warning", f"version {before}", "back it up")
    assert asyncio.run(change("SELECT 1")) == before, "nothing was migrated"
    asyncio.run(
        change("INSERT INTO penstock.migrations (version, name, needs) VALUES (99, 'x', 99)")
    )
    report = clinic.ask(url)
    report.says("queue schema", "broken", "version 99", "upgrade Penstock")
    report.says("work", "skipped")


def test_a_store_that_cannot_be_one_and_originals_without_a_place_are_told(
    clinic: Clinic, durable: PostgresServer
) -> None:
    clinic.config("store: redis://localhost:6379/0\n")
    clinic.ask("sqlite:///jobs.db").says("store", "broken", "not a store URL", "postgresql://")
    clinic.config(f"store: {new_url(durable.url)}\n")
    report = clinic.ask("sqlite:///jobs.db")
    report.says("store", "ok", "PostgreSQL 18")
    report.says("store durability", "ok")
    report.says("blobs", "warning", "documents are refused", "bucket")


def test_a_newer_schema_that_old_code_can_use_is_only_a_warning() -> None:
    assert judge_schema("queue", Schema(9, 5, 7)).status == "warning"


@pytest.mark.parametrize("ahead", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_a_clock_that_is_off_is_a_warning_that_names_ntp(
    ahead: float,
    clinic: Clinic,
    durable: PostgresServer,
    locked_redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This process is an hour off; the servers are not."""
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + ahead)
    monkeypatch.setattr(runtime, "now", time.time)
    redis_place = locked_redis.url.replace("redis://", f"redis://:{PASSWORD}@")
    for place in (durable.url, redis_place):
        side = "ahead of" if ahead > 0 else "behind"
        report = clinic.ask(place)
        report.says("queue clock", "warning", side, "NTP")
        (off,) = re.findall(r"([\d.]+) s", report.findings["queue clock"]["found"])
        assert float(off) == pytest.approx(HOUR, abs=60)


def test_redis_that_is_fine_is_said_to_be(clinic: Clinic, locked_redis: RedisServer) -> None:
    url = locked_redis.url.replace("redis://", f"redis://:{PASSWORD}@")
    make(url)
    report = clinic.ask(url)
    for part in ("queue", "queue durability", "queue eviction", "queue clock", "lanes"):
        report.says(part, "ok")
    report.says("store", "skipped", "documents", "store: postgresql://")
    assert report.code == 0
    assert PASSWORD not in report.text
    clinic.config("server: {host: 0.0.0.0, port: 0}\n")
    clinic.ask(url).says("keys", "broken", "nothing can keep one", "set `store`")


def test_redis_that_forgets_is_broken_unless_that_is_meant(clinic: Clinic) -> None:
    settings = {"appendonly": "no", "maxmemory-policy": "allkeys-lru"}
    server = RedisServer("valkey", durable=False, **settings).start()
    try:
        report = clinic.ask(server.url)
        report.says("queue", "ok", "Valkey 9")
        report.says("queue durability", "broken", "restart", "appendonly yes")
        report.says("queue eviction", "broken", "allkeys-lru", "maxmemory-policy noeviction")
        assert report.code == 1
        clinic.config("engine: {allow_volatile: true}\n")
        report = clinic.ask(server.url)
        report.says("queue durability", "warning", "allow_volatile")
        report.says("queue eviction", "warning", "allow_volatile")
    finally:
        server.remove()


REDIS = RedisFacts(
    name="Redis 7.2.0",
    version=(7, 2),
    replica=False,
    loading=False,
    append_only=True,
    fsync="always",
    eviction="noeviction",
    clock=ClockSkew(0.0, 0.0),
    exists=True,
)


def test_servers_that_are_too_old_or_take_no_writes_are_broken() -> None:
    for bad in (
        REDIS._replace(version=(6, 2), name="Redis 6.2.1"),
        REDIS._replace(replica=True),
        REDIS._replace(loading=True),
    ):
        assert redis.judge_server("queue", "redis://x", bad).status == "broken"
    everysec = redis.judge_durability("queue", REDIS._replace(fsync="everysec"), volatile=False)
    assert (everysec.status, "last second" in everysec.found) == ("warning", True)
    assert "death of the server alone" in everysec.found
    waits = REDIS._replace(fsync="everysec", version=(7, 2), name="Redis 7.2.4")
    assert "wait_aof: true" in redis.judge_durability("queue", waits, volatile=False).advice
    waited = redis.judge_durability("queue", waits, volatile=False, wait_aof=True)
    assert (waited.status, "death costs no jobs" in waited.found) == ("ok", True)
    old = REDIS._replace(fsync="everysec", version=(7, 0), name="Redis 7.0.15")
    cannot = redis.judge_durability("queue", old, volatile=False, wait_aof=True)
    assert (cannot.status, "no WAITAOF" in cannot.found) == ("broken", True)
    silent = REDIS._replace(append_only=None, eviction=None)
    assert redis.judge_durability("queue", silent, volatile=False).status == "warning"
    assert redis.judge_eviction("queue", silent, volatile=False).status == "warning"


def test_pgvector_is_broken_only_where_documents_are_wanted() -> None:
    facts = PostgresFacts(
        version="13.1",
        major=13,
        standby=False,
        settings={},
        clock=ClockSkew(0.0, 0.0),
        queue=Schema(0, 0, 1),
        documents=Schema(0, 0, 1),
        pgvector=Pgvector(None, False, False),
        serving=None,
    )

    def status(vector: Pgvector, *, wanted: bool) -> str:
        return postgres.judge_pgvector(facts._replace(pgvector=vector), wanted=wanted).status

    assert status(Pgvector(None, False, False), wanted=True) == "broken"
    assert status(Pgvector(None, False, False), wanted=False) == "skipped"
    assert status(Pgvector(None, True, False), wanted=True) == "broken"
    assert status(Pgvector(None, True, True), wanted=True) == "ok"
    assert status(Pgvector("0.7.4", True, True), wanted=True) == "broken"
    assert postgres.judge_server("queue", "postgresql://x", facts).status == "broken"
