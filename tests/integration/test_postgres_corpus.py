"""A corpus in PostgreSQL: by which indexes it is searched, by how many processes it is written,
what it needs of the server."""

from __future__ import annotations

import asyncio
import random
import re
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.adapters.postgres import PostgresQueue
from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.corpus import PostgresCorpus
from penstock.adapters.postgres.corpus import find as searching
from penstock.adapters.postgres.corpus import text as full_text
from penstock.adapters.postgres.corpus.vectors import floats
from penstock.adapters.postgres.database import Database
from penstock.corpus.bm25 import bm25
from penstock.corpus.query import weight
from penstock.model.errors import ConfigError, QueueError, QueueUnusable
from penstock.ports.corpus import Findings, Scope, Wanted
from tests.conformance.corpus_support import (
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
    wanted,
)
from tests.support.postgres import Psql, new_url, psql

CHUNKS = 20_000
ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def corpus_at(url: str) -> AsyncIterator[PostgresCorpus]:
    corpus = PostgresCorpus(Database(parse(url)))
    await corpus.open()
    try:
        yield corpus
    finally:
        await corpus.close()


FILL = """
WITH c AS (
    INSERT INTO penstock.chunks (tenant, document, generation, ordinal, text, start, "end", fresh,
        tokens, pages, section, hash, terms, script, length, lexemes)
    SELECT 1, n / 50 + 1, 1, n % 50, n::text, 0, 1, 0, 1, 'null', '[]', n::text,
        'sun common' || n % 10 || ' rare' || n % 1000, 'latin', 3,
        array_to_tsvector(ARRAY['1 sun', '1 common' || n % 10, '1 rare' || n % 1000])
    FROM generate_series(0, $1 - 1) AS n RETURNING document, lexemes
), d AS (
    INSERT INTO penstock.documents (tenant, collection, id, generation, live, state, stage,
        progress, message, title, size, source, metadata, facts, digest, blob, chunks, accepted_at)
    SELECT 'default', 'c' || n % 2, 'd' || n, 1, 1, 'completed', 'done', 1, '', '', 1, '', '{}',
        ARRAY['["year", ' || n % 100 || ']'], '', '', 50, 1
    FROM generate_series(0, $1 / 50 - 1) AS n
), t AS (
    INSERT INTO penstock.tenants (name, model, chunks, terms)
    VALUES ('default', 'toy-1', $1, 3 * $1)
)
INSERT INTO penstock.term_counts SELECT lexeme, count(*) FROM c, unnest(c.lexemes) GROUP BY lexeme
"""
VECTORS = """
INSERT INTO penstock.vectors SELECT 1, 1, n::text, l2_normalize(ARRAY[
    sin(n), sin(2 * n), sin(3 * n), sin(5 * n), sin(7 * n), sin(11 * n), sin(13 * n), sin(17 * n)
]::real[]::vector) FROM generate_series(0, $1 - 1) AS n
"""


async def fill(mine: Psql) -> None:
    """Many chunks in two collections, and no statistics of them."""
    await fill_chunks(mine)
    await mine.execute("SELECT penstock.add_model_1($1, 8)", MODEL)
    await mine.connection.execute(mine.sql(VECTORS), CHUNKS, timeout=60)


async def fill_chunks(mine: Psql) -> None:
    for table in ("chunks", "documents", "vectors", "term_counts"):
        await mine.execute(f"ALTER TABLE penstock.{table} SET (autovacuum_enabled = off)")
    await mine.connection.execute(mine.sql(FILL), CHUNKS, timeout=60)


class Watched:
    """A connection that notes the plan of each statement before it runs it."""

    def __init__(self, connection: Any, explain: str = "EXPLAIN") -> None:
        self._connection = connection
        self._explain = explain
        self.plans: list[str] = []

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self._connection, name)
        if not name.startswith("fetch"):
            return plain

        async def explained(statement: str, *values: Any) -> Any:
            rows = await self._connection.fetch(f"{self._explain} {statement}", *values)
            self.plans.append("\n".join(row[0] for row in rows))
            return await plain(statement, *values)

        return explained

    async def find(self, url: str, what: Wanted) -> Findings:
        self.plans.clear()
        return await searching.find(Database(parse(url)), self, what)


async def test_search_of_many_chunks_goes_by_index_whatever_the_statistics_say() -> None:
    url = new_url()
    async with corpus_at(url) as corpus, psql(url) as mine:
        await find(corpus, "sun")  # plans made for empty tables
        await fill(mine)
        watched = Watched(mine.connection)
        query = vector_of("sun moon moon tide")
        terms = ["sun", "common3", "rare333", "unheard"]

        for statistics in (False, True):
            if statistics:
                await mine.execute("ANALYZE")
            for scope in (
                Scope(TENANT),
                Scope(TENANT, collections=["c1"]),
                Scope(TENANT, documents=["d1", "d7"]),
                Scope(TENANT, metadata={"year": 5}),
            ):
                found = await watched.find(url, wanted(scope, terms, query, limit=20))
                plans = "\n".join(watched.plans)
                assert not re.search(r"Seq Scan on (?!tenants|models)", plans), plans
                wide = scope.documents is None and not scope.metadata
                assert ("chunks_lexemes" in plans) or not wide
                assert ("vectors_near_1" in plans) == wide, plans
                assert ("chunks_hash" in plans) == wide, "from vectors to chunks, not from chunks"
                assert (len(found.text), len(found.vector)) == (20, 20)
                ids = {place.document.ref for place in found.places.values()}
                assert {one.collection for one in ids} <= set(scope.collections or ["c0", "c1"])
                assert {one.id for one in ids} <= set(scope.documents or {one.id for one in ids})

        best = (await corpus.find(wanted(Scope(TENANT), terms, None, limit=20))).text
        rows = await mine.fetch(
            "SELECT number FROM penstock.chunks WHERE terms LIKE '% rare333' ORDER BY number"
        )
        assert [hit.chunk for hit in best] == [number for (number,) in rows], "the rarest decides"

        by_index = (await corpus.find(wanted(Scope(TENANT), [], query, limit=50))).vector
        exact = await mine.fetch(
            "SELECT c.number, -(v.vector <#> $1::real[]::vector) AS score"
            " FROM penstock.vectors AS v JOIN penstock.chunks AS c USING (hash)"
            " ORDER BY score DESC LIMIT 50",
            floats(query),
        )
        same = {hit.chunk for hit in by_index} & {row["number"] for row in exact}
        assert len(same) >= 45
        assert by_index[0].score == pytest.approx(exact[0]["score"], abs=1e-6)


@pytest.mark.parametrize("few", [0, 2000], ids=["by the index", "one by one"])
async def test_order_is_that_of_bm25_over_all_chunks(
    monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Also of a word that more chunks hold than are scored, and some hold often."""
    monkeypatch.setattr(full_text, "FEW", few)
    monkeypatch.setattr(full_text, "SCORED", 100)
    dice = random.Random(7)
    words = ["sun", "sun", "moon", *(f"w{n}" for n in range(60))]
    chunks = [" ".join(dice.choices(words, k=dice.randrange(5, 60))) + f" c{n}" for n in range(400)]
    chunks[300] = "sun " * 6 + chunks[300]
    holding = Counter(term for text in chunks for term in set(text.split()))
    mean = sum(len(text.split()) for text in chunks) / len(chunks)
    async with corpus_at(new_url()) as corpus:
        await add(corpus, ref_of("a"), *chunks)
        for terms in (["sun"], ["sun", "moon"], ["w1", "w2", "sun"], ["w3"]):
            weights = {term: weight(holding[term], len(chunks)) for term in terms}
            scores = sorted((bm25(text.split(), weights, mean) for text in chunks), reverse=True)
            found = await corpus.find(wanted(Scope(TENANT), terms, None, limit=10))
            assert [hit.score for hit in found.text] == pytest.approx(scores[:10])


async def test_no_search_reads_more_chunks_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for words that all of them hold."""
    monkeypatch.setattr(full_text, "READ", 2500)
    url = new_url()
    async with corpus_at(url), psql(url) as mine:
        await fill_chunks(mine)
        watched = Watched(mine.connection, "EXPLAIN (ANALYZE, TIMING off)")
        for terms, read in ((["sun"], 2500), (["sun", "common1"], 2000), (["rare1"], 20)):
            found = await watched.find(url, wanted(Scope(TENANT), terms, None, limit=100))
            assert len(found.text) == min(100, read)
            lines = re.findall(
                r"Bitmap Heap Scan on chunks.*actual rows=([\d.]+) loops=(\d+)",
                "\n".join(watched.plans),
            )
            assert [round(float(rows) * int(loops)) for rows, loops in lines] == [
                pytest.approx(read, abs=3)
            ]


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
            *(sys.executable, "-m", "tests.support.publisher", url, name, "12"), cwd=ROOT
        )
        for name in ("ada", "bob")
    ]
    async with asyncio.timeout(100):
        assert [await process.wait() for process in processes] == [0, 0]
    async with corpus_at(url) as corpus, psql(url) as mine:
        assert await mine.fetchval("SELECT count(*) FROM penstock.models") == 1
        await counted(mine)
        found = await find(corpus, "sun", limit=100)
        assert Counter(texts(found)) == {"sun ada second": 8, "sun bob second": 8}
        assert "moon 2" in nearest(found)
        assert await mine.fetchval("SELECT count(*) FROM penstock.chunks") == 32, "no old versions"


async def test_uploads_of_one_document_at_once_leave_the_last_to_be_published() -> None:
    async with corpus_at(new_url()) as corpus:
        ref = ref_of("a")
        versions = await asyncio.gather(*(accept(corpus, ref, f"{n}") for n in range(8)))
        newest = max(versions, key=lambda version: version.generation)
        published = []
        for version in versions:
            if await corpus.stage(version, staged_of([f"sun {version.generation}"])):
                await embed(corpus, version)
                published.append((version, await corpus.publish(version, MODEL)))
        assert published == [(newest, True)]
        assert texts(await find(corpus, "sun")) == [f"sun {newest.generation}"]


async def test_search_while_publishing_sees_one_version_by_text_and_vector() -> None:
    async with corpus_at(new_url()) as corpus:
        ref, size = ref_of("a"), 7
        done = asyncio.Event()

        async def publishing() -> None:
            for version in range(25):
                await add(corpus, ref, *(f"sun v{version} c{n}" for n in range(size)))
            done.set()

        async def looking() -> set[str]:
            seen: set[str] = set()
            while not done.is_set():
                found = await find(corpus, "sun")
                versions = {text.split()[1] for text in (*texts(found), *nearest(found))}
                assert len(versions) <= 1
                assert len(found.text) == len(found.vector) == size * len(versions)
                seen |= versions
            return seen

        seen, _, _ = await asyncio.gather(looking(), looking(), publishing())
        assert len(seen) > 2


async def test_many_searches_and_uploads_share_the_queues_connections() -> None:
    url = new_url()
    queue = PostgresQueue(url)
    await queue.open()
    corpus = PostgresCorpus(queue.database, queue.pool)
    await corpus.open()
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
        await asyncio.gather(*(add(corpus, ref_of(f"d{n}"), f"sun {n}") for n in range(20)))
        found = await asyncio.gather(*(find(corpus, "sun", limit=30) for _ in range(40)))
        done.set()
        await watcher
    assert {len(one.vector) for one in found} == {20}
    assert 1 < most <= 4
    await corpus.close()
    with pytest.raises(QueueError, match="not open"):
        await find(corpus, "sun")
    await queue.close()


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
            async with corpus_at(url):
                pass
        queue = PostgresQueue(url)
        await queue.open()  # jobs do not need it
        await queue.close()
        superuser = parse(new_url()).dsn.rpartition("/")[0] + "/" + url.rpartition("/")[2]
        async with psql(superuser) as mine:
            await mine.execute("CREATE SCHEMA elsewhere")
            await mine.execute("CREATE EXTENSION vector SCHEMA elsewhere")
            with pytest.raises(QueueUnusable, match="GRANT USAGE ON SCHEMA elsewhere"):
                async with corpus_at(url):
                    pass
            await mine.execute("GRANT USAGE ON SCHEMA elsewhere TO PUBLIC")
        async with corpus_at(url) as corpus:
            await add(corpus, ref_of("a"), "sun")
            assert nearest(await find(corpus, "sun")) == ["sun"]


async def test_server_without_pgvector_is_a_clear_error() -> None:
    async with database_of("bare", extension_control_path="/nowhere") as url:
        with pytest.raises(QueueUnusable, match="this server does not have; install it"):
            async with corpus_at(url):
                pass


async def test_user_with_grants_only_can_bring_a_new_model() -> None:
    url = new_url()
    role = f"worker_{uuid.uuid4().hex[:12]}"
    async with corpus_at(url), psql(url) as mine:
        await mine.execute(f"CREATE ROLE {role} LOGIN")
        await mine.execute(f"GRANT USAGE ON SCHEMA {mine.schema} TO {role}")
        for what in ("TABLES", "SEQUENCES", "FUNCTIONS", "PROCEDURES"):
            await mine.execute(f"GRANT ALL ON ALL {what} IN SCHEMA {mine.schema} TO {role}")
        async with corpus_at(re.sub("//[^@]*@", f"//{role}@", url)) as corpus:
            await add(corpus, ref_of("a"), "sun")
            assert nearest(await find(corpus, "sun")) == ["sun"]
        await mine.execute(f"DROP OWNED BY {role}")
        await mine.execute(f"DROP ROLE {role}")


async def test_vectors_that_no_index_can_hold_are_refused() -> None:
    async with corpus_at(new_url()) as corpus:
        with pytest.raises(QueueError, match="at most 4000"):
            await corpus.put_vectors(TENANT, "huge", {"a": b"\0" * 4 * 5000})
        await corpus.put_vectors(TENANT, MODEL, {"a": vector_of("sun")})
        with pytest.raises(QueueError, match="3 dimensions, the others 8"):
            await corpus.put_vectors(TENANT, MODEL, {"b": b"\0" * 12})
        assert await corpus.model(TENANT) == MODEL
        assert await corpus.model("nobody") is None


async def test_counts_are_those_of_the_tenant_alone() -> None:
    async with corpus_at(new_url()) as corpus:
        await add(corpus, ref_of("a", tenant="ada"), "sun", "sun moon")
        await add(corpus, ref_of("a", tenant="bob"), "sun", "tide", "tide")
        told: list[tuple[dict[str, int], int]] = []

        def listen(frequencies: Mapping[str, int], total: int) -> list[str]:
            told.append((dict(frequencies), total))
            return ["sun"]

        for tenant in ("ada", "bob", "eve"):
            asked = Wanted(Scope(tenant), ["sun", "moon", "tide"], listen, None, MODEL, 10)
            await corpus.find(asked)
        assert told == [({"sun": 2, "moon": 1}, 2), ({"sun": 1, "tide": 2}, 3)]


async def test_nothing_is_left_in_a_session_that_a_pooler_gives_to_others() -> None:
    queue = PostgresQueue(new_url(), poll_only=True)
    await queue.open()
    corpus = PostgresCorpus(queue.database, queue.pool)
    await corpus.open()
    await add(corpus, ref_of("a"), "sun")
    assert nearest(await find(corpus, "sun")) == ["sun"]
    state = await queue.read(lambda connection: connection.fetchrow(SESSION))
    assert tuple(state) == (0, 0, '"$user", public', "on", "on", "0")
    await corpus.close()
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
        _ = Penstock(jobs, **where).corpus
    app = Penstock(jobs, blobs=str(tmp_path / "blobs"), **where)
    library = app.corpus
    async with app.running():
        document = await library.add("Penguins march. A zebra sleeps.", id="zoo")
        await library.wait(document.ref.id, timeout=60)
        result = await library.search("where is the zebra?")
        assert [passage.document.id for passage in result.passages] == ["zoo"]
        assert result.mode == "hybrid"
        await library.delete("zoo")
        assert (await library.search("where is the zebra?")).passages == []
    async with psql(url) as mine:
        assert await mine.fetchval("SELECT count(*) FROM penstock.chunks") == 0
        assert await mine.fetchval("SELECT count(*) FROM penstock.term_counts") == 0
