"""Documents by their address: what is refused, away, lost or late, and what becomes of it."""

import asyncio
from typing import Any

import pytest

from penstock import Job
from penstock.documents.jobs import EMBED, FETCH, PARSE
from penstock.errors import AddressRefused, BlobMissing, QueueUnavailable
from penstock.model.document import DocumentState
from penstock.ports.documents import Pending
from penstock.ports.queue import JobFilter
from tests.support.counting_server import Answer, CountingServer, redirect
from tests.support.document_app import SOON, completed, failed, found
from tests.support.waiting import until
from tests.support.web_documents import SLUICE, Web


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
        await app.documents.add_url(site.url("/b"), id="b")
        document = await failed(app, "b")
        assert document.error is not None
        assert (document.error["type"], document.phase) == (kind, "fetch")
        assert says in document.message
        assert document.remote
        site.answers["/b"] = Answer(body=SLUICE)
        again = await app.documents.retry("b")
        assert (again.phase, again.error) == ("fetch", document.error)
        assert (await completed(app, "b")).error is None
        assert await found(app, "sluice") == [SLUICE.decode()]
        await until(lambda: not web.shelf.blobs(), "the originals to be gone")


async def test_failed_fetch_leaves_the_version_before_to_be_found(
    web: Web, site: CountingServer
) -> None:
    async with web.running() as app:
        await app.documents.add_url(site.url("/a"), id="a")
        before = await completed(app, "a")
        site.answers["/a"] = Answer(404)
        await app.documents.add_url(site.url("/a"), id="a")
        document = await failed(app, "a")
        assert document.searchable
        assert (document.title, document.size) == (before.title, before.size)
        assert await found(app, "sluice") == [SLUICE.decode()]


async def test_dead_letter_of_a_fetch_can_be_redriven(web: Web, site: CountingServer) -> None:
    site.answers["/b"] = Answer(404)
    async with web.running() as app:
        await app.documents.add_url(site.url("/b"), id="b")
        await failed(app, "b")
        await until(app.dead_letters, "the dead letter")
        site.answers["/b"] = Answer(body=SLUICE)
        assert await app.redrive(JobFilter(kind=FETCH)) == 1

        async def done() -> bool:
            return (await app.documents.get("b")).state is DocumentState.COMPLETED

        await until(done, "the document", SOON)


async def test_host_that_is_away_for_long_fails_its_documents_after_the_time_given(
    web: Web, site: CountingServer
) -> None:
    """Two documents, so that it is an outage of the host, which spends no attempts."""
    site.down()
    async with web.running(fetch_seconds=2.0) as app:
        for name in ("a", "b"):
            await app.documents.add_url(site.url(f"/{name}"), id=name)
        for name in ("a", "b"):
            document = await failed(app, name)
            assert document.error is not None
            assert document.error["type"] in ("DeadlineExceeded", "Unavailable")
    site.up()
    async with web.running() as app:
        await app.documents.retry("a")
        await completed(app, "a")


async def test_host_that_comes_back_in_time_costs_nothing(web: Web, site: CountingServer) -> None:
    site.down()
    async with web.running(max_retries=3) as app:
        for name in ("a", "b", "c"):
            await app.documents.add_url(site.url("/a"), id=name)

        async def lane_is_open() -> bool:
            lanes = {lane.name: lane.breaker for lane in await app.lane_infos()}
            return lanes.get("host:127.0.0.1") == "open"

        await until(lane_is_open, "the breaker", SOON)
        site.up()
        for name in ("a", "b", "c"):
            await completed(app, name)


async def test_document_whose_fetch_was_never_enqueued_is_fetched_all_the_same(
    web: Web, site: CountingServer
) -> None:
    async with web.idle() as app:
        await app.documents.add_url(site.url("/a"), id="a", title="As given")
        web.shelf.farm.execute("DELETE FROM jobs")
    async with web.running() as app:
        assert (await completed(app, "a")).title == "As given"
        assert [job.kind for job in await app.jobs()] == [EMBED, PARSE, FETCH]


async def test_document_whose_address_is_lost_fails(web: Web, site: CountingServer) -> None:
    async with web.idle() as app:
        await app.documents.add_url(site.url("/a"), id="a")
        web.shelf.farm.execute("DELETE FROM jobs")
        (blob,) = web.shelf.blobs()
        blob.unlink()
    async with web.running() as app:
        document = await failed(app, "a")
        assert document.error is not None
        assert document.error["type"] == "BlobMissing"
        with pytest.raises(BlobMissing):
            await app.documents.retry("a")
        await app.documents.delete("a")


async def test_document_whose_fetch_was_cancelled_fails_and_can_be_tried_again(
    web: Web, site: CountingServer
) -> None:
    async with web.idle() as app:
        await app.documents.add_url(site.url("/a"), id="a")
        await app.queue.cancel(JobFilter(kind=FETCH))
    async with web.running() as app:
        assert (await failed(app, "a")).message == "ingest.fetch was cancelled"
        await app.documents.retry("a")
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
        await app.documents.add_url(site.url("/a"), id="a")
        await completed(app, "a")
        await app.drain(SOON)
        assert (refused, len(site.hits)) == (1, 1)
        await until(lambda: not web.shelf.blobs(), "the originals to be gone")


async def test_fetch_that_is_about_to_hand_on_is_left_alone(
    web: Web, site: CountingServer, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The bytes are there, the next job is not: its priority is known to the fetch alone."""
    looks = 0
    async with web.running() as app:
        enqueue, processing = app.queue.enqueue, app.documents._tools.documents.processing
        looked = asyncio.Event()

        async def slow(batch: Any, conn: Any = None) -> list[Job]:
            if batch.kind == PARSE:
                web.shelf.farm.execute("UPDATE documents SET accepted_at = accepted_at - 60")
                await asyncio.wait_for(looked.wait(), SOON)
            return await enqueue(batch, conn)

        async def noted(**options: Any) -> list[Pending]:
            nonlocal looks
            found = await processing(**options)
            # The look after one that found it has dealt with what that one found.
            if looks:
                looked.set()
            looks += any(not one.document.remote for one in found)
            return found

        monkeypatch.setattr(app.queue, "enqueue", slow)
        monkeypatch.setattr(app.documents._tools.documents, "processing", noted)
        await app.documents.add_url(site.url("/a"), id="a", priority="high")
        await completed(app, "a")
        (parse,) = await app.jobs(kind=PARSE)
        assert parse.priority.name == "HIGH"
    assert "had no job" not in caplog.text


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
            await app.documents.add_url(url)
        assert [*await app.documents.documents(), *await app.jobs(), *web.shelf.blobs()] == []


async def test_name_that_leads_to_this_machine_fails_where_it_is_resolved(
    web: Web, site: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(self: Any, host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr("penstock.outbound.guard.Resolver.__call__", resolve)
    async with web.running() as app:
        await app.documents.add_url("http://innocent.example/", id="a")
        assert (await failed(app, "a")).message == (
            "innocent.example:80 is not fetched: its name leads to no public address. "
            "If it is meant, name it in the setting fetch_allow"
        )
