"""Documents that are still to be fetched, on every corpus."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.model.document import Document, DocumentState
from penstock.ports.documents import Arrived, DocumentStore, Version
from tests.conformance.corpus_support import (
    CORPORA,
    MODEL,
    accept,
    add,
    embed,
    find,
    publish,
    ref_of,
    staged_of,
    texts,
    there,
    upload_of,
)

ADDRESS = "what says what to fetch"


@pytest.fixture(params=sorted(CORPORA))
async def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with CORPORA[request.param](tmp_path) as corpus:
        yield corpus


async def fail(corpus: DocumentStore, version: Version) -> None:
    assert await corpus.mark(version, state=DocumentState.FAILED, stage="fetch", progress=0.0)


async def arrive(
    corpus: DocumentStore, version: Version, content: str, charset: str = ""
) -> Document | None:
    """What the document's address holds, as if it had been fetched."""
    upload = upload_of(version.ref, content)
    address = upload_of(version.ref, ADDRESS).blob
    arrived = Arrived(upload.blob, upload.digest, upload.size, "as fetched", charset)
    return await corpus.fetched(version, address, arrived)


async def test_document_to_be_fetched_is_accepted_before_it_is_there(corpus: DocumentStore) -> None:
    version = await accept(corpus, ref_of("a"), ADDRESS, remote=True, title="as given")
    waiting = await there(corpus, version.ref)
    assert (waiting.state, waiting.stage, waiting.remote) == ("processing", "fetch", True)
    again = await corpus.accept(upload_of(version.ref, ADDRESS, remote=True))
    assert not again.new, "the same is on its way already"
    address = upload_of(version.ref, ADDRESS).blob
    (pending,) = await corpus.processing(after=0, older_than=0.0, limit=9)
    assert (pending.document.remote, *pending[1:]) == (True, address, address)

    arrived = await arrive(corpus, version, "sun")
    assert arrived is not None
    assert arrived == await there(corpus, version.ref)
    assert (arrived.stage, arrived.remote, arrived.size) == ("waiting", False, 3)
    assert (arrived.generation, arrived.title) == (version.generation, "as fetched")
    blob = upload_of(version.ref, "sun").blob
    assert await corpus.original(version.ref) == blob
    (pending,) = await corpus.processing(after=0, older_than=0.0, limit=9)
    assert pending == (arrived, blob, address)
    assert await arrive(corpus, version, "moon") is None, "it was fetched before"
    assert await publish(corpus, version, "sun")
    assert texts(await find(corpus, "sun")) == ["sun"]


async def test_same_content_fetched_again_leaves_what_is_published(corpus: DocumentStore) -> None:
    live = await add(corpus, ref_of("a"), "sun")
    before = await there(corpus, live.ref)
    version = await accept(corpus, live.ref, ADDRESS, remote=True, title="another")
    between = await there(corpus, live.ref)
    assert (between.title, between.size) == (before.title, before.size)
    arrived = await arrive(corpus, version, "sun")
    assert arrived is not None
    assert (arrived.state, arrived.stage, arrived.progress) == ("completed", "done", 1.0)
    assert (arrived.generation, arrived.title) == (live.generation, before.title)
    assert texts(await find(corpus, "sun")) == ["sun"]
    assert not await corpus.mark(
        version, state=DocumentState.PROCESSING, stage="fetch", progress=0.0
    ), "its generation is closed"
    # The bytes are known by now, so the address is worth another look.
    newer = await accept(corpus, live.ref, ADDRESS, remote=True)
    assert newer.generation > version.generation
    assert await arrive(corpus, newer, "moon")
    assert await publish(corpus, newer, "moon")
    assert texts(await find(corpus, "sun moon")) == ["moon"]


async def test_same_content_as_a_version_that_was_never_published_is_new(
    corpus: DocumentStore,
) -> None:
    live = await add(corpus, ref_of("a"), "sun")
    await accept(corpus, live.ref, "moon")
    version = await accept(corpus, live.ref, ADDRESS, remote=True)
    arrived = await arrive(corpus, version, "moon")
    assert arrived is not None
    assert (arrived.state, arrived.generation) == ("processing", version.generation)


@pytest.mark.parametrize("what", ["upload", "fetch", "delete", "another tenant"])
async def test_late_fetch_changes_nothing(corpus: DocumentStore, what: str) -> None:
    version = await accept(corpus, ref_of("a"), ADDRESS, remote=True)
    match what:
        case "upload":
            await accept(corpus, version.ref, "moon")
        case "fetch":
            await accept(corpus, version.ref, "another address", remote=True)
        case "delete":
            await corpus.delete(version.ref)
        case _:
            version = Version(ref_of("a", tenant="other"), version.generation)
    before = await corpus.get(version.ref)
    assert await arrive(corpus, version, "sun") is None
    assert await corpus.get(version.ref) == before


async def test_failed_fetch_is_tried_again_as_a_fetch(corpus: DocumentStore) -> None:
    version = await accept(corpus, ref_of("a"), ADDRESS, remote=True)
    await fail(corpus, version)
    again = await corpus.retry(version)
    assert again is not None
    assert (again.stage, again.remote) == ("fetch", True)
    await fail(corpus, Version(version.ref, again.generation))
    uploaded = await corpus.accept(upload_of(version.ref, "sun"))
    assert (uploaded.document.stage, uploaded.document.remote) == ("waiting", False)
    (pending,) = await corpus.processing(after=0, older_than=0.0, limit=9)
    assert pending.request is None


async def test_what_a_server_and_a_page_say_stays_with_the_document(corpus: DocumentStore) -> None:
    uploaded = await accept(corpus, ref_of("a"), "sun", charset="shift_jis")
    assert (await there(corpus, uploaded.ref)).charset == "shift_jis"
    reading = {"text": "main", "author": "水 門"}
    assert await corpus.stage(uploaded, replace(staged_of(["sun"]), reading=reading))
    await embed(corpus, uploaded)
    assert await corpus.publish(uploaded, MODEL)
    published = await there(corpus, uploaded.ref)
    assert (published.reading, published.charset) == (reading, "shift_jis")

    version = await accept(corpus, uploaded.ref, ADDRESS, remote=True)
    waiting = await there(corpus, version.ref)
    assert (waiting.reading, waiting.charset) == (reading, "shift_jis"), "it may be the same"
    again = await arrive(corpus, version, "sun", "shift_jis")
    assert again is not None
    assert (again.generation, again.reading) == (uploaded.generation, reading)

    version = await accept(corpus, uploaded.ref, ADDRESS, remote=True)
    arrived = await arrive(corpus, version, "moon", "euc-kr")
    assert arrived is not None
    assert arrived.charset == "euc-kr"
    assert await publish(corpus, version, "moon")
    assert (await there(corpus, version.ref)).reading == {}
