"""What a corpus knows of documents under way, failed ones and originals, on every corpus."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.model.document import DocumentState
from penstock.ports.corpus import Corpus, Version
from tests.conformance.corpus_support import (
    CORPORA,
    MODEL,
    accept,
    add,
    find,
    publish,
    ref_of,
    staged_of,
    texts,
    there,
)

ERROR = {"type": "ParserError", "message": "encrypted"}


@pytest.fixture(params=sorted(CORPORA))
async def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Corpus]:
    async with CORPORA[request.param](tmp_path) as corpus:
        yield corpus


async def fail(corpus: Corpus, version: Version) -> None:
    assert await corpus.mark(
        version, state=DocumentState.FAILED, stage="parse", progress=0.2, message="no", error=ERROR
    )


async def test_published_version_is_neither_staged_nor_marked_again(corpus: Corpus) -> None:
    version = await add(corpus, ref_of("a"), "sun")
    before = await there(corpus, version.ref)
    assert not await corpus.stage(version, staged_of(["moon"]))
    for state in (DocumentState.PROCESSING, DocumentState.FAILED):
        assert not await corpus.mark(version, state=state, stage="embed", progress=0.5)
    assert await there(corpus, version.ref) == before
    assert texts(await find(corpus, "sun moon")) == ["sun"]
    assert await corpus.publish(version, MODEL), "publishing it again changes nothing"
    assert texts(await find(corpus, "sun moon")) == ["sun"]


async def test_retry_takes_the_next_generation_and_keeps_the_diagnosis(corpus: Corpus) -> None:
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


async def test_only_what_has_failed_is_tried_again_and_once(corpus: Corpus) -> None:
    version = await accept(corpus, ref_of("a"))
    assert await corpus.retry(version) is None
    await fail(corpus, version)
    assert await corpus.retry(Version(ref_of("a", tenant="other"), version.generation)) is None
    assert await corpus.retry(version) is not None
    assert await corpus.retry(version) is None
    live = await add(corpus, ref_of("b"), "sun")
    assert await corpus.retry(live) is None


async def test_retry_leaves_the_live_version_to_be_found(corpus: Corpus) -> None:
    await add(corpus, ref_of("a"), "sun")
    version = await accept(corpus, ref_of("a"), "new")
    await fail(corpus, version)
    again = await corpus.retry(version)
    assert again is not None
    assert again.live
    assert texts(await find(corpus, "sun")) == ["sun"]


async def test_documents_under_way_are_listed_of_all_tenants_page_by_page(corpus: Corpus) -> None:
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


async def test_originals_are_in_use_until_published_replaced_or_deleted(corpus: Corpus) -> None:
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
