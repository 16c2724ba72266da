"""Scanned documents on their way into the store: read by tesseract or by a model on loopback."""

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock import JobState, Penstock
from penstock.documents.jobs import SCAN
from penstock.errors import ConfigError
from penstock.model.document import Document
from tests.support import scans
from tests.support.document_app import LANE, SOON, Shelf, completed, failed, found, receipts_of
from tests.support.scans import MODEL, VisionServer, picture, saved
from tests.support.waiting import look_on, until

EMAIL, PHONE = "canary.jane@example.com", "010-9876-5432"
RAW = (EMAIL, PHONE, PHONE.replace("-", ""), "canary", "123-456789")
TEXT = "The sluice opens at dawn, a quarter turn at a time."
LETTER = f"Write to {EMAIL} or call {PHONE}."
TEXTS = ["The first picture shows a turbine.", LETTER, "The third one shows a gate."]
PICTURES = [picture(f"Picture {number}") for number in range(3)]
AWAY = ("429", "500", "hang")
USELESS = {"empty": "an empty answer"}
REFUSED = {"far too long": "body over 1,000,000 bytes", "400": "HTTP 400"}


@pytest.fixture
def looked_at(shelf: Shelf, vision: VisionServer) -> Shelf:
    """Documents whose pictures are read by a model."""
    vision.texts = list(TEXTS)
    _configure(shelf, vision.config())
    shelf.farm.settings["scans"] = "model"
    shelf.farm.settings["lanes"] = {
        "embedder": LANE,
        "llm.ingest": {**LANE, "max_parallel": 2, "timeout_seconds": 10.0},
    }
    return shelf


def _configure(shelf: Shelf, section: str, ingest: str = MODEL) -> None:
    file = Path(shelf.farm.settings["config_file"])
    file.write_text(file.read_text().replace(MODEL, ingest) + section)


def contents(shelf: Shelf) -> dict[str, bytes]:
    """Of every file but the originals. Another process reads them: who closes a file that SQLite
    has open in the same process takes away its locks."""
    files = [path for path in shelf.farm.folder.rglob("*") if path.is_file()]
    return {
        path.name: subprocess.run(["cat", path], capture_output=True, check=True).stdout
        for path in files
        if path not in shelf.blobs()
    }


def leaks(shelf: Shelf, *others: bytes) -> dict[str, list[str]]:
    """Raw values in the bytes of any file, and in what was sent."""
    content = contents(shelf)
    content["embedder"] = b"".join(hit.body for hit in shelf.embedder.requests)
    content["others"] = b"".join(others)
    found = {name: [raw for raw in RAW if raw.encode() in text] for name, text in content.items()}
    return {name: values for name, values in found.items() if values}


async def pages(app: Penstock, name: str) -> dict[str, tuple[int, int] | None]:
    return {chunk.text: chunk.pages for chunk in await app.documents.chunks(name)}


def paid(vision: VisionServer) -> list[int]:
    """How often each picture was sent."""
    sent = vision.pictures
    return [sent.count(one) for one in dict.fromkeys(sent)]


@pytest.mark.usefixtures("tesseract")
async def test_scanned_pages_are_found_by_what_stands_on_them(shelf: Shelf) -> None:
    data = scans.pdf(TEXT, picture("Grease the bearings", "every 400 hours.", LETTER))
    async with shelf.running(scans="ocr") as app:
        await app.documents.add(data, id="a")
        document = await completed(app, "a")
        assert document.masked == {"email": 1, "phone": 1}
        (text,) = await found(app, "bearings")
        assert "every 400 hours" in text
        assert "Write to [EMAIL] or call [PHONE]." in text
        assert (await pages(app, "a"))[text] in ((1, 2), (2, 2))
        assert leaks(shelf) == {}
    assert shelf.blobs() == []
    assert shelf.farm.query("SELECT count(*) FROM scans") == [(0,)]


@pytest.mark.usefixtures("tesseract")
async def test_pictures_are_documents_in_every_language(shelf: Shelf) -> None:
    first = picture("水門は夜明けに開く。", "閉まるのは日が沈む時だ。")
    second = picture("수문은 새벽에 열린다.", "해가 지면 닫힌다.", "관리인이 지켜본다.")
    data = saved(first, "TIFF", second)
    async with shelf.running(scans="ocr", ocr_languages="eng+jpn+kor") as app:
        await app.documents.add(data, id="a")
        assert (await completed(app, "a")).mime == "image/tiff"
        ((text, where),) = (await pages(app, "a")).items()
        assert where == (1, 2)
        assert "水門は夜明けに開く。" in text
        assert "관리인이 지켜본다." in text
        assert len(await found(app, "관리인이")) == 1


@pytest.mark.usefixtures("tesseract")
async def test_process_that_could_not_read_scans_does_not_start(
    shelf: Shelf, vision: VisionServer
) -> None:
    with pytest.raises(ConfigError, match="tesseract-ocr-tlh"):
        async with shelf.running(scans="ocr", ocr_languages="eng+tlh"):
            pass
    _configure(shelf, vision.config("LOOKER_KEY"))
    with pytest.raises(ConfigError, match="set LOOKER_KEY"):
        async with shelf.running(scans="model"):
            pass
    app = shelf.farm.app("documents", scans="model")
    async with app:  # to look, or to hand in, nothing is needed
        assert (await app.documents.add(saved(picture("a"), "PNG"), id="a")).state == "processing"


async def test_model_is_asked_for_pages_without_text_only(
    looked_at: Shelf, vision: VisionServer
) -> None:
    data = scans.pdf(PICTURES[0], TEXT, PICTURES[1], bookmarks=["Turbine", "Sluice", "Letter"])
    async with looked_at.running() as app:
        await app.documents.add(data, id="a")
        document = await completed(app, "a")
        assert (document.masked, document.mime) == ({"email": 1, "phone": 1}, "application/pdf")
        assert await pages(app, "a") == {
            f"{TEXTS[0]}\n\n{TEXT}\n\nWrite to [EMAIL] or call [PHONE].": (1, 3)
        }
        assert len(await found(app, "turbine")) == 1
    assert paid(vision) == [1, 1]
    question = json.loads(vision.requests[0].body)
    assert question["model"] == MODEL
    assert "authorization" not in vision.requests[0].headers
    assert looked_at.blobs() == []


async def test_key_of_the_model_is_read_from_the_environment_and_stored_nowhere(
    shelf: Shelf, vision: VisionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    vision.texts = ["A page."]
    _configure(shelf, vision.config("LOOKER_KEY"))
    monkeypatch.setenv("LOOKER_KEY", "canary-key")
    async with shelf.running(scans="model") as app:
        await app.documents.add(saved(PICTURES[0], "PNG"), id="a")
        await completed(app, "a")
    assert vision.requests[0].headers["authorization"] == "Bearer canary-key"
    assert leaks(shelf) == {}


async def test_nothing_is_sent_to_a_model_unless_that_is_asked_for(
    looked_at: Shelf, vision: VisionServer
) -> None:
    """Although one is configured, for other work."""
    async with looked_at.running(scans="none") as app:
        await app.documents.add(saved(PICTURES[0], "PNG"), id="a")
        document = await failed(app, "a")
        assert "set `scans: ocr`" in document.message
        await app.documents.add(scans.pdf(TEXT, PICTURES[0]), id="b")
        await completed(app, "b")
    assert vision.requests == []


@pytest.mark.parametrize("fault", AWAY)
async def test_scan_waits_out_a_model_that_is_away(
    looked_at: Shelf, vision: VisionServer, fault: str
) -> None:
    vision.fault = fault
    if fault == "hang":
        looked_at.farm.settings["lanes"]["llm.ingest"]["timeout_seconds"] = 2.0
    async with looked_at.running() as app:
        for name, page in zip("ab", PICTURES, strict=False):
            await app.documents.add(saved(page, "PNG"), id=name)
        await until(lambda: len(vision.requests) >= 2, "two tries", SOON)
        vision.fault = None
        for name in "ab":
            await completed(app, name)


async def test_model_down_costs_no_attempt_and_others_nothing(
    looked_at: Shelf, vision: VisionServer
) -> None:
    vision.down()
    async with looked_at.running(max_retries=0) as app:
        for name, page in zip("abc", PICTURES, strict=True):
            await app.documents.add(saved(page, "PNG"), id=name)

        async def all_wait() -> bool:
            lanes = {lane.name: lane for lane in await app.lane_infos()}
            jobs = await app.jobs(kind=SCAN, states=["queued"])
            is_open = "llm.ingest" in lanes and lanes["llm.ingest"].breaker == "open"
            # One that makes the try has begun its attempt, and is not among them.
            return is_open and [job.attempts for job in jobs] == [0, 0, 0]

        await until(all_wait, "the breaker to open", SOON)
        await app.documents.add(TEXT.encode(), id="d")
        await completed(app, "d")
        vision.up()
        for name in "abc":
            await completed(app, name)
        assert await app.dead_letters() == []


@pytest.mark.parametrize("fault", [*USELESS, *REFUSED])
async def test_useless_answer_fails_the_document_and_costs_no_page_twice(
    looked_at: Shelf,
    vision: VisionServer,
    fault: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    vision.fault, vision.fault_from = fault, 3
    async with looked_at.running(max_retries=1) as app:
        await app.documents.add(scans.pdf(*PICTURES), id="a")
        document = await failed(app, "a")
        assert (USELESS | REFUSED)[fault] in document.message
        assert ("page 3" in document.message) == (fault in USELESS)
        tries = 2 if fault in USELESS else 1
        assert paid(vision) == [1, 1, tries]
        assert leaks(looked_at, caplog.text.encode()) == {}
        vision.fault = None
        await app.documents.retry("a")
        await completed(app, "a")
        assert paid(vision) == [1, 1, tries + 1]


async def test_no_personal_data_of_a_scan_is_stored_logged_or_sent(
    looked_at: Shelf, vision: VisionServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither while it is under way, nor in the end. A number whose meaning stands on the page
    before is masked in what is kept of its page already."""
    caplog.set_level("DEBUG")
    vision.texts = [LETTER, "The number of the bank account is", "110-123-456789."]
    told = scans.pdf(*PICTURES, f"{TEXT} The bank account:", picture("Picture 3"))
    vision.texts.append("220-123-456789.")
    vision.held_from = 3
    gate = vision.gate = threading.Event()
    embed = looked_at.embedder
    embed.fault = "500"
    async with looked_at.running() as app:
        await app.documents.add(told, id="a")
        await until(lambda: len(vision.requests) == 3, "the third page", SOON)
        assert leaks(looked_at, caplog.text.encode()) == {}
        kept = looked_at.farm.query("SELECT page, text FROM scans WHERE page < 3 ORDER BY page")
        assert kept == [
            (1, "Write to [EMAIL] or call [PHONE]."),
            (2, "The number of the bank account is"),
        ]
        gate.set()
        await until(lambda: embed.requests, "the embedder to be asked", SOON)
        last = looked_at.farm.query("SELECT page, text FROM scans WHERE page > 2 ORDER BY page")
        assert last == [(3, "[BANK_ACCOUNT]."), (5, "[BANK_ACCOUNT].")]
        embed.fault = None
        document = await completed(app, "a")
        assert document.masked == {"email": 1, "phone": 1, "bank_account": 2}
        await app.drain(SOON)
    assert leaks(looked_at, caplog.text.encode()) == {}


async def test_death_in_the_midst_costs_no_page_twice_and_leaves_no_picture(
    looked_at: Shelf, vision: VisionServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    environment = {"TMPDIR": str(temporary)}
    vision.fault, vision.fault_from = "hang", 3
    worker = await looked_at.farm.start("documents", environment=environment)
    async with looked_at.farm.app("documents") as app:
        await app.documents.add(scans.pdf(*PICTURES), id="a")
        await until(lambda: len(vision.requests) == 3, "the third page", SOON)
        await worker.kill()
        assert not any(b"\x89PNG" in content for content in contents(looked_at).values())
        assert list(temporary.iterdir()) == []
        vision.fault = None
        await looked_at.farm.start("documents", environment=environment)
        await completed(app, "a")
        receipts = await receipts_of(app, SCAN)
    assert paid(vision) == [1, 1, 2]
    told = [one.receipt for one in receipts if one.receipt is not None]
    assert [one.kept for one in told] == ["page text"] * 3, "the first ask for page 3 has no answer"
    assert all(one.model and one.seconds for one in told)
    assert list(temporary.iterdir()) == []


async def test_long_document_takes_several_runs_and_no_attempt(
    looked_at: Shelf, vision: VisionServer
) -> None:
    vision.delay = 2.0
    looked_at.farm.settings["lanes"]["llm.ingest"]["timeout_seconds"] = 20.0
    many = [picture(f"Picture {number}") for number in range(6)]
    vision.texts = [f"Page {number}." for number in range(6)]
    async with looked_at.running(max_retries=0) as app:
        await app.documents.add(scans.pdf(*many), id="a")
        await completed(app, "a")
        (job,) = await app.jobs(kind=SCAN)
        assert job.releases >= 1
        texts = await pages(app, "a")
        assert texts == {"\n\n".join(vision.texts): (1, 6)}
    assert paid(vision) == [1] * 6


async def test_two_requests_at_a_time_at_most(looked_at: Shelf, vision: VisionServer) -> None:
    gate = vision.gate = threading.Event()
    looked_at.farm.settings["lanes"]["llm.ingest"]["timeout_seconds"] = SOON
    async with looked_at.running(max_workers=10) as app:
        for name in "abcdef":
            await app.documents.add(saved(picture(f"The page {name}"), "PNG"), id=name)
        vision.texts = [f"Page {name}" for name in "abcdef"]
        await until(lambda: len(vision.requests) == 2, "two requests", SOON)
        await look_on(0.3)
        assert len(vision.requests) == 2
        vision.gate, vision.delay = None, 0.2
        gate.set()
        for name in "abcdef":
            await completed(app, name)
    spans = vision.spans(scans.PATH)
    assert max(sum(a <= at < b for a, b in spans) for at, _ in spans) == 2


async def test_change_of_who_reads_makes_a_document_worth_another_look(
    looked_at: Shelf, vision: VisionServer
) -> None:
    data = scans.pdf(TEXT, PICTURES[0])

    async def add(**settings: Any) -> Document:
        async with looked_at.running(**settings) as app:
            await app.documents.add(data, id="a")
            return await completed(app, "a")

    plain = await add(scans="none")
    assert (await add(scans="none")).generation == plain.generation
    seen = await add()
    assert seen.generation > plain.generation
    assert (await add()).generation == seen.generation
    _configure(looked_at, "", ingest="other")
    assert (await add()).generation > seen.generation
    assert len(vision.requests) == 2


async def test_scan_job_that_was_cancelled_fails_its_document(
    looked_at: Shelf, vision: VisionServer
) -> None:
    vision.fault = "hang"
    async with looked_at.running() as app:
        await app.documents.add(saved(PICTURES[0], "PNG"), id="a")
        await until(lambda: vision.requests, "the request", SOON)
        (job,) = await app.jobs(kind=SCAN)
        await app.cancel(job.id)
        assert (await failed(app, "a")).message == "ingest.scan was cancelled"


async def test_document_that_takes_long_is_not_taken_for_lost(
    looked_at: Shelf, vision: VisionServer
) -> None:
    vision.delay = 3.0
    async with looked_at.running() as app:
        await app.documents.add(saved(PICTURES[0], "PNG"), id="a")
        await until(lambda: vision.requests, "the request", SOON)
        looked_at.farm.execute("UPDATE documents SET accepted_at = accepted_at - 3600")
        await completed(app, "a")
        await app.drain(SOON)
        assert [job.state for job in await app.jobs(kind=SCAN)] == [JobState.COMPLETED]


def test_reading_by_a_model_needs_a_model(shelf: Shelf) -> None:
    with pytest.raises(ConfigError, match=r"models: \{ingest: NAME\}"):
        shelf.farm.app("documents", scans="model")
