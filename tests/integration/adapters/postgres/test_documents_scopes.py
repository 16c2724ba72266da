"""Many tenants in one PostgreSQL: who asks for little of it all still gets what is asked for."""

from __future__ import annotations

import pytest

from penstock.adapters.postgres.documents import PostgresDocuments, vectors
from penstock.adapters.postgres.documents import search as searching
from penstock.adapters.postgres.documents import text as full_text
from penstock.ports.documents import Findings, Scope
from tests.conformance.document_support import (
    MODEL,
    add,
    nearest,
    ref_of,
    vector_of,
    wanted,
)
from tests.support.postgres import Psql, documents_at, new_url, psql

pytestmark = pytest.mark.usefixtures("patient_postgres")
TENANTS, EACH = 20, 100
"""So many have chunks that are all nearer to the question than those of who asks."""
FAR = 300
"""Chunks of the tenant who asks: an eighth of all."""
CROWD = """
WITH t AS (
    INSERT INTO penstock.tenants (name, chunks, terms)
    SELECT 't' || n, $2, $2 FROM generate_series(1, $1) AS n RETURNING number, name
), d AS (
    INSERT INTO penstock.documents (tenant, collection, id, generation, live, state, stage,
        progress, message, title, size, source, metadata, facts, digest, blob, chunks, accepted_at)
    SELECT name, 'default', 'a', 1, 1, 'completed', 'done', 1, '', '', 1, '', '{}', '{}', '', '',
        $2, 1 FROM t RETURNING number, tenant
), c AS (
    INSERT INTO penstock.chunks (tenant, document, generation, ordinal, text, start, "end", fresh,
        tokens, pages, section, hash, terms, script, length, lexemes)
    SELECT t.number, d.number, 1, n, 'sun', 0, 1, 0, 1, 'null', '[]', t.number || '-' || n, 'sun',
        'latin', 1, array_to_tsvector(ARRAY[t.number || ' sun'])
    FROM t JOIN d ON d.tenant = t.name CROSS JOIN generate_series(0, $2 - 1) AS n
    RETURNING tenant, hash, ordinal
), l AS (
    INSERT INTO penstock.term_counts SELECT number || ' sun', $2 FROM t
)
INSERT INTO penstock.vectors
SELECT tenant, 1, hash, l2_normalize(ARRAY[1, sin(tenant * 1000 + ordinal) / 9,
    cos(tenant + ordinal) / 9, 0.001, 0.001, 0.001, 0.001, 0.001]::real[]::vector) FROM c
"""
"""Tenants whose every chunk is about the sun."""


async def crowd(mine: Psql) -> None:
    await mine.execute("SELECT penstock.add_model_1($1, 8)", MODEL)
    await mine.connection.execute(mine.sql(CROWD), TENANTS, EACH, timeout=60)


async def of_the_moon(documents: PostgresDocuments) -> None:
    """A tenant with nothing about the sun, in documents of three years."""
    for year in (2024, 2025, 2026):
        texts = [f"moon {'tide ' * (n % 7)}{year} {n}" for n in range(FAR // 3)]
        await add(documents, ref_of(f"of {year}", "ada"), *texts, metadata={"year": year})


def exact(query: str, chunks: int, year: int | None = None) -> list[float]:
    years = (2024, 2025, 2026) if year is None else (year,)
    asked = memoryview(vector_of(query)).cast("f")
    scores = [
        sum(a * b for a, b in zip(asked, memoryview(vector_of(text)).cast("f"), strict=True))
        for one in years
        for text in (f"moon {'tide ' * (n % 7)}{one} {n}" for n in range(FAR // 3))
    ]
    return sorted(scores, reverse=True)[:chunks]


@pytest.mark.parametrize("year", [None, 2025])
async def test_tenant_whose_chunks_are_further_than_everybody_elses_gets_as_many_as_asked_for(
    monkeypatch: pytest.MonkeyPatch, year: int | None
) -> None:
    """The index goes by distance and knows no tenant: it gives up long before it comes to them."""
    monkeypatch.setattr(vectors, "FEW", 50)
    monkeypatch.setattr(vectors, "STEP_COST", 0)  # as in a document store of a million chunks
    monkeypatch.setattr(searching, "SCANNED", 200)
    url = new_url()
    async with documents_at(url) as documents, psql(url) as mine:
        await crowd(mine)
        await of_the_moon(documents)
        scope = Scope("ada", metadata={} if year is None else {"year": year})
        found = await documents.find(wanted(scope, [], vector_of("sun"), limit=20))
        assert len(found.vector) == 20
        scores = [hit.score for hit in found.vector]
        assert scores == pytest.approx(exact("sun", 20, year), abs=1e-5)
        assert {place.document.ref.tenant for place in found.places.values()} == {"ada"}


async def test_each_of_many_tenants_finds_what_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the figures as they are, whichever way they choose."""
    url = new_url()
    async with documents_at(url) as documents, psql(url) as mine:
        await crowd(mine)
        await of_the_moon(documents)
        for few in (vectors.FEW, 0):
            monkeypatch.setattr(vectors, "FEW", few)
            for tenant in ("ada", "t1", f"t{TENANTS}"):
                found = await documents.find(
                    wanted(Scope(tenant), ["sun"], vector_of("sun"), limit=50)
                )
                assert len(found.vector) == 50
                assert len(found.text) == (0 if tenant == "ada" else 50)
                owners = {place.document.ref.tenant for place in found.places.values()}
                assert owners == {tenant}


async def test_filter_finds_what_holds_only_frequent_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere rarer words of the question would be read first, and nothing else."""
    monkeypatch.setattr(full_text, "READ", 100)
    monkeypatch.setattr(full_text, "FEW", 5)
    async with documents_at(new_url()) as documents:
        crowded = [f"sun leaf w{n}" for n in range(80)] + [f"sun root r{n}" for n in range(80)]
        await add(documents, ref_of("much"), *crowded, metadata={"year": 2025})
        few = [f"sun x{n}" for n in range(30)]
        await add(documents, ref_of("little"), *few, metadata={"year": 2024})

        async def found(terms: list[str], **scope: object) -> Findings:
            return await documents.find(wanted(Scope("default", **scope), terms, None, limit=40))  # type: ignore[arg-type]

        for terms in (["leaf", "sun"], ["sun"]):
            assert len((await found(terms, metadata={"year": 2024})).text) == 30
        assert len((await found(["leaf", "sun"])).text) == 40


async def test_vectors_of_what_is_gone_do_not_crowd_out_what_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They stay in the index for a while, and are nearest."""
    monkeypatch.setattr(vectors, "FEW", 5)
    monkeypatch.setattr(vectors, "STEP_COST", 0)
    monkeypatch.setattr(searching, "SCANNED", 100)
    async with documents_at(new_url()) as documents:
        gone = [f"sun {'leaf ' * (n % 9)}{n}" for n in range(400)]
        await add(documents, ref_of("a"), *gone)
        await documents.delete(ref_of("a"))
        there = [f"moon {n}" for n in range(30)]
        await add(documents, ref_of("b"), *there)
        found = await documents.find(wanted(Scope("default"), [], vector_of("sun"), limit=20))
        assert len(nearest(found)) == 20
        assert set(nearest(found)) <= set(there)
