"""What a search leaves out, on every store: what has nothing to do with the question."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.adapters.sql.documents import DocumentStore
from penstock.errors import EmbedderError
from penstock.ports.documents import Scope
from penstock.retrieval.relevance import Cutoff
from penstock.retrieval.search import SearchResult, search
from tests.conformance.document_support import (
    DOCUMENT_STORES,
    MODEL,
    TENANT,
    add,
    ref_of,
    vector_of,
)

NEAR = 0.9
"""The cosine of two texts that share a word of the toy model; others have about a third."""


@pytest.fixture(params=sorted(DOCUMENT_STORES))
async def documents(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with DOCUMENT_STORES[request.param](tmp_path) as documents:
        for text in ("rain fell in spring", "the moon and the tide in a bay", "snow in a valley"):
            await add(documents, ref_of(text.split()[0]), text)
        yield documents


async def ask(
    documents: DocumentStore, question: str, cutoff: Cutoff | None = None, *, vectors: bool = True
) -> SearchResult:
    async def embed(text: str) -> bytes:
        if not vectors:
            raise EmbedderError("down")
        return vector_of(text)

    cutoff = cutoff or Cutoff(similarity=NEAR)
    return await search(
        documents.find, question, Scope(TENANT), model=MODEL, embed=embed, cutoff=cutoff
    )


def found(result: SearchResult) -> list[str]:
    return [passage.document for passage in result.passages]


@pytest.mark.parametrize("vectors", [True, False])
async def test_nothing_relevant_means_nothing_found(
    documents: DocumentStore, vectors: bool
) -> None:
    result = await ask(documents, "how do I file a tax return in april", vectors=vectors)
    assert found(result) == []
    assert found(await ask(documents, "how much rain in spring", vectors=vectors)) == ["rain"]


async def test_what_only_its_vector_finds_is_relevant_where_that_is_near(
    documents: DocumentStore,
) -> None:
    async def embed(text: str) -> bytes:
        return vector_of("tide moon")

    near = Cutoff(similarity=NEAR, floor=None)  # the range of these vectors is not known
    result = await search(
        documents.find, "sea", Scope(TENANT), model=MODEL, embed=embed, cutoff=near
    )
    assert found(result) == ["the"]


async def test_cutoff_can_be_switched_off(documents: DocumentStore) -> None:
    result = await ask(documents, "tax return", Cutoff(coverage=0.0))
    assert len(found(result)) == 3
    assert len(found(await ask(documents, "tax return", Cutoff(similarity=None)))) == 3


async def test_stop_words_neither_match_alone_nor_are_marked(documents: DocumentStore) -> None:
    result = await ask(documents, "How much rain fell in the spring?", vectors=False)
    (passage,) = result.passages
    marked = [passage.snippet[start:end] for start, end in passage.marks]
    assert marked == ["rain", "fell", "spring"]
    assert found(await ask(documents, "what is in a", vectors=False)) == []
