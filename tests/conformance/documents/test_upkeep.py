"""What a document store knows of documents under way, failed ones and originals, on every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.adapters.sql.documents import DocumentStore
from penstock.errors import ModelReplaced
from penstock.model.document import DocumentState
from penstock.ports.documents import Version
from tests.conformance.document_support import (
    DOCUMENT_STORES,
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


@pytest.fixture(params=sorted(DOCUMENT_STORES))
async def documents(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with DOCUMENT_STORES[request.param](tmp_path) as documents:
        yield documents


async def fail(documents: DocumentStore, version: Version) -> None:
    assert await documents.mark(
        version, state=DocumentState.FAILED, phase="parse", progress=0.2, message="no", error=ERROR
    )


async def test_published_version_is_neither_staged_nor_marked_again(
    documents: DocumentStore,
) -> None:
    version = await add(documents, ref_of("a"), "sun")
    before = await there(documents, version.ref)
    assert not await documents.stage(version, staged_of(["moon"]))
    for state in (DocumentState.PROCESSING, DocumentState.FAILED):
        assert not await documents.mark(version, state=state, phase="embed", progress=0.5)
    assert await there(documents, version.ref) == before
    assert texts(await find(documents, "sun moon")) == ["sun"]
    assert await documents.publish(version, MODEL), "publishing it again changes nothing"
    assert texts(await find(documents, "sun moon")) == ["sun"]


async def test_retry_takes_the_next_generation_and_keeps_the_diagnosis(
    documents: DocumentStore,
) -> None:
    version = await accept(documents, ref_of("a"), title="T", metadata={"k": 1})
    await documents.stage(version, staged_of(["sun"]))
    await fail(documents, version)
    failed = await there(documents, version.ref)
    again = await documents.retry(version)
    assert again is not None
    assert again.generation > version.generation
    assert (again.state, again.phase, again.progress) == ("processing", "waiting", 0.0)
    assert (again.error, again.metadata, again.title) == (ERROR, failed.metadata, failed.title)
    assert (again.started_at, again.finished_at) == (None, None)
    newer = Version(version.ref, again.generation)
    assert await documents.mark(newer, state=DocumentState.PROCESSING, phase="parse", progress=0.1)
    assert (await there(documents, version.ref)).error == ERROR
    assert not await documents.stage(version, staged_of(["sun"])), "the failed one is late"
    assert await publish(documents, newer, "moon")
    assert (await there(documents, version.ref)).error is None
    assert texts(await find(documents, "sun moon")) == ["moon"]


async def test_only_what_has_failed_is_tried_again_and_once(documents: DocumentStore) -> None:
    version = await accept(documents, ref_of("a"))
    assert await documents.retry(version) is None
    await fail(documents, version)
    assert await documents.retry(Version(ref_of("a", tenant="other"), version.generation)) is None
    assert await documents.retry(version) is not None
    assert await documents.retry(version) is None
    live = await add(documents, ref_of("b"), "sun")
    assert await documents.retry(live) is None


async def test_retry_leaves_the_live_version_to_be_found(documents: DocumentStore) -> None:
    await add(documents, ref_of("a"), "sun")
    version = await accept(documents, ref_of("a"), "new")
    await fail(documents, version)
    again = await documents.retry(version)
    assert again is not None
    assert again.searchable
    assert texts(await find(documents, "sun")) == ["sun"]


async def test_documents_under_way_are_listed_of_all_tenants_page_by_page(
    documents: DocumentStore,
) -> None:
    versions = [await accept(documents, ref_of("a", tenant=f"t{n}"), f"{n}") for n in range(5)]
    await fail(documents, versions[1])
    await publish(documents, versions[3], "sun")

    first = await documents.processing(after=0, older_than=0.0, limit=2)
    assert [one.document.ref.tenant for one in first] == ["t0", "t2"]
    assert first[0].document == await there(documents, versions[0].ref)
    assert [one.blob for one in first] == [
        await documents.original(one.document.ref) for one in first
    ]
    rest = await documents.processing(after=first[-1].document.generation, older_than=0.0, limit=2)
    assert [one.document.ref.tenant for one in rest] == ["t4"]
    assert await documents.processing(after=0, older_than=60.0, limit=2) == [], "too young"


async def test_documents_under_way_are_counted_in_collections_of_one_tenant(
    documents: DocumentStore,
) -> None:
    await accept(documents, ref_of("a"), "1")
    await accept(documents, ref_of("a", collection="mills"), "2")
    await accept(documents, ref_of("a", tenant="other"), "3")
    await fail(documents, await accept(documents, ref_of("b"), "4"))
    await add(documents, ref_of("c"), "sun")

    tenant = ref_of("a").tenant
    assert await documents.in_progress(tenant, None) == 2
    assert await documents.in_progress(tenant, ["mills"]) == 1
    assert await documents.in_progress(tenant, ["elsewhere"]) == 0
    assert await documents.in_progress("nobody", None) == 0


async def test_another_model_serves_once_every_live_text_has_a_vector_of_it(
    documents: DocumentStore,
) -> None:
    assert await documents.serving() == (None, None, 0)
    await documents.want("new")
    assert (await documents.serving()).next is None, "there is nothing to change"
    await add(documents, ref_of("a"), "sun", "moon")
    await add(documents, ref_of("b", tenant="other"), "sun")
    assert (await documents.serving())[:2] == (MODEL, None)
    await documents.want("new")
    serving = await documents.serving()
    assert serving[:2] == (MODEL, "new")
    assert not await documents.serve("new")
    missing = await documents.to_reembed("new", 10)
    assert sorted((tenant, one.text) for tenant, one in missing) == [
        ("default", "moon"),
        ("default", "sun"),
        ("other", "sun"),
    ]
    assert len(await documents.to_reembed("new", 2)) == 2
    for tenant, one in missing:
        assert not await documents.serve("new")
        await documents.put_vectors(tenant, "new", {one.hash: vector_of("rain")})
    assert not await documents.serve("another")
    assert await documents.serve("new")
    assert (await documents.serving())[:2] == ("new", None)
    assert len(nearest(await find(documents, "rain", model="new"))) == 2
    await documents.want(MODEL)
    assert (await documents.serving()).number > serving.number
    assert await documents.serve(MODEL), "its vectors are still there"


async def test_vectors_kept_in_memory_are_those_of_the_model_that_serves_again(
    documents: DocumentStore,
) -> None:
    await add(documents, ref_of("a"), "sun")
    await documents.want("new")
    version = await accept(documents, ref_of("b"), "2")
    await documents.stage(version, staged_of(["moon"]))
    await embed(documents, version, "new")
    assert await documents.publish(version, "new")
    assert nearest(await find(documents, "moon")) == ["sun"], "by the old model it is not known yet"
    for model in ("new", MODEL):
        await documents.want(model)
        for tenant, one in await documents.to_reembed(model, 10):
            await documents.put_vectors(tenant, model, {one.hash: vector_of(one.text)})
        assert await documents.serve(model)
    assert nearest(await find(documents, "moon")) == ["moon", "sun"]


async def test_wanting_the_model_that_serves_ends_a_change(documents: DocumentStore) -> None:
    await add(documents, ref_of("a"), "sun")
    await documents.want("new")
    await documents.want(MODEL)
    assert (await documents.serving())[:2] == (MODEL, None)
    assert not await documents.serve("new")


async def test_model_that_neither_serves_nor_is_to_publishes_nothing(
    documents: DocumentStore,
) -> None:
    await add(documents, ref_of("a"), "sun")
    version = await accept(documents, ref_of("b"), "2")
    await documents.stage(version, staged_of(["moon"]))
    await embed(documents, version, "stray")
    with pytest.raises(ModelReplaced, match=MODEL):
        await documents.publish(version, "stray")
    assert texts(await find(documents, "moon")) == []
    await documents.want("stray")
    assert await documents.publish(version, "stray")
    assert texts(await find(documents, "moon")) == ["moon"]


async def test_originals_are_in_use_until_published_replaced_or_deleted(
    documents: DocumentStore,
) -> None:
    async def blob(name: str) -> str:
        found = await documents.original(ref_of(name))
        assert found is not None
        return found

    waiting = await accept(documents, ref_of("waiting"), "1")
    failed = await accept(documents, ref_of("failed"), "2")
    await fail(documents, failed)
    await add(documents, ref_of("live"), "sun")
    keys = {name: await blob(name) for name in ("waiting", "failed", "live")}
    every = [*keys.values(), "nobody's"]
    needed = {keys["waiting"], keys["failed"]}
    assert await documents.blobs_in_use(every, published=False) == needed
    assert await documents.blobs_in_use(every, published=True) == set(keys.values())
    assert await documents.blobs_in_use([], published=True) == set()

    await accept(documents, ref_of("failed"), "another")
    await documents.delete(waiting.ref)
    assert await documents.blobs_in_use(every, published=False) == set()
    assert await documents.original(waiting.ref) is None
