"""PostgreSQL takes the same terms, and finds the same chunks by them."""

from __future__ import annotations

from collections import Counter

import asyncpg
import pytest

from penstock.retrieval.query import query_terms, weigh
from penstock.retrieval.terms import index_terms
from tests.support.database_servers import postgres_url

TEXTS = [
    "the variable foo_bar, since v1.2.3",
    "COVID-19: c++ & c# | !'quoted' \\back\\slash \"double\" :* <->",
    "東京都庁の場所と暗号",
    "물은 차갑다, 서울에서",
    "un café à Paris; DROP TABLE chunks; --",
    "x" * 5000,
    "नमस्ते दुनिया ภาษาไทย",
]


@pytest.mark.parametrize(
    "question",
    [
        *TEXTS,
        "foo_bar",
        "v1.2.3",
        "c++",
        "' | 'a",
        "a\\",
        "都庁",
        "물이",
        "& | ! ( )",
        "cafe",
        "दुनिया",
    ],
)
async def test_postgres_finds_what_shares_a_term(question: str) -> None:
    chunks = [index_terms(text) for text in TEXTS]
    holding = Counter(term for terms in chunks for term in set(terms))
    query = query_terms(question)
    asked = weigh(query, holding, len(TEXTS)).asked
    expression = " | ".join(f"'{term}'" for term in asked) or None
    expected = {at for at, terms in enumerate(chunks) if set(terms) & set(query.terms)}
    if expression is None:
        assert not expected
        return
    connection = await asyncpg.connect(postgres_url())
    try:
        found = {
            at
            for at, terms in enumerate(chunks)
            if await connection.fetchval(
                "select array_to_tsvector($1::text[]) @@ $2::text::tsquery",
                sorted(set(terms)),
                expression,
            )
        }
    finally:
        await connection.close()
    assert found == expected
