"""By which indexes documents in PostgreSQL is searched, how much is read, and in what order."""

from __future__ import annotations

import random
import re
from array import array
from collections import Counter
from typing import Any

import pytest

from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Database, numbered_statement
from penstock.adapters.postgres.documents import PostgresDocuments
from penstock.adapters.postgres.documents import search as searching
from penstock.adapters.postgres.documents import text as full_text
from penstock.adapters.postgres.documents.text import bm25
from penstock.ports.documents import DocumentQuery, Findings, Scope
from penstock.retrieval.query import weight
from tests.conformance.document_support import MODEL, TENANT, add, find, ref_of, vector_of, wanted
from tests.support.postgres import Psql, documents_at, new_url, psql

pytestmark = pytest.mark.usefixtures("patient_postgres")
CHUNKS = 8_000

FILL = """
WITH c AS (
    INSERT INTO penstock.chunks (tenant, document, generation, ordinal, text, start, "end", fresh,
        tokens, pages, section, hash, terms, script, length, lexemes)
    SELECT 1, n / 50 + 1, 1, n % 50, n::text, 0, 1, 0, 1, 'null', '[]', n::text,
        'sun common' || n % 10 || ' rare' || n % 400, 'latin', 3,
        array_to_tsvector(ARRAY['1 sun', '1 common' || n % 10, '1 rare' || n % 400])
    FROM generate_series(0, $1 - 1) AS n RETURNING document, lexemes
), d AS (
    INSERT INTO penstock.documents (tenant, collection, id, generation, live, state, stage,
        progress, message, title, size, source, metadata, facts, digest, blob, chunks, accepted_at)
    SELECT 'default', 'c' || n % 2, 'd' || n, 1, 1, 'completed', 'done', 1, '', '', 1, '', '{}',
        ARRAY['["year", ' || n % 100 || ']'], '', '', 50, 1
    FROM generate_series(0, $1 / 50 - 1) AS n
), t AS (
    INSERT INTO penstock.tenants (name, chunks, terms)
    VALUES ('default', $1, 3 * $1)
)
INSERT INTO penstock.term_counts SELECT lexeme, count(*) FROM c, unnest(c.lexemes) GROUP BY lexeme
"""
NORMAL = "sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())"
VECTORS = f"""
INSERT INTO penstock.vectors SELECT 1, 1, n::text, l2_normalize(ARRAY[
    {", ".join([NORMAL] * 8)}
]::real[]::vector) FROM generate_series(0, $1 - 1) AS n
"""
"""In all directions alike. Of vectors on a line that winds through space the index finds only those
near some stretch of it, now and then all of them on the wrong one."""
RECALL = 0.9
"""Of ten questions; over twelve indexes never less than 0.99. By chance it would be 0.006."""


async def fill(mine: Psql) -> None:
    """Many chunks in two collections, and no statistics of them."""
    await fill_chunks(mine)
    await mine.execute("SELECT penstock.add_model_1($1, 8)", MODEL)
    await mine.execute("SELECT setseed(0.5)")
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
        self.ef_search = ""

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self._connection, name)
        if not name.startswith("fetch"):
            return plain

        async def explained(statement: str, *values: Any, timeout: float | None = None) -> Any:
            rows = await self._connection.fetch(f"{self._explain} {statement}", *values)
            self.plans.append("\n".join(row[0] for row in rows))
            self.ef_search = await self._connection.fetchval("SHOW hnsw.ef_search")
            return await plain(statement, *values, timeout=timeout)

        return explained

    async def find(self, url: str, what: DocumentQuery) -> Findings:
        self.plans.clear()
        return await searching.find(Database(parse(url)), self, what)


async def share_found(documents: PostgresDocuments, mine: Psql, question: list[float]) -> float:
    """How many of the 50 nearest to a question the index finds, each with its exact score."""
    query = array("f", question)
    by_index = (await documents.find(wanted(Scope(TENANT), [], query.tobytes(), limit=50))).vector
    exact = await mine.fetch(
        "SELECT c.number, -(v.vector <#> $1::real[]::vector) AS score"
        " FROM penstock.vectors AS v JOIN penstock.chunks AS c USING (hash)"
        " ORDER BY score DESC LIMIT 50",
        query.tolist(),
    )
    scores = {row["number"]: row["score"] for row in exact}
    same = [hit for hit in by_index if hit.chunk in scores]
    for hit in same:
        assert hit.score == pytest.approx(scores[hit.chunk], abs=1e-5)
    return len(same) / len(scores)


async def test_search_of_many_chunks_goes_by_index_whatever_the_statistics_say() -> None:
    url = new_url()
    async with documents_at(url) as documents, psql(url) as mine:
        await find(documents, "sun")  # plans made for empty tables
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
                assert watched.ef_search == str(searching.EF_SEARCH)
                wide = scope.documents is None and not scope.metadata
                assert ("chunks_lexemes" in plans) or not wide
                assert ("vectors_near_1" in plans) == wide, plans
                assert ("chunks_hash" in plans) == wide, "from vectors to chunks, not from chunks"
                assert (len(found.text), len(found.vector)) == (20, 20)
                ids = {place.document.ref for place in found.places.values()}
                assert {one.collection for one in ids} <= set(scope.collections or ["c0", "c1"])
                assert {one.id for one in ids} <= set(scope.documents or {one.id for one in ids})

        best = (await documents.find(wanted(Scope(TENANT), terms, None, limit=20))).text
        rows = await mine.fetch(
            "SELECT number FROM penstock.chunks WHERE terms LIKE '% rare333' ORDER BY number"
        )
        assert [hit.chunk for hit in best] == [number for (number,) in rows], "the rarest decides"

        dice = random.Random(7)
        questions = [[dice.gauss(0, 1) for _ in range(8)] for _ in range(10)]
        recall = [await share_found(documents, mine, question) for question in questions]
        assert sum(recall) / len(recall) >= RECALL, "an index of this kind may miss a few"

        await mine.execute("SET enable_seqscan = off")  # as in every transaction that writes
        look = mine.sql(numbered_statement("look_at_vectors", "penstock")[0])
        rows = await mine.fetch(f"EXPLAIN {look}", 1, 1, "5", 1000)
        plan = "\n".join(row[0] for row in rows)
        assert not re.search(r"Seq Scan on (?!models|serving)", plan), plan
        assert "vectors_pkey" in plan
        assert "chunks_hash" in plan
        assert "unused_vectors_pkey" in plan
        assert {row["used"] for row in await mine.fetch(look, 1, 1, "5", 1000)} == {True}


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
    async with documents_at(new_url()) as documents:
        await add(documents, ref_of("a"), *chunks)
        for terms in (["sun"], ["sun", "moon"], ["w1", "w2", "sun"], ["w3"]):
            weights = {term: weight(holding[term], len(chunks)) for term in terms}
            scores = sorted((bm25(text.split(), weights, mean) for text in chunks), reverse=True)
            found = await documents.find(wanted(Scope(TENANT), terms, None, limit=10))
            assert [hit.score for hit in found.text] == pytest.approx(scores[:10])


async def test_no_search_reads_more_chunks_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for words that all of them hold."""
    monkeypatch.setattr(full_text, "READ", 2500)
    url = new_url()
    async with documents_at(url), psql(url) as mine:
        await fill_chunks(mine)
        watched = Watched(mine.connection, "EXPLAIN (ANALYZE, TIMING off)")
        for terms, read in ((["sun"], 2500), (["sun", "common1"], CHUNKS // 10), (["rare1"], 20)):
            found = await watched.find(url, wanted(Scope(TENANT), terms, None, limit=100))
            assert len(found.text) == min(100, read)
            lines = re.findall(
                r"Bitmap Heap Scan on chunks.*actual rows=([\d.]+) loops=(\d+)",
                "\n".join(watched.plans),
            )
            assert [round(float(rows) * int(loops)) for rows, loops in lines] == [
                pytest.approx(read, abs=3)
            ]
