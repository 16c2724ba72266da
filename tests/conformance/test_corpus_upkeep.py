"""What a corpus knows of documents under way, failed ones and originals, on every corpus."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.errors import ModelReplaced
from penstock.model.document import DocumentState
from penstock.ports.documents import DocumentStore, Version
from tests.conformance.corpus_support import (
    CORPORA,
    MODEL,
    accept,
    add,
    embed,
    find,
    nearest,
    publish,
    ref_of,
    staged_of,
    texts,
    there,
    vector_of,
)

ERROR = {"type": "ParserError", "message": "encrypted"}


@pytest.fixture(params=sorted(CORPORA))
async def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with CORPORA[request.param](tmp_path) as corpus:
        yield corpus


async def fail(corpus: DocumentStore, version: Version) -> None:
    assert await corpus.mark(
        version, state=DocumentState.FAILED, stage="parse", progress=0.2, message="no", error=ERROR
    )


async def test_published_version_is_neither_staged_nor_marked_again(corpus: DocumentStore) -> None:
    version = await add(corpus, ref_of("a"), "sun")
    before = await there(corpus, version.ref)
    assert not await corpus.stage(version, staged_of(["moon"]))
    for state in (DocumentState.PROCESSING, DocumentState.FAILED):
        assert not await corpus.mark(version, state=state, stage="embed", progress=0.5)
    assert await there(corpus, version.ref) == before
    assert texts(await find(corpus, "sun moon")) == ["sun"]
    assert await corpus.publish(version, MODEL), "publishing it again changes nothing"
    assert texts(await find(corpus, "sun moon")) == ["sun"]


async def test_retry_takes_the_next_generation_and_keeps_the_diagnosis(
    corpus: DocumentStore,
) -> None:
    version = await accept(corpus, ref_of("a"), title="T", metadata={"k": 1})
    await corpus.stage(version, staged_of(["sun"]))
    await fail(corpus, version)
    failed = await there(corpus, version.ref)
    again = await corpus.retry(version)
    assert again is not None
    assert again.generation > version.generation
    assert (again.state, again.stage, again.progress) == ("processing", "waiting", 0.0)
    assert (again.error, again.metadata, again.title) == (ERROR, failed.metadata, failed.title)
    assert (again.started_at, again.finished_at) == (None, None)
    newer = Version(version.ref, again.generation)
    assert await corpus.mark(newer, state=DocumentState.PROCESSING, stage="parse", progress=0.1)
    assert (await there(corpus, version.ref)).error == ERROR
    assert not await corpus.stage(version, staged_of(["sun"])), "the failed one is late"
    assert await publish(corpus, newer, "moon")
    assert (await there(corpus, version.ref)).error is None
    assert texts(await find(corpus, "sun moon")) == ["moon"]


async def test_only_what_has_failed_is_tried_again_and_once(corpus: DocumentStore) -> None:
    version = await accept(corpus, ref_of("a"))
    assert await corpus.retry(version) is None
    await fail(corpus, version)
    assert await corpus.retry(Version(ref_of("a", tenant="other"), version.generation)) is None
    assert await corpus.retry(version) is not None
    assert await corpus.retry(version) is None
    live = await add(corpus, ref_of("b"), "sun")
    assert await corpus.retry(live) is None


async def test_retry_leaves_the_live_version_to_be_found(corpus: DocumentStore) -> None:
    await add(corpus, ref_of("a"), "sun")
    version = await accept(corpus, ref_of("a"), "new")
    await fail(corpus, version)
    again = await corpus.retry(version)
    assert again is not None
    assert again.live
    assert texts(await find(corpus, "sun")) == ["sun"]


async def test_documents_under_way_are_listed_of_all_tenants_page_by_page(
    corpus: DocumentStore,
) -> None:
    versions = [await accept(corpus, ref_of("a", tenant=f"t{n}"), f"{n}") for n in range(5)]
    await fail(corpus, versions[1])
    await publish(corpus, versions[3], "sun")

    first = await corpus.processing(after=0, older_than=0.0, limit=2)
    assert [one.document.ref.tenant for one in first] == ["t0", "t2"]
    assert first[0].document == await there(corpus, versions[0].ref)
    assert [one.blob for one in first] == [await corpus.original(one.document.ref) for one in first]
    rest = await corpus.processing(after=first[-1].document.generation, older_than=0.0, limit=2)
    assert [one.document.ref.tenant for one in rest] == ["t4"]
    assert await corpus.processing(after=0, older_than=60.0, limit=2) == [], "too young"


async def test_documents_under_way_are_counted_in_collections_of_one_tenant(
    corpus: DocumentStore,
) -> None:
    await accept(corpus, ref_of("a"), "1")
    await accept(corpus, ref_of("a", collection="mills"), "2")
    await accept(corpus, ref_of("a", tenant="other"), "3")
    await fail(corpus, await accept(corpus, ref_of("b"), "4"))
    await add(corpus, ref_of("c"), "sun")

    tenant = ref_of("a").tenant
    assert await corpus.in_progress(tenant, None) == 2
    assert await corpus.in_progress(tenant, ["mills"]) == 1
    assert await corpus.in_progress(tenant, ["elsewhere"]) == 0
    assert await corpus.in_progress("nobody", None) == 0


async def test_another_model_serves_once_every_live_text_has_a_vector_of_it(
    corpus: DocumentStore,
) -> None:
    assert await corpus.serving() == (None, None, 0)
    await corpus.want("new")
    assert (await corpus.serving()).next is None, "there is nothing to change"
    await add(corpus, ref_of("a"), "sun", "moon")
    await add(corpus, ref_of("b", tenant="other"), "sun")
    assert (await corpus.serving())[:2] == (MODEL, None)
    await corpus.want("new")
    serving = await corpus.serving()
    assert serving[:2] == (MODEL, "new")
    assert not await corpus.serve("new")
    missing = await corpus.to_reembed("new", 10)
    assert sorted((tenant, one.text) for tenant, one in missing) == [
        ("default", "moon"),
        ("default", "sun"),
        ("other", "sun"),
    ]
    assert len(await corpus.to_reembed("new", 2)) == 2
    for tenant, one in missing:
        assert not await corpus.serve("new")
        await corpus.put_vectors(tenant, "new", {one.hash: vector_of("rain")})
    assert not await corpus.serve("another")
    assert await corpus.serve("new")
    assert (await corpus.serving())[:2] == ("new", None)
    assert len(nearest(await find(corpus, "rain", model="new"))) == 2
    await corpus.want(MODEL)
    assert (await corpus.serving()).number > serving.number
    assert await corpus.serve(MODEL), "its vectors are still there"


async def test_vectors_kept_in_memory_are_those_of_the_model_that_serves_again(
    corpus: DocumentStore,
) -> None:
    await add(corpus, ref_of("a"), "sun")
    await corpus.want("new")
    version = await accept(corpus, ref_of("b"), "2")
    await corpus.stage(version, staged_of(["moon"]))
    await embed(corpus, version, "new")
    assert await corpus.publish(version, "new")
    assert nearest(await find(corpus, "moon")) == ["sun"], "by the old model it is not known yet"
    for model in ("new", MODEL):
        await corpus.want(model)
        for tenant, one in await corpus.to_reembed(model, 10):
            await corpus.put_vectors(tenant, model, {one.hash: vector_of(one.text)})
        assert await corpus.serve(model)
    assert nearest(await find(corpus, "moon")) == ["moon", "sun"]


async def test_wanting_the_model_that_serves_ends_a_change(corpus: DocumentStore) -> None:
    await add(corpus, ref_of("a"), "sun")
    await corpus.want("new")
    await corpus.want(MODEL)
    assert (await corpus.serving())[:2] == (MODEL, None)
    assert not await corpus.serve("new")


async def test_model_that_neither_serves_nor_is_to_publishes_nothing(corpus: DocumentStore) -> None:
    await add(corpus, ref_of("a"), "sun")
    version = await accept(corpus, ref_of("b"), "2")
    await corpus.stage(version, staged_of(["moon"]))
    await embed(corpus, version, "stray")
    with pytest.raises(ModelReplaced, match=MODEL):
        await corpus.publish(version, "stray")
    assert texts(await find(corpus, "moon")) == []
    await corpus.want("stray")
    assert await corpus.publish(version, "stray")
    assert texts(await find(corpus, "moon")) == ["moon"]


async def test_originals_are_in_use_until_published_replaced_or_deleted(
    corpus: DocumentStore,
) -> None:
    async def blob(name: str) -> str:
        found = await corpus.original(ref_of(name))
        assert found is not None
        return found

    waiting = await accept(corpus, ref_of("waiting"), "1")
    failed = await accept(corpus, ref_of("failed"), "2")
    await fail(corpus, failed)
    await add(corpus, ref_of("live"), "sun")
    keys = {name: await blob(name) for name in ("waiting", "failed", "live")}
    every = [*keys.values(), "nobody's"]
    needed = {keys["waiting"], keys["failed"]}
    assert await corpus.blobs_in_use(every, published=False) == needed
    assert await corpus.blobs_in_use(every, published=True) == set(keys.values())
    assert await corpus.blobs_in_use([], published=True) == set()

    await accept(corpus, ref_of("failed"), "another")
    await corpus.delete(waiting.ref)
    assert await corpus.blobs_in_use(every, published=False) == set()
    assert await corpus.original(waiting.ref) is None
