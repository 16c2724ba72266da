"""`corpus.add_url`: documents by their address, accepted at once and fetched by the workers."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock import AddressRefused, BlobMissing, Job, JobState, Penstock, QueueUnavailable
from penstock.ingest.jobs import EMBED, FETCH, PARSE
from penstock.model.document import DocumentState
from penstock.ports.queue import JobFilter
from tests.conformance.support import BACKENDS
from tests.support.documents import pdf
from tests.support.processes import Farm
from tests.support.server import Answer, CountingServer, redirect
from tests.support.shelf import LANE, SOON, Shelf, completed, failed, found
from tests.support.waiting import until

HOSTS: dict[str, Any] = {
    "min_interval_seconds": 0.0,
    "max_parallel": 4,
    "breaker_first_seconds": 0.1,
    "breaker_cap_seconds": 0.5,
}
SLUICE = b"The sluice opens at dawn."
NOON = b"The sluice opens at noon."


@pytest.fixture
def site() -> Iterator[CountingServer]:
    with CountingServer() as site:
        site.answers["/a"] = Answer(headers={"content-type": "text/plain"}, body=SLUICE)
        yield site


class Web:
    """Documents, and a server on loopback that may be fetched."""

    def __init__(self, shelf: Shelf, site: CountingServer) -> None:
        self.shelf = shelf
        self.site = site
        shelf.farm.settings |= {
            "fetch_allow": f"127.0.0.1:{site.port},localhost:{site.port}",
            "lanes": {"embedder": LANE, "host:*": HOSTS},
            "max_retries": 1,
        }

    @asynccontextmanager
    async def idle(self, **settings: Any) -> AsyncIterator[Penstock]:
        """An app that accepts, and does not work."""
        async with self.shelf.farm.app("library", **settings) as app:
            yield app

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator[Penstock]:
        async with self.shelf.running(**settings) as app:
            yield app


@pytest.fixture
def web(shelf: Shelf, site: CountingServer) -> Web:
    return Web(shelf, site)


async def test_document_is_accepted_before_a_byte_is_fetched(
    web: Web, site: CountingServer
) -> None:
    url = site.url("/a")
    site.down()
    async with web.idle() as app:
        document = await app.corpus.add_url(url)
        assert (document.ref.id, document.source) == (url, url)
        assert (document.state, document.stage, document.remote) == ("processing", "fetch", True)
        assert await app.corpus.documents() == [document]
        assert site.hits == []
        (job,) = await app.jobs()
        assert (job.kind, job.lane, job.payload["host"]) == (FETCH, "host:127.0.0.1", "127.0.0.1")
    site.up()
    async with web.running() as app:
        done = await completed(app, url)
        assert (done.generation, done.remote, done.size) == (document.generation, False, 25)
        assert (done.title, done.mime) == ("a", "text/plain")
        assert await found(app, "sluice") == [SLUICE.decode()]
        await app.drain(SOON)
        assert [job.kind for job in await app.jobs()] == [EMBED, PARSE, FETCH]
        assert web.shelf.blobs() == []
    assert len(site.hits) == 1


async def test_formats_names_and_titles_are_those_of_what_was_fetched(
    web: Web, site: CountingServer
) -> None:
    disposition = {"content-disposition": 'attachment; filename="report 7.pdf"'}
    site.answers["/get"] = redirect("/file")
    site.answers["/file"] = Answer(headers=disposition, body=pdf(pages=1))
    site.answers["/text"] = Answer(headers=disposition, body=SLUICE)
    async with web.running() as app:
        options: dict[str, Any] = {"collection": "reports", "tenant": "kim"}
        await app.corpus.add_url(
            site.url("/get?n=7"), id="seven", metadata={"n": 7}, priority="high", **options
        )
        document = await completed(app, "seven", **options)
        assert (document.mime, document.metadata) == ("application/pdf", {"n": 7})
        assert document.source == site.url("/get?n=7")
        (job,) = await app.jobs(kind=FETCH)
        assert job.result["name"] == "report 7.pdf"
        (parse,) = await app.jobs(kind=PARSE)
        assert parse.priority.name == "HIGH"
        await app.corpus.add_url(site.url("/text"), id="named")
        assert (await completed(app, "named")).title == "report 7.pdf"
        await app.corpus.add_url(site.url("/text"), id="titled", title="Seven")
        assert (await completed(app, "titled")).title == "Seven"


async def test_same_address_again_fetches_again_and_the_same_content_changes_nothing(
    web: Web, site: CountingServer
) -> None:
    url = site.url("/a")
    async with web.running() as app:
        await app.corpus.add_url(url)
        first = await completed(app, url)
        await app.drain(SOON)
        stored = web.shelf.stored()
        accepted = await app.corpus.add_url(url)
        assert accepted.generation > first.generation
        assert (accepted.live, accepted.title) == (True, first.title)
        again = await completed(app, url)
        await app.drain(SOON)
        assert len(site.hits) == 2
        assert again.generation == first.generation
        assert web.shelf.stored() == stored
        assert len(await app.jobs(kind=PARSE)) == 1
        assert web.shelf.blobs() == []

        site.answers["/a"] = Answer(body=NOON)
        await app.corpus.add_url(url)
        newer = await completed(app, url)
        assert newer.generation > accepted.generation
        assert await found(app, "sluice") == [NOON.decode()]
        await app.corpus.add_url(url, metadata={"year": 2026})
        told = await completed(app, url)
        assert (told.generation > newer.generation, told.metadata) == (True, {"year": 2026})


async def test_same_address_while_it_is_on_its_way_is_one_document_and_one_job(
    web: Web, site: CountingServer
) -> None:
    async with web.idle() as app:
        first = await app.corpus.add_url(site.url("/a"))
        second = await app.corpus.add_url(site.url("/a#top"))
        assert first == second
        assert len(await app.jobs()) == len(web.shelf.blobs()) == 1


@pytest.mark.parametrize("kept", [True, False])
async def test_original_is_kept_only_where_originals_are(
    web: Web, site: CountingServer, kept: bool
) -> None:
    async with web.running(keep_originals=kept) as app:
        for _ in range(2):
            await app.corpus.add_url(site.url("/a"), id="a")
            await completed(app, "a")
            await app.drain(SOON)
            assert [path.read_bytes() for path in web.shelf.blobs()] == kept * [SLUICE]


@pytest.mark.parametrize("what", ["upload", "fetch", "delete"])
async def test_slow_fetch_never_overwrites_what_came_after_it(
    web: Web, site: CountingServer, what: str
) -> None:
    site.answers["/slow"] = Answer(delay=1.0, body=b"long ago")
    async with web.running() as app:
        await app.corpus.add_url(site.url("/slow"), id="a")
        await until(lambda: site.at("/slow"), "the request")
        match what:
            case "upload":
                await app.corpus.add(NOON, id="a")
            case "fetch":
                await app.corpus.add_url(site.url("/a"), id="a")
            case _:
                await app.corpus.delete("a")
        await app.drain(SOON)
        (late,) = [job for job in await app.jobs(kind=FETCH) if job.result == {"late": True}]
        assert late.state is JobState.COMPLETED
        texts = {"upload": [NOON.decode()], "fetch": [SLUICE.decode()], "delete": []}
        assert await found(app, "sluice long ago") == texts[what]
        assert web.shelf.blobs() == []


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (Answer(404), "FetchError", "127.0.0.1: HTTP 404"),
        (Answer(403), "FetchError", "127.0.0.1: HTTP 403: it is not open to everybody"),
        (Answer(body=b"x" * 200_001), "DocumentTooLarge", "over 200,000 bytes"),
        (redirect("file:///etc/passwd"), "AddressRefused", "only http and https"),
        (redirect("http://10.0.0.1/"), "AddressRefused", "a private or reserved address"),
        (Answer(500), "Unavailable", "127.0.0.1: HTTP 500"),
        (Answer(reset=True), "Unavailable", "127.0.0.1"),
    ],
    ids=str,
)
async def test_what_cannot_be_fetched_fails_and_is_fetched_when_tried_again(
    web: Web, site: CountingServer, answer: Answer, kind: str, says: str
) -> None:
    site.answers["/b"] = answer
    async with web.running(document_bytes=200_000) as app:
        await app.corpus.add_url(site.url("/b"), id="b")
        document = await failed(app, "b")
        assert document.error is not None
        assert (document.error["type"], document.stage) == (kind, "fetch")
        assert says in document.message
        assert document.remote
        site.answers["/b"] = Answer(body=SLUICE)
        again = await app.corpus.retry("b")
        assert (again.stage, again.error) == ("fetch", document.error)
        assert (await completed(app, "b")).error is None
        assert await found(app, "sluice") == [SLUICE.decode()]
        await until(lambda: not web.shelf.blobs(), "the originals to be gone")


async def test_failed_fetch_leaves_the_version_before_to_be_found(
    web: Web, site: CountingServer
) -> None:
    async with web.running() as app:
        await app.corpus.add_url(site.url("/a"), id="a")
        before = await completed(app, "a")
        site.answers["/a"] = Answer(404)
        await app.corpus.add_url(site.url("/a"), id="a")
        document = await failed(app, "a")
        assert (document.live, document.title, document.size) == (True, before.title, before.size)
        assert await found(app, "sluice") == [SLUICE.decode()]


async def test_dead_letter_of_a_fetch_can_be_redriven(web: Web, site: CountingServer) -> None:
    site.answers["/b"] = Answer(404)
    async with web.running() as app:
        await app.corpus.add_url(site.url("/b"), id="b")
        await failed(app, "b")
        await until(app.dead_letters, "the dead letter")
        site.answers["/b"] = Answer(body=SLUICE)
        assert await app.redrive(JobFilter(kind=FETCH)) == 1

        async def done() -> bool:
            return (await app.corpus.get("b")).state is DocumentState.COMPLETED

        await until(done, "the document", SOON)


async def test_host_that_is_away_for_long_fails_its_documents_after_the_time_given(
    web: Web, site: CountingServer
) -> None:
    """Two documents, so that it is an outage of the host, which spends no attempts."""
    site.down()
    async with web.running(fetch_seconds=2.0) as app:
        for name in ("a", "b"):
            await app.corpus.add_url(site.url(f"/{name}"), id=name)
        for name in ("a", "b"):
            document = await failed(app, name)
            assert document.error is not None
            assert document.error["type"] in ("DeadlineExceeded", "Unavailable")
    site.up()
    async with web.running() as app:
        await app.corpus.retry("a")
        await completed(app, "a")


async def test_host_that_comes_back_in_time_costs_nothing(web: Web, site: CountingServer) -> None:
    site.down()
    async with web.running(max_retries=3) as app:
        for name in ("a", "b", "c"):
            await app.corpus.add_url(site.url("/a"), id=name)

        async def lane_is_open() -> bool:
            lanes = {lane.name: lane for lane in await app.lane_infos()}
            return lanes["host:127.0.0.1"].breaker == "open"

        await until(lane_is_open, "the breaker", SOON)
        site.up()
        for name in ("a", "b", "c"):
            await completed(app, name)


async def test_document_whose_fetch_was_never_enqueued_is_fetched_all_the_same(
    web: Web, site: CountingServer
) -> None:
    async with web.idle() as app:
        await app.corpus.add_url(site.url("/a"), id="a", title="As given")
        web.shelf.farm.execute("DELETE FROM jobs")
    async with web.running() as app:
        assert (await completed(app, "a")).title == "As given"
        assert [job.kind for job in await app.jobs()] == [EMBED, PARSE, FETCH]


async def test_document_whose_address_is_lost_fails(web: Web, site: CountingServer) -> None:
    async with web.idle() as app:
        await app.corpus.add_url(site.url("/a"), id="a")
        web.shelf.farm.execute("DELETE FROM jobs")
        (blob,) = web.shelf.blobs()
        blob.unlink()
    async with web.running() as app:
        document = await failed(app, "a")
        assert document.error is not None
        assert document.error["type"] == "BlobMissing"
        with pytest.raises(BlobMissing):
            await app.corpus.retry("a")
        await app.corpus.delete("a")


async def test_document_whose_fetch_was_cancelled_fails_and_can_be_tried_again(
    web: Web, site: CountingServer
) -> None:
    async with web.idle() as app:
        await app.corpus.add_url(site.url("/a"), id="a")
        await app.queue.cancel(JobFilter(kind=FETCH))
    async with web.running() as app:
        assert (await failed(app, "a")).message == "ingest.fetch was cancelled"
        await app.corpus.retry("a")
        await completed(app, "a")


async def test_run_after_the_bytes_arrived_only_hands_on(
    web: Web, site: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue goes away right after the store has taken the bytes."""
    refused = 0
    async with web.running() as app:
        enqueue = app.queue.enqueue

        async def away(batch: Any, conn: Any = None) -> list[Job]:
            nonlocal refused
            if batch.kind == PARSE and not refused:
                refused += 1
                raise QueueUnavailable("cut off")
            return await enqueue(batch, conn)

        monkeypatch.setattr(app.queue, "enqueue", away)
        await app.corpus.add_url(site.url("/a"), id="a")
        await completed(app, "a")
        await app.drain(SOON)
        assert (refused, len(site.hits)) == (1, 1)
        await until(lambda: not web.shelf.blobs(), "the originals to be gone")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1/", "a loopback address. If it is meant, name it in the setting"),
        ("http://localhost:8000/", "the setting fetch_allow"),
        ("http://169.254.169.254/", "a link-local address"),
        ("http://me:secret@example.org/", "a user name or password"),
        ("file:///etc/passwd", "only http and https"),
    ],
)
async def test_what_is_not_to_be_fetched_is_refused_at_once(web: Web, url: str, why: str) -> None:
    async with web.idle() as app:
        with pytest.raises(AddressRefused, match=why):
            await app.corpus.add_url(url)
        assert [*await app.corpus.documents(), *await app.jobs(), *web.shelf.blobs()] == []


async def test_name_that_leads_to_this_machine_fails_where_it_is_resolved(
    web: Web, site: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(self: Any, host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr("penstock.engine.guard.Resolver.__call__", resolve)
    async with web.running() as app:
        await app.corpus.add_url("http://innocent.example/", id="a")
        assert (await failed(app, "a")).message == (
            "innocent.example:80 is not fetched: it is a loopback address. "
            "If it is meant, name it in the setting fetch_allow"
        )


SECRETS = ("canary.kim@example.com", "canary-token", "203.0.113.77", "010-9876-5432")


async def test_no_address_is_stored_or_logged_with_what_is_personal_or_secret_in_it(
    web: Web, site: CountingServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "penstock")
    caplog.set_level(logging.INFO)
    email, token, number, phone = SECRETS
    query = f"?of={email}&access_token={token}&tel={phone}"
    site.answers["/gone"] = redirect(f"http://{number}:81/{query}")
    site.answers["/gz"] = Answer(headers={"content-encoding": "gzip"}, body=b"no gzip")
    async with web.running() as app:
        good = await app.corpus.add_url(site.url(f"/a/{email}{query}"))
        await completed(app, good.ref.id)
        assert (await app.corpus.get(good.ref.id)).title == "[EMAIL]"
        assert "of=[EMAIL]&access_token=***" in good.source
        other = await app.corpus.add_url(site.url(f"/a/{email}{query}x"))
        assert other.ref != good.ref, "two that look the same are two"
        for path in ("/gone", "/gz", "/hang-up"):
            site.answers["/hang-up"] = Answer(reset=True)
            document = await app.corpus.add_url(site.url(f"{path}{query}"))
            assert (await failed(app, document.ref.id)).message
        far = await app.corpus.add_url(f"http://{number.replace('203', '93')}/", id="far")
        assert far.ref.id == "far"
        (job,) = [job for job in await app.jobs() if job.payload.get("document") == "far"]
        assert (job.lane or "").startswith("host:[IP_ADDRESS]-")
        await app.corpus.delete("far")
        await app.queue.cancel(JobFilter(ids=[job.id]))
        await app.drain(SOON)
    web.shelf.farm.query("PRAGMA wal_checkpoint(PASSIVE)")
    content = b"".join(
        path.read_bytes()
        for path in web.shelf.farm.folder.rglob("*")
        if path.is_file() and "blobs" not in str(path)
    )
    assert len(content) > 100_000
    for secret in (*SECRETS, "93.0.113.77", "canary"):
        assert secret.encode() not in content, secret
        assert secret not in caplog.text, secret


async def test_each_host_has_its_lane_also_on_the_way(web: Web, site: CountingServer) -> None:
    site.answers["/b"] = redirect(site.url("/a", host="localhost"))
    async with web.running() as app:
        await app.corpus.add_url(site.url("/b"), id="b")
        await completed(app, "b")
        lanes = {lane.name for lane in await app.lane_infos()}
        assert {"host:127.0.0.1", "host:localhost", "fetch"} <= lanes


@pytest.mark.parametrize("queue", ["postgres", "redis"])
async def test_queue_and_documents_apart(
    queue: str, web: Web, site: CountingServer, tmp_path: Any
) -> None:
    farm = Farm(tmp_path, url=BACKENDS[queue].url(tmp_path))
    farm.settings |= web.shelf.farm.settings
    farm.settings["store"] = BACKENDS["postgres"].url(tmp_path)
    farm.settings["blobs"] = f"{tmp_path}/jobs.db-blobs"
    apart = Shelf(farm, web.shelf.embedder)
    farm.settings["lanes"] = {"embedder": LANE, "host:*": HOSTS}

    async def away(*arguments: Any, **options: Any) -> Job:
        raise QueueUnavailable("cut off")

    async with apart.farm.app("library") as app:
        setattr(app.corpus, "_enqueue", away)  # noqa: B010
        with pytest.raises(QueueUnavailable):
            await app.corpus.add_url(site.url("/a"), id="a")
    async with apart.running() as app:
        first = await completed(app, "a")
        await app.corpus.add_url(site.url("/a"), id="a")
        assert (await completed(app, "a")).generation == first.generation
        assert await found(app, "sluice") == [SLUICE.decode()]
        await app.drain(SOON)
    assert apart.blobs() == []
