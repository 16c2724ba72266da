"""What is left of texts that are gone and of models that were replaced, on every corpus."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import QueueError
from penstock.model.document import DocumentState
from penstock.ports.documents import DocumentStore, Version
from tests.conformance.corpus_support import (
    CORPORA,
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


@pytest.fixture(params=sorted(CORPORA))
async def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with CORPORA[request.param](tmp_path) as corpus:
        yield corpus


async def purged(corpus: DocumentStore, keep_seconds: float, limit: int = 100) -> int:
    """Once through all vectors; how many were deleted."""
    deleted, after = 0, None
    while True:
        step = await corpus.purge(after=after, keep_seconds=keep_seconds, limit=limit)
        deleted, after = deleted + step.deleted, step.after
        if after is None:
            return deleted


async def missing(
    corpus: DocumentStore, *texts: str, model: str = MODEL, **where: Any
) -> list[str]:
    """Which of these texts would have to be embedded again."""
    version = await accept(corpus, ref_of("probe", **where), "|".join(texts))
    await corpus.stage(version, staged_of(texts))
    wanted = await corpus.to_embed(version, model)
    assert wanted is not None
    await corpus.delete(version.ref)
    return [one.text for one in wanted]


async def test_vectors_of_a_deleted_document_are_kept_for_a_while_and_then_deleted(
    corpus: DocumentStore,
) -> None:
    await add(corpus, ref_of("a"), "sun", "moon")
    await add(corpus, ref_of("b"), "moon")
    await corpus.delete(ref_of("a"))
    assert await purged(corpus, LONG) == 0
    assert await missing(corpus, "sun", "moon") == [], "what comes back soon is not embedded again"
    assert await purged(corpus, 0.0) == 1
    assert await missing(corpus, "sun", "moon") == ["sun"], "the other one is still needed"
    assert await purged(corpus, 0.0) == 0
    assert nearest(await find(corpus, "moon")) == ["moon"]


async def test_time_counts_from_when_nothing_needed_them_and_anew_after_a_use(
    corpus: DocumentStore,
) -> None:
    await add(corpus, ref_of("a"), "sun")
    await corpus.delete(ref_of("a"))
    assert await purged(corpus, SHORT) == 0, "noted"
    noted = time.monotonic()
    await add(corpus, ref_of("a"), "sun")
    assert await purged(corpus, 0.0) == 0, "it is needed again, whatever was noted"
    await until(lambda: time.monotonic() > noted + SHORT, "the time to pass")
    await corpus.delete(ref_of("a"))
    assert await purged(corpus, SHORT) == 0, "noted anew"

    async def gone() -> bool:
        return await purged(corpus, SHORT) == 1

    await until(gone, "it to be deleted after its time")


async def test_vectors_of_a_replaced_version_go_and_those_the_new_one_shares_stay(
    corpus: DocumentStore,
) -> None:
    await add(corpus, ref_of("a"), "sun", "moon")
    newer = await accept(corpus, ref_of("a"), "new")
    assert await purged(corpus, 0.0) == 0, "it is found until the new one is published"
    assert await publish(corpus, newer, "moon", "rain")
    assert await purged(corpus, 0.0) == 1
    assert await missing(corpus, "sun", "moon", "rain") == ["sun"]
    assert await corpus.text(ref_of("a")) == "moonrain"


@pytest.mark.parametrize("ended", [False, True], ids=["staged", "failed"])
async def test_what_is_embedded_of_a_document_under_way_is_its_checkpoint_and_stays(
    corpus: DocumentStore, ended: bool
) -> None:
    version = await accept(corpus, ref_of("a"))
    await corpus.stage(version, staged_of(["sun", "moon"]))
    await embed(corpus, version)
    if ended:
        await corpus.mark(version, state=DocumentState.FAILED, stage="embed", progress=0.5)
    assert await purged(corpus, 0.0) == 0
    assert await corpus.to_embed(version, MODEL) == []
    await corpus.delete(version.ref)
    assert await purged(corpus, 0.0) == 2


async def test_vectors_that_come_after_the_delete_are_deleted_too(corpus: DocumentStore) -> None:
    """A job may be waiting for the embedder when its document is deleted."""
    version = await accept(corpus, ref_of("a"))
    await corpus.stage(version, staged_of(["sun"]))
    wanted = await corpus.to_embed(version, MODEL)
    assert wanted is not None
    await corpus.delete(version.ref)
    assert await purged(corpus, 0.0) == 0
    await corpus.put_vectors(TENANT, MODEL, {wanted[0].hash: vector_of("sun")})
    assert await purged(corpus, 0.0) == 1


async def test_only_the_tenant_who_has_a_text_keeps_its_vector(corpus: DocumentStore) -> None:
    await add(corpus, ref_of("a", tenant="ada"), "sun")
    await add(corpus, ref_of("a", tenant="bob"), "sun")
    await corpus.delete(ref_of("a", tenant="ada"))
    assert await purged(corpus, 0.0) == 1
    assert await missing(corpus, "sun", tenant="ada") == ["sun"]
    assert await missing(corpus, "sun", tenant="bob") == []


async def test_vectors_of_a_former_model_are_deleted_once_another_serves(
    corpus: DocumentStore,
) -> None:
    await add(corpus, ref_of("a"), "sun", "moon")
    await corpus.want("new")
    for tenant, one in await corpus.to_reembed("new", 10):
        await corpus.put_vectors(tenant, "new", {one.hash: vector_of(one.text)})
    assert await purged(corpus, 0.0) == 0, "both are needed: one serves, one is to"
    assert await corpus.serve("new")
    assert await purged(corpus, LONG) == 0
    await corpus.want(MODEL)
    assert await corpus.to_reembed(MODEL, 10) == [], "to go back soon costs nothing"
    await corpus.want("new")
    assert await purged(corpus, 0.0) == 2
    assert len(nearest(await find(corpus, "sun", model="new"))) == 2
    await corpus.want(MODEL)
    assert len(await corpus.to_reembed(MODEL, 10)) == 2
    assert not await corpus.serve(MODEL)


async def test_each_step_looks_at_a_bounded_number(corpus: DocumentStore) -> None:
    await add(corpus, ref_of("a"), *(f"sun {n}" for n in range(7)))
    await corpus.delete(ref_of("a"))
    first = await corpus.purge(after=None, keep_seconds=0.0, limit=3)
    assert first.deleted == 3
    assert first.after is not None
    assert (await corpus.purge(after=first.after, keep_seconds=0.0, limit=3)).deleted == 3
    assert await purged(corpus, 0.0, limit=3) == 1


async def test_nothing_of_a_deleted_text_is_left_but_its_vector(corpus: DocumentStore) -> None:
    live = await add(corpus, ref_of("a"), "sun")
    newer = await accept(corpus, ref_of("a"), "new")
    await corpus.stage(newer, staged_of(["moon"]))
    await corpus.delete(live.ref)
    assert await corpus.text(live.ref) is None
    assert await corpus.chunks(live.ref) == []
    assert not await corpus.stage(newer, staged_of(["moon"])), "nor does it come back"
    again = await accept(corpus, ref_of("a"), "again")
    assert await corpus.to_embed(again, MODEL) == []
    assert await corpus.to_embed(Version(newer.ref, newer.generation), MODEL) is None


async def test_vectors_of_one_model_have_one_length(corpus: DocumentStore) -> None:
    await add(corpus, ref_of("a"), "sun")
    with pytest.raises(QueueError, match="3 dimensions, the others 8"):
        await corpus.put_vectors("another", MODEL, {"b": b"\0" * 12})
