"""A document is deleted or replaced in every state there is, on every corpus: the newest wins."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.model.document import DocumentState
from penstock.ports.documents import DocumentStore, Version
from tests.conformance.corpus_support import (
    CORPORA,
    MODEL,
    TENANT,
    accept,
    add,
    find,
    nearest,
    publish,
    ref_of,
    staged_of,
    texts,
    vector_of,
)


@pytest.fixture(params=sorted(CORPORA))
async def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with CORPORA[request.param](tmp_path) as corpus:
        yield corpus


async def to_state(corpus: DocumentStore, state: str) -> Version:
    """A document that has come as far as `state`."""
    if state == "published":
        return await add(corpus, ref_of(state), "sun", "moon")
    version = await accept(corpus, ref_of(state))
    if state == "replacing":
        assert await publish(corpus, version, "tide")
        version = await accept(corpus, ref_of(state), "new")
    if state != "accepted":
        await corpus.mark(version, state=DocumentState.PROCESSING, stage="parse", progress=0.1)
    if state in ("staged", "embedding", "failed", "replacing"):
        await corpus.stage(version, staged_of(["sun", "moon"]))
    if state in ("embedding", "failed", "replacing"):
        missing = await corpus.to_embed(version, MODEL)
        assert missing is not None
        await corpus.put_vectors(TENANT, MODEL, {missing[0].hash: vector_of("sun")})
    if state == "failed":
        await corpus.mark(version, state=DocumentState.FAILED, stage="embed", progress=0.5)
    return version


STATES = ("accepted", "parsing", "staged", "embedding", "replacing", "published", "failed")


@pytest.mark.parametrize("state", STATES)
async def test_document_can_be_deleted_in_any_state_and_nothing_late_brings_it_back(
    corpus: DocumentStore, state: str
) -> None:
    version = await to_state(corpus, state)
    assert await corpus.delete(version.ref) is not None
    assert await corpus.get(version.ref) is None
    assert await corpus.chunks(version.ref) == []
    assert await corpus.delete(version.ref) is None
    assert not await corpus.stage(version, staged_of(["sun"]))
    assert await corpus.to_embed(version, MODEL) is None
    assert not await corpus.publish(version, MODEL)
    for ended in DocumentState:
        assert not await corpus.mark(version, state=ended, stage="embed", progress=0.5)
    found = await find(corpus, "sun moon tide")
    assert texts(found) == nearest(found) == []
    again = await accept(corpus, version.ref, "again")
    assert await publish(corpus, again, "rain")
    found = await find(corpus, "sun moon tide rain")
    assert texts(found) == nearest(found) == ["rain"]


@pytest.mark.parametrize("state", STATES)
async def test_newest_version_wins_in_whatever_state_the_one_before_is(
    corpus: DocumentStore, state: str
) -> None:
    slow = await to_state(corpus, state)
    fast = await accept(corpus, slow.ref, "fast")
    assert await publish(corpus, fast, "rain")
    assert not await corpus.stage(slow, staged_of(["sun"]))
    assert not await corpus.publish(slow, MODEL)
    assert not await corpus.mark(slow, state=DocumentState.FAILED, stage="embed", progress=0.5)
    found = await find(corpus, "sun moon tide rain")
    assert texts(found) == nearest(found) == ["rain"]
