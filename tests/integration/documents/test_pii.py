"""Personal data of every kind, in every format, language and place: no raw value is anywhere but in
the original.

The tests know the values, so they look for them in the bytes of every file and table there is.
"""

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from penstock import Penstock
from penstock.documents.mask import LABELS
from penstock.errors import DocumentNotFound, ParserError, ValidationError
from tests.support import documents
from tests.support.cli import Cli
from tests.support.document_app import SOON, Shelf, completed, failed
from tests.support.pii_canaries import CANARIES, RAW, leaks, of, scan, texts
from tests.support.waiting import until

EMAIL, PHONE, CARD = of("email"), of("phone", "ko"), of("card")
CARD_NUMBER = int(CARD.replace(" ", ""))
CELLS = (("Name", "Phone", "Card"), ("Jane", PHONE, CARD), ("Taro", of("phone", "ja"), CARD))


@pytest.fixture(autouse=True)
def logs(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def test_there_is_a_canary_of_every_kind_in_every_language() -> None:
    places = {(one.kind, one.language) for one in CANARIES}
    assert places == {(kind, language) for kind in LABELS for language in ("en", "ja", "ko")}


async def test_the_scan_finds_what_it_looks_for(either: Shelf) -> None:
    for value in RAW:
        assert value in leaks(b"\0" + f"x{value}y".encode())
        assert value in leaks(b"\0\0" + f"x{value}y".encode("utf-16-le"))
    async with either.farm.app("documents") as app:
        await app.enqueue("noop", key=EMAIL)  # what is not masked: the key of somebody's own job
        assert EMAIL in str(await scan(either))


async def test_no_value_of_any_format_is_stored_logged_or_sent(
    either: Shelf, monkeypatch: pytest.MonkeyPatch, logs: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(documents, "SENTENCES", [one.text for one in CANARIES])
    monkeypatch.setattr(documents, "TITLE", f"Report for {EMAIL}")
    monkeypatch.setattr(documents, "CELLS", CELLS)
    for name, language in (("ENGLISH", "en"), ("JAPANESE", "ja"), ("KOREAN", "ko")):
        monkeypatch.setattr(documents, name, " ".join(texts(language)))
    async with either.running() as app:
        for name, make in documents.MAKERS.items():
            await app.documents.add(make(), id=name)
        for name in documents.MAKERS:
            document = await completed(app, name)
            assert set(document.masked) == set(LABELS), (name, document.masked)
            assert sum(document.masked.values()) >= len(CANARIES), (name, document.masked)
        await app.drain(SOON)
        await until(lambda: not either.blobs(), "the originals to be gone")
        assert await scan(either) == {}
    assert await scan(either, logs.text.encode()) == {}


async def test_no_value_that_a_page_breaks_over_two_lines_is_stored_logged_or_sent(
    shelf: Shelf, logs: pytest.LogCaptureFixture
) -> None:
    lines = (
        "Please write to canary.jane.doe@",
        "example.com before Friday, pay with 4792 8775",
        "7447 6219 and call 010-9876-",
        "5432; her number is 901231-",
        "1234567.",
    )
    async with shelf.running() as app:
        await app.documents.add(documents.pdf_of(lines), id="a")
        document = await completed(app, "a")
        assert document.masked == {"email": 1, "card": 1, "phone": 1, "resident_number": 1}
        (chunk,) = await app.documents.chunks("a")
        assert chunk.text == (
            "Please write to [EMAIL] before Friday, pay with [CARD] and call [PHONE]; "
            "her number is [RESIDENT_NUMBER]."
        )
        await app.drain(SOON)
        await until(lambda: not shelf.blobs(), "the original to be gone")
        for value in ("canary.jane.doe", "4792 8775", "7447 6219", "010-9876", "901231"):
            assert value not in str(await shelf.stored())
            assert value not in logs.text
            assert value not in str(shelf.embedder.received)


WRITTEN: dict[str, Callable[[str], str]] = {
    "as a file": lambda text: f"in/{text}.txt",
    "as an address": lambda text: f"https://example.org/{text}",
    "quoted": lambda text: f"https://example.org/a?q={quote(text)}",
    "as a form": lambda text: f"https://example.org/a?q={quote_plus(text)}&page=2",
}


async def test_no_value_of_any_kind_in_any_name_is_stored_logged_or_sent(
    either: Shelf, logs: pytest.LogCaptureFixture
) -> None:
    async with either.farm.app("documents") as app:  # the workers come later: all at once
        for one in CANARIES:
            for how, write in WRITTEN.items():
                name = write(one.text)
                await app.documents.add(
                    f"{how} {one.language} {one.kind}".encode(),
                    id=name,
                    title=one.text,
                    origin=name,
                    collection=f"of {one.text}",
                    metadata={one.text: name, "deep": [{"list": [one.text]}]},
                )
                found = await app.documents.get(name, collection=f"of {one.text}")
                assert leaks(repr(found).encode()) == []
                assert LABELS[one.kind] in found.ref.id
    assert await scan_without_originals(either) == {}
    async with either.running() as app:
        await app.drain(SOON)
        assert {one.state for one in await app.documents.documents(limit=1000)} == {"completed"}
        for one in CANARIES:
            result = await app.documents.search(
                f"as a file {one.language} {one.kind}: {one.text}",
                collections=[f"of {one.text}"],
                documents=[WRITTEN["quoted"](one.text)],
                metadata={one.text: WRITTEN["quoted"](one.text)},
            )
            assert [passage.text for passage in result.passages] == [
                f"quoted {one.language} {one.kind}"
            ], "it is found by the name it was given"
            assert leaks(repr(result).encode()) == []
    assert await scan(either, logs.text.encode()) == {}


async def scan_without_originals(shelf: Shelf) -> dict[str, list[str]]:
    """While documents wait their originals are there, which are none of these texts."""
    assert shelf.blobs()
    return await scan(shelf)


async def test_no_value_in_names_titles_origins_or_metadata_is_stored_logged_or_sent(
    either: Shelf, tmp_path_factory: pytest.TempPathFactory, logs: pytest.LogCaptureFixture
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
    async with either.running() as app:
        added = await app.documents.add(path, title=f"For {EMAIL}", metadata=metadata, **where)
        other = await app.documents.add(b"Another.", id=f"CV of {PHONE}.txt", origin=EMAIL, **where)
        document = await completed(app, path.name, **where)
        assert document.ref == added.ref, "it is found by the name it was given"
        assert await completed(app, document.ref.id, collection=document.ref.collection) == document
        assert other.ref != added.ref
        assert document.title == "For [EMAIL]"
        assert (document.metadata["author"], document.metadata["year"]) == ("[EMAIL]", 2026)
        assert document.metadata["card"] == "[CARD]"

        result = await app.documents.search(
            f"what did {EMAIL} write, nothing personal",
            collections=[where["collection"]],
            documents=[path.name],
            metadata={"author": EMAIL, "card": CARD_NUMBER},
        )
        assert [passage.text for passage in result.passages] == ["Nothing personal."]
        assert result.mode == "hybrid"
        assert [one.ref for one in await app.documents.documents(**where)] == [other.ref, added.ref]
        assert len(await app.documents.chunks(path.name, **where)) == 1
        await app.drain(SOON)
        assert await scan(either) == {}
        await app.documents.delete(path.name, **where)
        with pytest.raises(DocumentNotFound) as missing:
            await app.documents.get(path.name, **where)
        assert leaks(str(missing.value).encode()) == []
        with pytest.raises(ValidationError) as refused:
            await app.documents.add(b"x", id=f"{EMAIL}\n")
        assert leaks(str(refused.value).encode()) == []
    assert await scan(either, logs.text.encode()) == {}


async def test_no_value_in_the_collections_of_an_answer_is_stored_shown_or_logged(
    either: Shelf, logs: pytest.LogCaptureFixture
) -> None:
    app = either.farm.app("documents")
    answers = app.use("answers").answers
    async with app:
        names = [f"letters of {one.text}" for one in CANARIES]
        asked = await answers.ask(f"Who is {EMAIL}?", collections=[*names, names[0], "plain"])
        assert asked.collections is not None
        assert len(asked.collections) == len(names) + 1
        assert asked.collections[-1] == "plain"
        document = await app.documents.add(b"Nothing personal.", id="a", collection=names[0])
        assert document.ref.collection == asked.collections[0], "it is looked for where it is"
        view = await answers.get(asked.id)
        assert leaks(repr(view).encode()) == []
        assert await scan(either) == {}
    assert await scan(either, logs.text.encode()) == {}


def quoting(app: Penstock, error: Exception) -> None:
    """Let the parser fail, and quote the document as some do."""

    async def ask(*question: object) -> object:
        raise error

    setattr(app.documents._tools.parser, "ask", ask)  # noqa: B010


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
        await app.documents.add(CANARIES[0].text.encode(), id="a")
        document = await failed(app, "a")
        assert document.error is not None
        assert "[PHONE]" in document.error["message"]
        if isinstance(error, ParserError):
            assert document.error["type"] == "ParserError"
        # The document is told first, its job is settled a moment later.
        (dead,) = await until(app.dead_letters, "the dead letter")
        assert "[PHONE]" in str(dead.error)
        await app.documents.delete("a")  # the original, which is kept for a retry
        assert await scan(shelf) == {}
        app.documents._tools.parser.__dict__.pop("ask")
    assert await scan(shelf) == {}
    assert leaks(logs.text.encode()) == []


async def test_what_an_embedder_says_is_not_quoted(
    shelf: Shelf, logs: pytest.LogCaptureFixture
) -> None:
    """It was sent masked text only, but its answer is its own."""
    shelf.embedder.fault = "dimension"
    async with shelf.running() as app:
        await app.documents.add(f"She paid with {CARD} at noon.".encode(), id="a")
        await failed(app, "a")
        await app.documents.delete("a")
        assert await scan(shelf) == {}
    assert shelf.embedder.received == ["She paid with [CARD] at noon."]
    assert leaks(logs.text.encode()) == []


def test_no_value_is_in_what_the_command_line_says_of_errors(cli: Cli) -> None:
    broken = cli.folder / f"CV of {EMAIL}, {PHONE}.docx"
    broken.write_bytes(b"PK\x03\x04 no archive")
    large = cli.folder / f"{EMAIL} large.txt"
    large.write_text("x" * 100)
    unnamable = cli.folder / f"{EMAIL}\n.txt"
    unnamable.write_text("x")
    address = f"http://127.0.0.1:9/a?q={quote(EMAIL)}"
    limit = {"PENSTOCK_DOCUMENT_BYTES": "50"}
    said = []
    given = ["ingest", broken.name, large.name, unnamable.name, address]
    for code, command in (
        (1, given),
        (2, ["ingest", f"no {EMAIL}"]),
        (2, ["ingest", broken.name, "--watch"]),
        (1, [*given, "--json"]),
        (0, ["documents", "show", broken.name]),
        (3, ["documents", "show", f"no {EMAIL}"]),
        (3, ["documents", "retry", f"no {EMAIL}"]),
        (3, ["documents", "delete", f"no {EMAIL}", "--yes"]),
        (0, ["dead-letters", "list"]),
    ):
        done = cli(*command, code=code, environment=limit)
        said.append(done.out + done.err)
        assert leaks(said[-1].encode()) == [], command
    assert "CV of [EMAIL], [PHONE]" in said[0]
    assert "no file or folder 'no [EMAIL]'" in said[1]
