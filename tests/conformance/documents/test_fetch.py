"""Documents that are still to be fetched, on every store."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.adapters.sql.documents import DocumentStore
from penstock.model.document import Document, DocumentState
from penstock.ports.documents import Arrived, Version
from tests.conformance.document_support import (
    DOCUMENT_STORES,
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


@pytest.fixture(params=sorted(DOCUMENT_STORES))
async def documents(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    async with DOCUMENT_STORES[request.param](tmp_path) as documents:
        yield documents


async def fail(documents: DocumentStore, version: Version) -> None:
    assert await documents.mark(version, state=DocumentState.FAILED, phase="fetch", progress=0.0)


async def arrive(
    documents: DocumentStore, version: Version, content: str, charset: str = ""
) -> Document | None:
    """What the document's address holds, as if it had been fetched."""
    upload = upload_of(version.ref, content)
    address = upload_of(version.ref, ADDRESS).blob
    arrived = Arrived(upload.blob, upload.digest, upload.size, "as fetched", charset)
    return await documents.fetched(version, address, arrived)


async def test_document_to_be_fetched_is_accepted_before_it_is_there(
    documents: DocumentStore,
) -> None:
    version = await accept(documents, ref_of("a"), ADDRESS, remote=True, title="as given")
    waiting = await there(documents, version.ref)
    assert (waiting.state, waiting.phase, waiting.remote) == ("processing", "fetch", True)
    again = await documents.accept(upload_of(version.ref, ADDRESS, remote=True))
    assert not again.new, "the same is on its way already"
    address = upload_of(version.ref, ADDRESS).blob
    (pending,) = await documents.processing(after=0, older_than=0.0, limit=9)
    assert (pending.document.remote, *pending[1:]) == (True, address, address)

    arrived = await arrive(documents, version, "sun")
    assert arrived is not None
    assert arrived == await there(documents, version.ref)
    assert (arrived.phase, arrived.remote, arrived.size) == ("waiting", False, 3)
    assert (arrived.generation, arrived.title) == (version.generation, "as fetched")
    blob = upload_of(version.ref, "sun").blob
    assert await documents.original(version.ref) == blob
    (pending,) = await documents.processing(after=0, older_than=0.0, limit=9)
    assert pending == (arrived, blob, address)
    assert await arrive(documents, version, "moon") is None, "it was fetched before"
    assert await publish(documents, version, "sun")
    assert texts(await find(documents, "sun")) == ["sun"]


async def test_same_content_fetched_again_leaves_what_is_published(
    documents: DocumentStore,
) -> None:
    live = await add(documents, ref_of("a"), "sun")
    before = await there(documents, live.ref)
    version = await accept(documents, live.ref, ADDRESS, remote=True, title="another")
    between = await there(documents, live.ref)
    assert (between.title, between.size) == (before.title, before.size)
    arrived = await arrive(documents, version, "sun")
    assert arrived is not None
    assert (arrived.state, arrived.phase, arrived.progress) == ("completed", "done", 1.0)
    assert (arrived.generation, arrived.title) == (live.generation, before.title)
    assert texts(await find(documents, "sun")) == ["sun"]
    assert not await documents.mark(
        version, state=DocumentState.PROCESSING, phase="fetch", progress=0.0
    ), "its generation is closed"
    # The bytes are known by now, so the address is worth another look.
    newer = await accept(documents, live.ref, ADDRESS, remote=True)
    assert newer.generation > version.generation
    assert await arrive(documents, newer, "moon")
    assert await publish(documents, newer, "moon")
    assert texts(await find(documents, "sun moon")) == ["moon"]


async def test_same_content_as_a_version_that_was_never_published_is_new(
    documents: DocumentStore,
) -> None:
    live = await add(documents, ref_of("a"), "sun")
    await accept(documents, live.ref, "moon")
    version = await accept(documents, live.ref, ADDRESS, remote=True)
    arrived = await arrive(documents, version, "moon")
    assert arrived is not None
    assert (arrived.state, arrived.generation) == ("processing", version.generation)


@pytest.mark.parametrize("what", ["upload", "fetch", "delete", "another tenant"])
async def test_late_fetch_changes_nothing(documents: DocumentStore, what: str) -> None:
    version = await accept(documents, ref_of("a"), ADDRESS, remote=True)
    match what:
        case "upload":
            await accept(documents, version.ref, "moon")
        case "fetch":
            await accept(documents, version.ref, "another address", remote=True)
        case "delete":
            await documents.delete(version.ref)
        case _:
            version = Version(ref_of("a", tenant="other"), version.generation)
    before = await documents.get(version.ref)
    assert await arrive(documents, version, "sun") is None
    assert await documents.get(version.ref) == before


async def test_failed_fetch_is_tried_again_as_a_fetch(documents: DocumentStore) -> None:
    version = await accept(documents, ref_of("a"), ADDRESS, remote=True)
    await fail(documents, version)
    again = await documents.retry(version)
    assert again is not None
    assert (again.phase, again.remote) == ("fetch", True)
    await fail(documents, Version(version.ref, again.generation))
    uploaded = await documents.accept(upload_of(version.ref, "sun"))
    assert (uploaded.document.phase, uploaded.document.remote) == ("waiting", False)
    (pending,) = await documents.processing(after=0, older_than=0.0, limit=9)
    assert pending.request is None


async def test_what_a_server_and_a_page_say_stays_with_the_document(
    documents: DocumentStore,
) -> None:
    uploaded = await accept(documents, ref_of("a"), "sun", charset="shift_jis")
    assert (await there(documents, uploaded.ref)).charset == "shift_jis"
    reading = {"text": "main", "author": "水 門"}
    assert await documents.stage(uploaded, replace(staged_of(["sun"]), reading=reading))
    await embed(documents, uploaded)
    assert await documents.publish(uploaded, MODEL)
    published = await there(documents, uploaded.ref)
    assert (published.reading, published.charset) == (reading, "shift_jis")

    version = await accept(documents, uploaded.ref, ADDRESS, remote=True)
    waiting = await there(documents, version.ref)
    assert (waiting.reading, waiting.charset) == (reading, "shift_jis"), "it may be the same"
    again = await arrive(documents, version, "sun", "shift_jis")
    assert again is not None
    assert (again.generation, again.reading) == (uploaded.generation, reading)

    version = await accept(documents, uploaded.ref, ADDRESS, remote=True)
    arrived = await arrive(documents, version, "moon", "euc-kr")
    assert arrived is not None
    assert arrived.charset == "euc-kr"
    assert await publish(documents, version, "moon")
    assert (await there(documents, version.ref)).reading == {}
