"""Parts of ingestion together that are tested alone elsewhere: addresses, scans, buckets, names."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Job, Penstock
from penstock.documents.jobs import FETCH, PARSE
from penstock.documents.pii.kinds import PiiSpan
from penstock.documents.pii.presidio import PresidioNames
from penstock.errors import DocumentNotFound, QueueUnavailable
from penstock.model.document import DocumentState
from penstock.model.ids import new_id
from penstock.ports.queue import JobFilter
from tests.support import scans
from tests.support.buckets import KEYS, Bucket, s3_bucket, s3_url
from tests.support.counting_server import Answer, CountingServer
from tests.support.document_app import LANE, SOON, Shelf, completed, failed, found
from tests.support.scans import VisionServer, picture
from tests.support.tcp_proxy import Proxy
from tests.support.toy_names import PERSON, make_model
from tests.support.waiting import until
from tests.support.web_documents import HOSTS, SLUICE, Web

LATER = 60.0
TRIES = 5
BREAKER = {"breaker_first_seconds": 0.1, "breaker_cap_seconds": 1.0, "probe_seconds": 0.3}


@pytest.fixture
def proxied(web: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Bucket, Proxy]]:
    """A bucket for originals, and what stands before it."""
    for variable, value in KEYS.items():
        monkeypatch.setenv(variable, value)
    name = f"test-{new_id()}"
    with s3_bucket(name) as bucket, Proxy(s3_url()) as proxy:
        web.shelf.farm.settings |= {
            "blobs": f"s3://{name}/originals?endpoint={proxy.url}",
            "lanes": {
                "embedder": {**LANE, "timeout_seconds": LATER},
                "llm.ingest": {**LANE, "timeout_seconds": LATER},
                "host:*": HOSTS,
                "blobs": BREAKER,
            },
            # The first to fail is not run again before there is a second witness.
            "retry_base_seconds": 5.0,
        }
        yield bucket, proxy


def configure(shelf: Shelf, section: str) -> None:
    file = Path(shelf.farm.settings["config_file"])
    file.write_text(file.read_text() + section)


def read_by(shelf: Shelf, vision: VisionServer, *texts: str) -> None:
    """Let a model read pictures."""
    vision.texts = list(texts)
    configure(shelf, vision.config())
    shelf.farm.settings["scans"] = "model"


async def tries_of_the_bucket(app: Penstock, tries: set[float | None]) -> int:
    for lane in await app.lane_infos():
        if lane.name == "blobs" and lane.breaker == "open":
            tries.add(lane.retry_at)
    return len(tries)


async def test_names_are_never_searched_for_on_the_event_loop(
    web: Web,
    site: CountingServer,
    vision: VisionServer,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A model takes seconds to load, and is used by one thread at a time: whoever waits for it on
    the loop holds up every job of the process."""
    read_by(web.shelf, vision, f"{PERSON} opens the sluice.")
    model = make_model(tmp_path_factory.mktemp("models") / "toy")
    configure(web.shelf, f"names:\n  models: {{xx: {model}}}\n")
    find, here, wrong = PresidioNames._find, threading.current_thread(), []

    def noted(self: PresidioNames, piece: str) -> list[PiiSpan]:
        if threading.current_thread() is here:
            wrong.append(piece)
        return find(self, piece)

    monkeypatch.setattr(PresidioNames, "_find", noted)
    site.answers["/scan"] = Answer(body=scans.pdf(picture("A sluice")))
    site.answers["/gone"] = Answer(404)
    async with web.running() as app:
        for name in ("a", "scan", "gone"):
            await app.documents.add_url(site.url(f"/{name}"), id=name)
        await completed(app, "a")
        await completed(app, "scan")
        assert (await app.documents.wait("gone", timeout=SOON)).state is DocumentState.FAILED
        assert await found(app, "opens the sluice") == [
            "[PERSON] opens the sluice.",
            SLUICE.decode(),
        ]
    assert wrong == []


async def test_scan_fetched_from_an_address_is_read_from_the_bucket(
    web: Web, site: CountingServer, vision: VisionServer, proxied: tuple[Bucket, Proxy]
) -> None:
    bucket, _ = proxied
    read_by(web.shelf, vision, "The gate is shut.", "The gate is open.")
    site.answers["/scan"] = Answer(body=scans.pdf(picture("One"), "Text.", picture("Two")))
    async with web.running() as app:
        await app.documents.add_url(site.url("/scan"), id="scan")
        await completed(app, "scan")
        (text,) = await found(app, "gate")
        assert "The gate is shut." in text
        await app.drain(SOON)
    assert bucket.names() == []


async def test_fetches_wait_out_a_bucket_that_is_away_and_spend_no_attempt(
    web: Web, site: CountingServer, proxied: tuple[Bucket, Proxy]
) -> None:
    bucket, proxy = proxied
    names = ("a", "b", "c")
    async with web.idle() as app:
        for name in names:
            await app.documents.add_url(site.url("/a"), id=name)
    proxy.leave()
    async with web.running() as app:
        tries: set[float | None] = set()

        async def outage() -> bool:
            return await tries_of_the_bucket(app, tries) > TRIES

        await until(outage, "more tries than a job has attempts", LATER)
        assert max(job.attempts for job in await app.jobs(kind=FETCH)) <= 2
        proxy.come_back()
        for name in names:
            await completed(app, name)
        await app.drain(LATER)
    assert bucket.names() == []


async def test_bucket_that_goes_away_while_an_address_is_fetched_is_not_the_hosts_fault(
    web: Web, site: CountingServer, proxied: tuple[Bucket, Proxy]
) -> None:
    bucket, proxy = proxied
    gate = threading.Event()
    site.answers["/slow"] = Answer(body=SLUICE, until=gate.is_set)
    names = ("a", "b")
    async with web.running() as app:
        for name in names:
            await app.documents.add_url(site.url("/slow"), id=name)
        await until(lambda: len(site.at("/slow")) == 2, "both to be asked for", LATER)
        proxy.leave()
        gate.set()
        tries: set[float | None] = set()

        async def outage() -> bool:
            return await tries_of_the_bucket(app, tries) > TRIES

        await until(outage, "more tries than a job has attempts", LATER)
        lanes = {lane.name: lane.breaker for lane in await app.lane_infos()}
        assert lanes["host:127.0.0.1"] == "closed"
        proxy.come_back()
        for name in names:
            await completed(app, name)
        await app.drain(LATER)
    assert bucket.names() == []


async def test_while_the_bucket_is_away_documents_that_do_not_need_it_are_mended(
    web: Web, site: CountingServer, proxied: tuple[Bucket, Proxy]
) -> None:
    _, proxy = proxied

    async def away(*arguments: Any, **options: Any) -> Job:
        raise QueueUnavailable("cut off")

    async with web.idle() as app:
        enqueue = app.documents._enqueue
        setattr(app.documents, "_enqueue", away)  # noqa: B010
        with pytest.raises(QueueUnavailable):
            await app.documents.add_url(site.url("/a"), id="without a job")
        setattr(app.documents, "_enqueue", enqueue)  # noqa: B010
        await app.documents.add(b"some text", id="cancelled")
        await app.queue.cancel(JobFilter(kind=PARSE))
    proxy.leave()
    async with web.running() as app:
        assert (await failed(app, "cancelled")).message == "ingest.parse was cancelled"
        proxy.come_back()
        await completed(app, "without a job")


async def test_document_is_deleted_although_its_original_cannot_be_now(
    web: Web, proxied: tuple[Bucket, Proxy]
) -> None:
    _, proxy = proxied
    async with web.idle() as app:
        await app.documents.add(b"some text", id="a")
        proxy.leave()
        await app.documents.delete("a")
        with pytest.raises(DocumentNotFound):
            await app.documents.get("a")
        proxy.come_back()
