"""Personal data in every format, language and place: no raw value is anywhere but in the original.

The tests know the values, so they look for them in the bytes of every file there is.
"""

import logging
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.model.errors import DocumentNotFound, ParserError, ValidationError
from tests.support import documents
from tests.support.shelf import SOON, Shelf, completed, failed
from tests.support.waiting import until

VALUES = (
    "canary.jane@example.com",
    "+1 (415) 555-0132",
    "4111 1111 1111 1111",
    "canary.taro@example.jp",
    "090-8765-4321",
    "canary.kim@example.kr",
    "010-9876-5432",
    "901231-1234567",
)
EMAIL, _, CARD, _, _, _, PHONE, _ = VALUES
CARD_NUMBER = int(CARD.replace(" ", ""))
SENTENCES = (
    f"Write to {VALUES[0]} or call {VALUES[1]}.",
    f"She paid with {VALUES[2]} at noon.",
    f"連絡先は{VALUES[3]}、電話は{VALUES[4]}です。",
    f"문의 {VALUES[5]}, 전화{VALUES[6]}로, 번호는 {VALUES[7]}입니다.",
)
CELLS = (("Name", "Phone", "Card"), ("Jane", PHONE, CARD), ("Taro", VALUES[4], CARD))
RAW = [*VALUES, *(value.replace("-", "").replace(" ", "") for value in VALUES), "canary"]


def leaks(content: bytes) -> list[str]:
    """The values that are in it, in any encoding we or SQLite would write."""
    return [
        value
        for value in RAW
        for encoding in ("utf-8", "utf-16-le", "utf-16-be")
        if value.encode(encoding) in content
    ]


def scan(shelf: Shelf) -> dict[str, list[str]]:
    """What leaked into which file. The write-ahead log is brought into the database, and both
    are read."""
    shelf.farm.query("PRAGMA wal_checkpoint(PASSIVE)")
    files = [path for path in shelf.farm.folder.rglob("*") if path.is_file()]
    assert any(path.name == "jobs.db" for path in files)
    found = {path.name: leaks(path.read_bytes()) for path in files}
    sent = b"\n".join(text.encode() for text in shelf.embedder.received)
    found["embedder"] = leaks(sent + b"".join(hit.body for hit in shelf.embedder.requests))
    return {name: values for name, values in found.items() if values}


@pytest.fixture(autouse=True)
def logs(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def test_the_scan_finds_what_it_looks_for(tmp_path: Path) -> None:
    for value in RAW:
        assert value in leaks(b"\0" + f"x{value}y".encode())
        assert value in leaks(b"\0\0" + f"x{value}y".encode("utf-16-le"))


async def test_no_value_of_any_format_is_stored_logged_or_sent(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, logs: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(documents, "SENTENCES", SENTENCES)
    monkeypatch.setattr(documents, "TITLE", f"Report for {EMAIL}")
    monkeypatch.setattr(documents, "CELLS", CELLS)
    monkeypatch.setattr(documents, "ENGLISH", SENTENCES[0])
    monkeypatch.setattr(documents, "JAPANESE", SENTENCES[2])
    monkeypatch.setattr(documents, "KOREAN", SENTENCES[3])
    async with shelf.running() as app:
        for name, make in documents.MAKERS.items():
            await app.corpus.add(make(), id=name)
        for name in documents.MAKERS:
            document = await completed(app, name)
            assert sum(document.masked.values()) >= 5, (name, document.masked)
        await app.drain(SOON)
        await until(lambda: not shelf.blobs(), "the originals to be gone")
        assert scan(shelf) == {}
    assert scan(shelf) == {}
    assert leaks(logs.text.encode()) == []


async def test_no_value_in_names_titles_origins_or_metadata_is_stored_logged_or_sent(
    shelf: Shelf, tmp_path_factory: pytest.TempPathFactory, logs: pytest.LogCaptureFixture
) -> None:
    path = tmp_path_factory.mktemp("letters") / f"of {EMAIL}" / f"CV of {EMAIL}, {PHONE}.txt"
    path.parent.mkdir()
    path.write_text("Nothing personal.")
    where: dict[str, Any] = {"collection": f"letters of {EMAIL}"}
    metadata: dict[str, Any] = {
        "author": EMAIL,
        EMAIL: "as a key",
        "deep": [{"phone": PHONE, PHONE: 1}],
        "card": CARD_NUMBER,
        "year": 2026,
    }
    async with shelf.running() as app:
        added = await app.corpus.add(path, title=f"For {EMAIL}", metadata=metadata, **where)
        other = await app.corpus.add(b"Another.", id=f"CV of {PHONE}.txt", origin=EMAIL, **where)
        document = await completed(app, path.name, **where)
        assert document.ref == added.ref, "it is found by the name it was given"
        assert await completed(app, document.ref.id, collection=document.ref.collection) == document
        assert other.ref != added.ref
        assert document.title == "For [EMAIL]"
        assert (document.metadata["author"], document.metadata["year"]) == ("[EMAIL]", 2026)
        assert document.metadata["card"] == "[CARD]"

        result = await app.corpus.search(
            f"what did {EMAIL} write, nothing personal",
            collections=[where["collection"]],
            documents=[path.name],
            metadata={"author": EMAIL, "card": CARD_NUMBER},
        )
        assert [passage.text for passage in result.passages] == ["Nothing personal."]
        assert result.mode == "hybrid"
        assert [one.ref for one in await app.corpus.documents(**where)] == [other.ref, added.ref]
        assert len(await app.corpus.chunks(path.name, **where)) == 1
        await app.drain(SOON)
        assert scan(shelf) == {}
        await app.corpus.delete(path.name, **where)
        with pytest.raises(DocumentNotFound) as missing:
            await app.corpus.get(path.name, **where)
        assert leaks(str(missing.value).encode()) == []
        with pytest.raises(ValidationError) as refused:
            await app.corpus.add(b"x", id=f"{EMAIL}\n")
        assert leaks(str(refused.value).encode()) == []
    assert scan(shelf) == {}
    assert leaks(logs.text.encode()) == []


def quoting(app: Penstock, error: Exception) -> None:
    """Let the parser fail, and quote the document as some do."""

    async def parse(source: object) -> object:
        raise error

    setattr(app.corpus._tools.parser, "parse", parse)  # noqa: B010


@pytest.mark.parametrize(
    "error",
    [
        ParserError(f"line 3: unexpected {EMAIL}, {PHONE}", "corrupt"),
        ValueError(f"cannot decode {EMAIL}, {PHONE}"),
        UnicodeDecodeError("utf-8", EMAIL.encode(), 0, 1, f"not {PHONE}"),
    ],
)
async def test_no_value_that_an_error_quotes_is_stored_or_logged(
    shelf: Shelf, error: Exception, logs: pytest.LogCaptureFixture
) -> None:
    async with shelf.running(max_retries=1, keep_originals=False) as app:
        quoting(app, error)
        await app.corpus.add(SENTENCES[0].encode(), id="a")
        document = await failed(app, "a")
        assert document.error is not None
        assert "[PHONE]" in document.error["message"]
        if isinstance(error, ParserError):
            assert document.error["type"] == "ParserError"
        # The document is told first, its job is settled a moment later.
        (dead,) = await until(app.dead_letters, "the dead letter")
        assert "[PHONE]" in str(dead.error)
        await app.corpus.delete("a")  # the original, which is kept for a retry
        assert scan(shelf) == {}
        app.corpus._tools.parser.__dict__.pop("parse")
    assert scan(shelf) == {}
    assert leaks(logs.text.encode()) == []


async def test_what_an_embedder_says_is_not_quoted(
    shelf: Shelf, logs: pytest.LogCaptureFixture
) -> None:
    """It was sent masked text only, but its answer is its own."""
    shelf.embedder.fault = "dimension"
    async with shelf.running() as app:
        await app.corpus.add(SENTENCES[1].encode(), id="a")
        await failed(app, "a")
        await app.corpus.delete("a")
        assert scan(shelf) == {}
    assert shelf.embedder.received == ["She paid with [CARD] at noon."]
    assert leaks(logs.text.encode()) == []
