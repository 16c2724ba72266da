"""A document is deleted or replaced in every state there is, on every store: the newest wins."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.adapters.sql.documents import DocumentStore
from penstock.model.document import DocumentState
from penstock.ports.documents import Version
from tests.conformance.document_support import (
    DOCUMENT_STORES,
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


@pytest.fixture(params=sorted(DOCUMENT_STORES))
async def documents(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with DOCUMENT_STORES[request.param](tmp_path) as documents:
        yield documents


async def to_state(documents: DocumentStore, state: str) -> Version:
    """A document that has come as far as `state`."""
    if state == "published":
        return await add(documents, ref_of(state), "sun", "moon")
    version = await accept(documents, ref_of(state))
    if state == "replacing":
        assert await publish(documents, version, "tide")
        version = await accept(documents, ref_of(state), "new")
    if state != "accepted":
        await documents.mark(version, state=DocumentState.PROCESSING, phase="parse", progress=0.1)
    if state in ("staged", "embedding", "failed", "replacing"):
        await documents.stage(version, staged_of(["sun", "moon"]))
    if state in ("embedding", "failed", "replacing"):
        missing = await documents.to_embed(version, MODEL)
        assert missing is not None
        await documents.put_vectors(TENANT, MODEL, {missing[0].hash: vector_of("sun")})
    if state == "failed":
        await documents.mark(version, state=DocumentState.FAILED, phase="embed", progress=0.5)
    return version


STATES = ("accepted", "parsing", "staged", "embedding", "replacing", "published", "failed")


@pytest.mark.parametrize("state", STATES)
async def test_document_can_be_deleted_in_any_state_and_nothing_late_brings_it_back(
    documents: DocumentStore, state: str
) -> None:
    version = await to_state(documents, state)
    assert await documents.delete(version.ref) is not None
    assert await documents.get(version.ref) is None
    assert await documents.chunks(version.ref) == []
    assert await documents.delete(version.ref) is None
    assert not await documents.stage(version, staged_of(["sun"]))
    assert await documents.to_embed(version, MODEL) is None
    assert not await documents.publish(version, MODEL)
    for ended in DocumentState:
        assert not await documents.mark(version, state=ended, phase="embed", progress=0.5)
    found = await find(documents, "sun moon tide")
    assert texts(found) == nearest(found) == []
    again = await accept(documents, version.ref, "again")
    assert await publish(documents, again, "rain")
    found = await find(documents, "sun moon tide rain")
    assert texts(found) == nearest(found) == ["rain"]


@pytest.mark.parametrize("state", STATES)
async def test_newest_version_wins_in_whatever_state_the_one_before_is(
    documents: DocumentStore, state: str
) -> None:
    slow = await to_state(documents, state)
    fast = await accept(documents, slow.ref, "fast")
    assert await publish(documents, fast, "rain")
    assert not await documents.stage(slow, staged_of(["sun"]))
    assert not await documents.publish(slow, MODEL)
    assert not await documents.mark(slow, state=DocumentState.FAILED, phase="embed", progress=0.5)
    found = await find(documents, "sun moon tide rain")
    assert texts(found) == nearest(found) == ["rain"]
