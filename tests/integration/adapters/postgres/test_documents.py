"""Documents in PostgreSQL: many who write and search at once, and what the server needs."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.adapters.postgres import PostgresQueue
from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.postgres.documents import PostgresDocuments
from penstock.errors import ConfigError, QueueError, QueueUnusable
from penstock.ports.documents import DocumentQuery, Scope, Version
from tests.conformance.document_support import (
    MODEL,
    TENANT,
    accept,
    add,
    embed,
    find,
    nearest,
    ref_of,
    staged_of,
    texts,
    vector_of,
)
from tests.support.forks import command
from tests.support.postgres import Psql, documents_at, new_url, psql

pytestmark = pytest.mark.usefixtures("patient_postgres")
ROOT = Path(__file__).parents[4]


async def counted(mine: Psql) -> None:
    """What is counted is what is there."""
    there = Counter[str]()
    lengths = []
    for (terms,) in await mine.fetch(
        "SELECT c.terms FROM penstock.chunks AS c JOIN penstock.documents AS d"
        " ON d.number = c.document AND d.live = c.generation"
    ):
        there.update({f"1 {term}" for term in terms.split()})
        lengths.append(len(terms.split()))
    rows = await mine.fetch("SELECT lexeme, chunks FROM penstock.term_counts")
    assert dict(rows) == dict(there)
    totals = await mine.fetch("SELECT number, chunks, terms FROM penstock.tenants")
    assert [tuple(row) for row in totals] == [(1, len(lengths), sum(lengths))]


async def test_processes_that_publish_at_once_leave_one_index_and_exact_counts() -> None:
    url = new_url()
    processes = [
        await asyncio.create_subprocess_exec(
            *command("tests.support.document_publisher", url, name, "12"), cwd=ROOT
        )
        for name in ("ada", "bob")
    ]
    async with asyncio.timeout(100):
        assert [await process.wait() for process in processes] == [0, 0]
    async with documents_at(url) as documents, psql(url) as mine:
        assert await mine.fetchval("SELECT count(*) FROM penstock.models") == 1
        await counted(mine)
        found = await find(documents, "sun", limit=100)
        assert Counter(texts(found)) == {"sun ada second": 8, "sun bob second": 8}
        assert "moon 2" in nearest(found)
        assert await mine.fetchval("SELECT count(*) FROM penstock.chunks") == 32, "no old versions"


async def test_uploads_of_one_document_at_once_leave_the_last_to_be_published() -> None:
    async with documents_at(new_url()) as documents:
        ref = ref_of("a")
        versions = await asyncio.gather(*(accept(documents, ref, f"{n}") for n in range(8)))
        newest = max(versions, key=lambda version: version.generation)
        published = []
        for version in versions:
            if await documents.stage(version, staged_of([f"sun {version.generation}"])):
                await embed(documents, version)
                published.append((version, await documents.publish(version, MODEL)))
        assert published == [(newest, True)]
        assert texts(await find(documents, "sun")) == [f"sun {newest.generation}"]


async def test_first_documents_published_at_once_do_not_lock_each_other_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "penstock.postgres")
    for _ in range(5):
        url = new_url()
        async with AsyncExitStack() as open_ones:
            publications = []
            for n in range(4):
                documents = await open_ones.enter_async_context(documents_at(url))
                version = await accept(documents, ref_of(f"{n}"), f"{n}")
                await documents.stage(version, staged_of([f"sun {n}"]))
                await embed(documents, version)
                publications.append(documents.publish(version, MODEL))
            # Each in a transaction of its own: the first of all decides which model serves.
            assert all(await asyncio.gather(*publications))
    assert "deadlock" not in caplog.text


async def test_documents_are_published_together_and_one_without_vectors_fails_alone() -> None:
    url = new_url()
    async with documents_at(url) as documents, psql(url) as mine:
        versions = []
        for name in ("a", "b", "c", "d"):
            version = await accept(documents, ref_of(name), name)
            await documents.stage(version, staged_of([f"sun {name}", "moon moon"]))
            versions.append(version)
        for version in versions[:3]:
            await embed(documents, version)
        late = Version(versions[1].ref, versions[1].generation - 1)
        asked = [*versions, late]
        told = await asyncio.gather(
            *(documents.publish(one, MODEL) for one in asked), return_exceptions=True
        )
        assert told[:3] == [True, True, True]
        assert "no vector yet" in str(told[3])
        assert told[4] is False
        await counted(mine)
        assert set(texts(await find(documents, "sun", limit=9))) == {"sun a", "sun b", "sun c"}


async def test_document_whose_next_version_is_empty_is_found_until_that_is_published() -> None:
    async with documents_at(new_url()) as documents:
        await add(documents, ref_of("a"), "sun")
        empty = await accept(documents, ref_of("a"), "empty")
        await documents.stage(empty, staged_of([]))
        found = await find(documents, "sun", documents=["a"])
        assert texts(found) == nearest(found) == ["sun"]
        assert await documents.publish(empty, MODEL)
        assert (await find(documents, "sun", documents=["a"])).places == {}


async def test_many_searches_and_uploads_share_the_queues_connections() -> None:
    url = new_url()
    queue = PostgresQueue(url)
    await queue.open()
    documents = PostgresDocuments(queue.database, queue.pool)
    await documents.open()
    done = asyncio.Event()
    namespace = parse(url).namespace
    most = 0

    async def watching(mine: Psql) -> None:
        nonlocal most
        while not done.is_set():
            rows = await mine.fetch(
                "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE '%' || $1", namespace
            )
            most = max(most, len(rows))

    async with psql(url) as mine:
        watcher = asyncio.create_task(watching(mine))
        await asyncio.gather(*(add(documents, ref_of(f"d{n}"), f"sun {n}") for n in range(20)))
        found = await asyncio.gather(*(find(documents, "sun", limit=30) for _ in range(40)))
        done.set()
        await watcher
    assert {len(one.vector) for one in found} == {20}
    assert 1 < most <= 4
    await documents.close()
    with pytest.raises(QueueError, match="not open"):
        await find(documents, "sun")
    await queue.close()


async def test_no_vector_is_deleted_while_a_text_that_needs_it_is_being_staged() -> None:
    async with documents_at(new_url()) as store:
        await add(store, ref_of("a"), "sun")
        await store.delete(ref_of("a"))
        again = await accept(store, ref_of("a"), "again")
        staged, looked = asyncio.Event(), asyncio.Event()

        async def stage(tx: Transaction) -> None:
            await store._stage(tx, 1, again, staged_of(["sun"]))
            staged.set()
            await looked.wait()

        staging = asyncio.create_task(store._write(stage))
        await staged.wait()
        for _ in range(2):
            assert (await store.purge(after=None, keep_seconds=0.0, limit=10)).deleted == 0
            looked.set()
            await staging
        assert await store.to_embed(again, MODEL) == []
        assert await store.publish(again, MODEL)


@asynccontextmanager
async def database_of(role: str, **settings: str) -> AsyncIterator[str]:
    """A new database that belongs to a new user without further rights; its URL."""
    name = f"{role}_{uuid.uuid4().hex[:12]}"
    async with psql(new_url()) as mine:
        await mine.execute(f"CREATE ROLE {name} LOGIN")
        await mine.execute(f"CREATE DATABASE {name} OWNER {name}")
        for setting, value in settings.items():
            await mine.execute(f"ALTER DATABASE {name} SET {setting} = '{value}'")
        address = parse(new_url())
        yield re.sub(r"//[^@]*@([^/]*)/.*", rf"//{name}@\1/{name}", address.dsn)
        await mine.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await mine.execute(f"DROP ROLE {name}")


async def test_user_who_may_not_create_pgvector_is_told_who_may() -> None:
    async with database_of("plain") as url:
        with pytest.raises(QueueUnusable, match="superuser run CREATE EXTENSION vector"):
            async with documents_at(url):
                pass
        queue = PostgresQueue(url)
        await queue.open()  # jobs do not need it
        await queue.close()
        superuser = parse(new_url()).dsn.rpartition("/")[0] + "/" + url.rpartition("/")[2]
        async with psql(superuser) as mine:
            await mine.execute("CREATE SCHEMA elsewhere")
            await mine.execute("CREATE EXTENSION vector SCHEMA elsewhere")
            with pytest.raises(QueueUnusable, match="GRANT USAGE ON SCHEMA elsewhere"):
                async with documents_at(url):
                    pass
            await mine.execute("GRANT USAGE ON SCHEMA elsewhere TO PUBLIC")
        async with documents_at(url) as documents:
            await add(documents, ref_of("a"), "sun")
            assert nearest(await find(documents, "sun")) == ["sun"]


async def test_server_without_pgvector_is_a_clear_error() -> None:
    async with database_of("bare", extension_control_path="/nowhere") as url:
        with pytest.raises(QueueUnusable, match="this server does not have; install it"):
            async with documents_at(url):
                pass


async def test_user_with_grants_only_can_bring_a_new_model() -> None:
    url = new_url()
    role = f"worker_{uuid.uuid4().hex[:12]}"
    async with documents_at(url), psql(url) as mine:
        await mine.execute(f"CREATE ROLE {role} LOGIN")
        await mine.execute(f"GRANT USAGE ON SCHEMA {mine.schema} TO {role}")
        for what in ("TABLES", "SEQUENCES", "FUNCTIONS", "PROCEDURES"):
            await mine.execute(f"GRANT ALL ON ALL {what} IN SCHEMA {mine.schema} TO {role}")
        async with documents_at(re.sub("//[^@]*@", f"//{role}@", url)) as documents:
            await add(documents, ref_of("a"), "sun")
            assert nearest(await find(documents, "sun")) == ["sun"]
        await mine.execute(f"DROP OWNED BY {role}")
        await mine.execute(f"DROP ROLE {role}")


async def test_vectors_that_no_index_can_hold_are_refused() -> None:
    async with documents_at(new_url()) as documents:
        with pytest.raises(QueueError, match="at most 4000"):
            await documents.put_vectors(TENANT, "huge", {"a": b"\0" * 4 * 5000})
        await documents.put_vectors(TENANT, MODEL, {"a": vector_of("sun")})
        with pytest.raises(QueueError, match="3 dimensions, the others 8"):
            await documents.put_vectors(TENANT, MODEL, {"b": b"\0" * 12})


async def test_counts_are_those_of_the_tenant_alone() -> None:
    async with documents_at(new_url()) as documents:
        await add(documents, ref_of("a", tenant="ada"), "sun", "sun moon")
        await add(documents, ref_of("a", tenant="bob"), "sun", "tide", "tide")
        told: list[tuple[dict[str, int], int]] = []

        def listen(frequencies: Mapping[str, int], total: int) -> list[str]:
            told.append((dict(frequencies), total))
            return ["sun"]

        for tenant in ("ada", "bob", "eve"):
            asked = DocumentQuery(Scope(tenant), ["sun", "moon", "tide"], listen, None, MODEL, 10)
            await documents.find(asked)
        assert told == [({"sun": 2, "moon": 1}, 2), ({"sun": 1, "tide": 2}, 3)]


async def test_nothing_is_left_in_a_session_that_a_pooler_gives_to_others() -> None:
    queue = PostgresQueue(new_url(), poll_only=True)
    await queue.open()
    documents = PostgresDocuments(queue.database, queue.pool)
    await documents.open()
    await add(documents, ref_of("a"), "sun")
    assert nearest(await find(documents, "sun")) == ["sun"]
    (state,) = await queue.fetch(SESSION)
    assert tuple(state) == (0, 0, '"$user", public', "on", "on", "0")
    await documents.close()
    await queue.close()


SESSION = """
SELECT (SELECT count(*) FROM pg_prepared_statements),
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
       current_setting('search_path'), current_setting('enable_sort'),
       current_setting('enable_seqscan'), current_setting('statement_timeout')
"""


@pytest.mark.parametrize("queue", ["same", "sqlite"])
async def test_app_keeps_documents_in_postgres_wherever_its_queue_is(
    tmp_path: Path, queue: str
) -> None:
    url = new_url()
    where: dict[str, Any] = {"store": url} if queue == "sqlite" else {}
    jobs = f"sqlite:///{tmp_path}/jobs.db" if queue == "sqlite" else url
    with pytest.raises(ConfigError, match="blobs"):
        Penstock(jobs, **where).use("documents")
    app = Penstock(jobs, blobs=str(tmp_path / "blobs"), **where)
    documents = app.use("documents").documents
    async with app.running():
        document = await documents.add("Penguins march. A zebra sleeps.", id="zoo")
        await documents.wait(document.ref.id, timeout=60)
        result = await documents.search("where is the zebra?")
        assert [passage.document for passage in result.passages] == ["zoo"]
        assert result.mode == "hybrid"
        await documents.delete("zoo")
        assert (await documents.search("where is the zebra?")).passages == []
    async with psql(url) as mine:
        assert await mine.fetchval("SELECT count(*) FROM penstock.chunks") == 0
        assert await mine.fetchval("SELECT count(*) FROM penstock.term_counts") == 0


async def test_no_generation_is_given_out_twice() -> None:
    url = new_url()
    async with documents_at(url):

        async def taken() -> list[int]:
            async with psql(url) as connection:
                ask = "SELECT penstock.next_generation_1()"
                return [await connection.fetchval(ask) for _ in range(150)]

        each = await asyncio.gather(*(taken() for _ in range(8)))
    assert len({one for some in each for one in some}) == 8 * 150
    assert all(some == sorted(some) for some in each)
