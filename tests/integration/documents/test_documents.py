"""Documents that are replaced, deleted, tried again and many at once."""

import asyncio
import random
import threading
from typing import Any

import pytest

from penstock import Penstock
from penstock.documents.jobs import EMBED
from penstock.errors import (
    BlobMissing,
    DocumentNotFound,
    ParserError,
    PenstockError,
    ValidationError,
    WaitTimeout,
)
from penstock.model.document import DocumentState
from tests.support import documents
from tests.support.document_app import SOON, Shelf, completed, failed, found
from tests.support.waiting import until

BROKEN = b"PK\x03\x04 no archive"


async def asked(shelf: Shelf, word: str) -> None:
    """Wait until the embedder has been sent a text with this word."""
    await until(lambda: any(word in text for text in shelf.embedder.received), word, SOON)


class Held:
    """Lets an app's parser wait before it parses its first document."""

    def __init__(self, app: Penstock) -> None:
        self.waits, self.go_on = asyncio.Event(), asyncio.Event()
        parser = app.documents._tools.parser
        ask = parser.ask

        async def held(*question: Any) -> Any:
            if not self.waits.is_set():
                self.waits.set()
                await self.go_on.wait()
            return await ask(*question)

        setattr(parser, "ask", held)  # noqa: B010


@pytest.mark.parametrize("slow", ["parse", "embed"])
@pytest.mark.parametrize("between", ["nothing", "a delete"])
async def test_newest_version_wins_although_the_first_is_slower(
    either: Shelf, slow: str, between: str
) -> None:
    async with either.running() as app:
        held = Held(app) if slow == "parse" else None
        either.embedder.delay = 1.0 if slow == "embed" else 0.0
        first = await app.documents.add(b"the first version", id="a")
        await (held.waits.wait() if held else asked(either, "first"))
        either.embedder.delay = 0.0
        if between == "a delete":
            await app.documents.delete("a")
        second = await app.documents.add(b"the second version", id="a")
        await completed(app, "a")
        if held:
            held.go_on.set()
        await app.drain(SOON)
        assert second.generation > first.generation
        assert await found(app, "version") == ["the second version"]
        assert {str(job.state) for job in await app.jobs()} == {"completed"}
        assert len(await app.documents.documents()) == 1
    assert either.blobs() == []


@pytest.mark.parametrize("state", ["accepted", "parsing", "staged", "embedding", "failed", "done"])
async def test_document_can_be_deleted_in_any_state(either: Shelf, state: str) -> None:
    if state == "accepted":
        async with either.farm.app("documents") as app:
            await app.documents.add(b"some text", id="a")
            await app.documents.delete("a")
    async with either.running() as app:
        held = Held(app) if state == "parsing" else None
        if state == "staged":
            either.embedder.down()
        gate = either.embedder.gate = threading.Event()
        if state != "embedding":
            gate.set()
        if state != "accepted":
            await app.documents.add(BROKEN if state == "failed" else b"some text", id="a")
            await reached(either, app, state, held)
            await app.documents.delete("a")
        gate.set()
        if state == "staged":
            either.embedder.up()
        if held:
            held.go_on.set()
        with pytest.raises(DocumentNotFound):
            await app.documents.get("a")
        assert either.blobs() == []
        await app.documents.add(b"some other text", id="a")
        await completed(app, "a")
        await app.drain(SOON)
        assert await found(app, "text") == ["some other text"]
    assert await either.rows("SELECT text FROM penstock.chunks") == [("some other text",)]
    assert await either.count("texts") == 1


async def reached(shelf: Shelf, app: Penstock, state: str, held: Held | None) -> None:
    async def staged() -> bool:
        return (await app.documents.get("a")).chunks > 0

    match state:
        case "parsing":
            assert held is not None
            await held.waits.wait()
        case "staged":
            await until(staged, "the document to be staged", SOON)
        case "embedding":
            await asked(shelf, "some")
        case _:
            assert (await app.documents.wait("a", timeout=SOON)).state != "processing"


async def test_what_another_process_publishes_replaces_and_deletes_is_seen_by_the_next_search(
    either: Shelf,
) -> None:
    await either.farm.start("documents")
    async with either.farm.app("documents") as app:
        await app.documents.add(b"the first version", id="a")
        await completed(app, "a")
        for text in (b"the second version", b"the third version"):
            assert len((await app.documents.search("version")).passages) == 1
            await app.documents.add(text, id="a")
            await completed(app, "a")
            (passage,) = (await app.documents.search("version")).passages
            assert passage.text == text.decode()
            assert (passage.why.text_rank, passage.why.vector_rank) == (1, 1)
        async with either.farm.app("documents") as other:
            await other.documents.delete("a")
        assert (await app.documents.search("version")).passages == []


async def test_damaged_documents_of_every_format_end_and_leave_nothing_half_stored(
    either: Shelf,
) -> None:
    """Truncated, and with bytes changed, cut out or doubled."""
    async with either.running() as app:
        names = []
        for name, make in documents.MAKERS.items():
            for n, data in enumerate(documents.damaged(make(), random.Random(name), 4)):
                names.append(f"{name} {n}")
                await app.documents.add(data, id=names[-1])
        await app.documents.add(b"a good one", id="good")
        ended = {name: await app.documents.wait(name, timeout=3 * SOON) for name in names}
        await completed(app, "good")
        await app.drain(SOON)
        failures = {name: one for name, one in ended.items() if one.state == "failed"}
        assert 5 < len(failures) < len(names), "some can still be read"
        for name, one in failures.items():
            assert one.error is not None
            assert one.error["type"] == "ParserError", name
            assert (one.searchable, one.chunks) == (False, 0), name
            assert one.error["reason"] not in ("slow", "crashed"), name
        assert len(await until(app.dead_letters, "the dead letters")) <= len(failures)
    live = len(names) + 1 - len(failures)
    assert await either.count("texts") == live
    for rows in ("chunks", "texts"):
        statement = f"SELECT count(DISTINCT document) FROM penstock.{rows}"
        assert await either.rows(statement) == [(live,)]
    orphans = (
        "SELECT count(*) FROM penstock.vectors WHERE hash NOT IN (SELECT hash FROM penstock.chunks)"
    )
    assert await either.rows(orphans) == [(0,)]
    assert len(either.blobs()) == len(failures), "kept for a retry"


async def test_hundred_documents_at_once_are_all_completed(shelf: Shelf) -> None:
    names = [f"d{n}" for n in range(100)]
    async with shelf.running() as app:
        await asyncio.gather(
            *(app.documents.add(f"The tale of {name}.".encode(), id=name) for name in names)
        )
        await asyncio.gather(*(completed(app, name) for name in names))
        assert await found(app, "d42") == ["The tale of d42."]
        await app.drain(SOON)
    assert shelf.blobs() == []
    assert shelf.farm.query("SELECT count(*), count(DISTINCT document) FROM chunks") == [(100, 100)]


async def test_failed_document_keeps_its_diagnosis_until_a_retry_has_an_outcome(
    shelf: Shelf,
) -> None:
    async with shelf.running() as app:
        await app.documents.add(BROKEN, id="a")
        document = await failed(app, "a")
        assert document.error is not None
        assert document.error["type"] == ParserError.__name__
    async with shelf.farm.app("documents") as app:
        again = await app.documents.retry("a")
        assert again.generation > document.generation
        assert (again.state, again.error) == (DocumentState.PROCESSING, document.error)
        with pytest.raises(ValidationError, match="processing"):
            await app.documents.retry("a")
        with pytest.raises(WaitTimeout):
            await app.documents.wait("a", timeout=0.1)
    shelf.blobs()[0].write_text("readable by now")
    async with shelf.running() as app:
        assert (await completed(app, "a")).error is None
        with pytest.raises(ValidationError, match="completed"):
            await app.documents.retry("a")
        (dead,) = await until(app.dead_letters, "the dead letter")
        await app.redrive(job_id=dead.id)  # of the first try: it is late, and does no harm
        assert (await app.wait(dead.id, SOON)).result == {"late": True}
        assert await found(app, "readable") == ["readable by now"]
    assert shelf.blobs() == []


async def test_late_job_leaves_the_original_to_the_retry_that_needs_it(shelf: Shelf) -> None:
    async with shelf.running() as app:
        await app.documents.add(BROKEN, id="a")
        await failed(app, "a")
        (dead,) = await until(app.dead_letters, "the dead letter")
        await app.documents.retry("a")
        await failed(app, "a")
        await app.redrive(job_id=dead.id)
        assert (await app.wait(dead.id, SOON)).result == {"late": True}
        assert len(shelf.blobs()) == 1
        await app.documents.retry("a")
        await failed(app, "a")


async def test_retry_without_the_original_says_what_to_do(shelf: Shelf) -> None:
    async with shelf.running() as app:
        await app.documents.add(BROKEN, id="a")
        document = await failed(app, "a")
        shelf.blobs()[0].unlink()
        with pytest.raises(BlobMissing, match="upload the document again"):
            await app.documents.retry("a")
        assert await app.documents.get("a") == document
        with pytest.raises(DocumentNotFound):
            await app.documents.retry("b")
        await app.documents.add(b"a better one", id="a")
        await completed(app, "a")


async def test_same_content_that_failed_is_tried_again_only_when_asked(shelf: Shelf) -> None:
    async with shelf.running() as app:
        first = await app.documents.add(BROKEN, id="a")
        before = await failed(app, "a")
        again = await app.documents.add(BROKEN, id="a")
        assert (again.generation, again.state) == (first.generation, "failed")
        assert again.error == before.error
        assert "give `retry` to try again" in again.message
        assert len(await app.jobs(kind="ingest.parse")) == len(shelf.blobs()) == 1

        again = await app.documents.add(BROKEN, id="a", retry=True)
        assert (again.generation > first.generation, again.state) == (True, "processing")
        await failed(app, "a")
        shelf.blobs()[0].unlink()  # so that what comes is the only one there is
        assert (await app.documents.add(BROKEN, id="a")).state == "processing"
        await failed(app, "a")
        assert len(await app.jobs(kind="ingest.parse")) == 3


async def test_original_of_a_failed_document_goes_when_it_is_replaced(shelf: Shelf) -> None:
    async with shelf.running() as app:
        await app.documents.add(BROKEN, id="a")
        await failed(app, "a")
        await app.documents.add(b"a better one", id="a")
        await completed(app, "a")
        await app.drain(SOON)
    assert shelf.blobs() == []


async def test_originals_are_kept_where_that_is_wanted(shelf: Shelf) -> None:
    async with shelf.running(keep_originals=True) as app:
        await app.documents.add(b"the first version", id="a")
        await completed(app, "a")
        await app.documents.add(b"the second version", id="a")
        await completed(app, "a")
        await app.drain(SOON)
        (blob,) = shelf.blobs()
        assert blob.read_bytes() == b"the second version"
        await app.documents.delete("a")
    assert shelf.blobs() == []


@pytest.mark.parametrize(
    "options",
    [
        {"id": "x" * 241},
        {"id": "a\nb"},
        {"collection": ""},
        {"tenant": "x" * 513},
        {"priority": "urgent"},
        {"metadata": {'"': 1}},
        {"metadata": {"x": "y" * 20_000}},
        {"metadata": {"x": object()}},
    ],
)
async def test_what_cannot_be_accepted_leaves_nothing_behind(
    shelf: Shelf, options: dict[str, object]
) -> None:
    async with shelf.farm.app("documents") as app:
        with pytest.raises(ValidationError):
            await app.documents.add(b"some text", **options)  # type: ignore[arg-type]
        assert await app.documents.documents() == []
    assert shelf.blobs() == []


async def test_longest_names_are_accepted_and_found(shelf: Shelf) -> None:
    name, collection = "i" * 240, "c" * 240
    async with shelf.running() as app:
        await app.documents.add(b"some text", id=name, collection=collection)
        await completed(app, name, collection=collection)
        assert await app.changes(f"document:{collection}/{name}")


async def test_store_that_refuses_leaves_no_blob(shelf: Shelf) -> None:
    async with shelf.farm.app("documents") as app:
        shelf.farm.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON documents"
            " BEGIN SELECT raise(ABORT, 'refused'); END"
        )
        with pytest.raises(PenstockError):
            await app.documents.add(b"some text", id="a")
    assert shelf.blobs() == []


async def test_job_of_a_document_is_one_however_often_it_is_uploaded(shelf: Shelf) -> None:
    async with shelf.running() as app:
        for _ in range(3):
            await app.documents.add(b"some text", id="a")
        await completed(app, "a")
        await app.documents.add(b"some text", id="a")
        await app.drain(SOON)
        assert len(await app.jobs(kind=EMBED)) == 1
    assert shelf.blobs() == []
