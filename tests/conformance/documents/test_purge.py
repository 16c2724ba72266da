"""What is left of texts that are gone and of models that were replaced, on every store."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.sql.documents import DocumentStore
from penstock.errors import QueueError
from penstock.model.document import DocumentState
from penstock.ports.documents import Version
from tests.conformance.document_support import (
    DOCUMENT_STORES,
    MODEL,
    TENANT,
    accept,
    add,
    embed,
    find,
    nearest,
    publish,
    ref_of,
    staged_of,
    vector_of,
)
from tests.support.waiting import until

LONG, SHORT = 3600.0, 0.3


@pytest.fixture(params=sorted(DOCUMENT_STORES))
async def documents(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with DOCUMENT_STORES[request.param](tmp_path) as documents:
        yield documents


async def purged(documents: DocumentStore, keep_seconds: float, limit: int = 100) -> int:
    """Once through all vectors; how many were deleted."""
    deleted, after = 0, None
    while True:
        step = await documents.purge(after=after, keep_seconds=keep_seconds, limit=limit)
        deleted, after = deleted + step.deleted, step.after
        if after is None:
            return deleted


async def missing(
    documents: DocumentStore, *texts: str, model: str = MODEL, **where: Any
) -> list[str]:
    """Which of these texts would have to be embedded again."""
    version = await accept(documents, ref_of("probe", **where), "|".join(texts))
    await documents.stage(version, staged_of(texts))
    wanted = await documents.to_embed(version, model)
    assert wanted is not None
    await documents.delete(version.ref)
    return [one.text for one in wanted]


async def test_vectors_of_a_deleted_document_are_kept_for_a_while_and_then_deleted(
    documents: DocumentStore,
) -> None:
    await add(documents, ref_of("a"), "sun", "moon")
    await add(documents, ref_of("b"), "moon")
    await documents.delete(ref_of("a"))
    assert await purged(documents, LONG) == 0
    assert await missing(documents, "sun", "moon") == [], (
        "what comes back soon is not embedded again"
    )
    assert await purged(documents, 0.0) == 1
    assert await missing(documents, "sun", "moon") == ["sun"], "the other one is still needed"
    assert await purged(documents, 0.0) == 0
    assert nearest(await find(documents, "moon")) == ["moon"]


async def test_time_counts_from_when_nothing_needed_them_and_anew_after_a_use(
    documents: DocumentStore,
) -> None:
    await add(documents, ref_of("a"), "sun")
    await documents.delete(ref_of("a"))
    assert await purged(documents, SHORT) == 0, "noted"
    noted = time.monotonic()
    await add(documents, ref_of("a"), "sun")
    assert await purged(documents, 0.0) == 0, "it is needed again, whatever was noted"
    await until(lambda: time.monotonic() > noted + SHORT, "the time to pass")
    await documents.delete(ref_of("a"))
    assert await purged(documents, SHORT) == 0, "noted anew"

    async def gone() -> bool:
        return await purged(documents, SHORT) == 1

    await until(gone, "it to be deleted after its time")


async def test_vectors_of_a_replaced_version_go_and_those_the_new_one_shares_stay(
    documents: DocumentStore,
) -> None:
    await add(documents, ref_of("a"), "sun", "moon")
    newer = await accept(documents, ref_of("a"), "new")
    assert await purged(documents, 0.0) == 0, "it is found until the new one is published"
    assert await publish(documents, newer, "moon", "rain")
    assert await purged(documents, 0.0) == 1
    assert await missing(documents, "sun", "moon", "rain") == ["sun"]
    assert await documents.text(ref_of("a")) == "moonrain"


@pytest.mark.parametrize("ended", [False, True], ids=["staged", "failed"])
async def test_what_is_embedded_of_a_document_under_way_is_its_checkpoint_and_stays(
    documents: DocumentStore, ended: bool
) -> None:
    version = await accept(documents, ref_of("a"))
    await documents.stage(version, staged_of(["sun", "moon"]))
    await embed(documents, version)
    if ended:
        await documents.mark(version, state=DocumentState.FAILED, phase="embed", progress=0.5)
    assert await purged(documents, 0.0) == 0
    assert await documents.to_embed(version, MODEL) == []
    await documents.delete(version.ref)
    assert await purged(documents, 0.0) == 2


async def test_vectors_that_come_after_the_delete_are_deleted_too(documents: DocumentStore) -> None:
    """A job may be waiting for the embedder when its document is deleted."""
    version = await accept(documents, ref_of("a"))
    await documents.stage(version, staged_of(["sun"]))
    wanted = await documents.to_embed(version, MODEL)
    assert wanted is not None
    await documents.delete(version.ref)
    assert await purged(documents, 0.0) == 0
    await documents.put_vectors(TENANT, MODEL, {wanted[0].hash: vector_of("sun")})
    assert await purged(documents, 0.0) == 1


async def test_only_the_tenant_who_has_a_text_keeps_its_vector(documents: DocumentStore) -> None:
    await add(documents, ref_of("a", tenant="ada"), "sun")
    await add(documents, ref_of("a", tenant="bob"), "sun")
    await documents.delete(ref_of("a", tenant="ada"))
    assert await purged(documents, 0.0) == 1
    assert await missing(documents, "sun", tenant="ada") == ["sun"]
    assert await missing(documents, "sun", tenant="bob") == []


async def test_vectors_of_a_former_model_are_deleted_once_another_serves(
    documents: DocumentStore,
) -> None:
    await add(documents, ref_of("a"), "sun", "moon")
    await documents.want("new")
    for tenant, one in await documents.to_reembed("new", 10):
        await documents.put_vectors(tenant, "new", {one.hash: vector_of(one.text)})
    assert await purged(documents, 0.0) == 0, "both are needed: one serves, one is to"
    assert await documents.serve("new")
    assert await purged(documents, LONG) == 0
    await documents.want(MODEL)
    assert await documents.to_reembed(MODEL, 10) == [], "to go back soon costs nothing"
    await documents.want("new")
    assert await purged(documents, 0.0) == 2
    assert len(nearest(await find(documents, "sun", model="new"))) == 2
    await documents.want(MODEL)
    assert len(await documents.to_reembed(MODEL, 10)) == 2
    assert not await documents.serve(MODEL)


async def test_each_step_looks_at_a_bounded_number(documents: DocumentStore) -> None:
    await add(documents, ref_of("a"), *(f"sun {n}" for n in range(7)))
    await documents.delete(ref_of("a"))
    first = await documents.purge(after=None, keep_seconds=0.0, limit=3)
    assert first.deleted == 3
    assert first.after is not None
    assert (await documents.purge(after=first.after, keep_seconds=0.0, limit=3)).deleted == 3
    assert await purged(documents, 0.0, limit=3) == 1


async def test_nothing_of_a_deleted_text_is_left_but_its_vector(documents: DocumentStore) -> None:
    live = await add(documents, ref_of("a"), "sun")
    newer = await accept(documents, ref_of("a"), "new")
    await documents.stage(newer, staged_of(["moon"]))
    await documents.delete(live.ref)
    assert await documents.text(live.ref) is None
    assert await documents.chunks(live.ref) == []
    assert not await documents.stage(newer, staged_of(["moon"])), "nor does it come back"
    again = await accept(documents, ref_of("a"), "again")
    assert await documents.to_embed(again, MODEL) == []
    assert await documents.to_embed(Version(newer.ref, newer.generation), MODEL) is None


async def test_vectors_of_one_model_have_one_length(documents: DocumentStore) -> None:
    await add(documents, ref_of("a"), "sun")
    with pytest.raises(QueueError, match="3 dimensions, the others 8"):
        await documents.put_vectors("another", MODEL, {"b": b"\0" * 12})
