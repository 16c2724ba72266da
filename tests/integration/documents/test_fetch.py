"""`app.documents.add_url`: documents by address, accepted at once and fetched by the workers."""

import logging
import threading
from typing import Any

import pytest

from penstock import Job, JobState
from penstock.documents.jobs import EMBED, FETCH, PARSE
from penstock.errors import QueueUnavailable
from penstock.ports.queue import JobFilter
from tests.conformance.support import BACKENDS
from tests.support.counting_server import Answer, CountingServer, redirect
from tests.support.document_app import LANE, SOON, Shelf, completed, failed, found
from tests.support.documents import pdf
from tests.support.waiting import until
from tests.support.web_documents import HOSTS, NOON, SLUICE, Web
from tests.support.worker_processes import Farm


async def test_document_is_accepted_before_a_byte_is_fetched(
    web: Web, site: CountingServer
) -> None:
    url = site.url("/a")
    site.down()
    async with web.idle() as app:
        document = await app.documents.add_url(url)
        assert (document.ref.id, document.source) == (url, url)
        assert (document.state, document.phase, document.remote) == ("processing", "fetch", True)
        assert await app.documents.documents() == [document]
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
        await app.documents.add_url(
            site.url("/get?n=7"), id="seven", metadata={"n": 7}, priority="high", **options
        )
        document = await completed(app, "seven", **options)
        assert (document.mime, document.metadata) == ("application/pdf", {"n": 7})
        assert document.source == site.url("/get?n=7")
        (job,) = await app.jobs(kind=FETCH)
        assert job.result["name"] == "report 7.pdf"
        (parse,) = await app.jobs(kind=PARSE)
        assert parse.priority.name == "HIGH"
        await app.documents.add_url(site.url("/text"), id="named")
        assert (await completed(app, "named")).title == "report 7.pdf"
        await app.documents.add_url(site.url("/text"), id="titled", title="Seven")
        assert (await completed(app, "titled")).title == "Seven"


async def test_same_address_again_fetches_again_and_the_same_content_changes_nothing(
    web: Web, site: CountingServer
) -> None:
    url = site.url("/a")
    async with web.running() as app:
        await app.documents.add_url(url)
        first = await completed(app, url)
        await app.drain(SOON)
        stored = await web.shelf.stored()
        accepted = await app.documents.add_url(url)
        assert accepted.generation > first.generation
        assert (accepted.searchable, accepted.title) == (True, first.title)
        again = await completed(app, url)
        await app.drain(SOON)
        assert len(site.hits) == 2
        assert again.generation == first.generation
        assert await web.shelf.stored() == stored
        assert len(await app.jobs(kind=PARSE)) == 1
        assert web.shelf.blobs() == []

        site.answers["/a"] = Answer(body=NOON)
        await app.documents.add_url(url)
        newer = await completed(app, url)
        assert newer.generation > accepted.generation
        assert await found(app, "sluice") == [NOON.decode()]
        await app.documents.add_url(url, metadata={"year": 2026})
        told = await completed(app, url)
        assert (told.generation > newer.generation, told.metadata) == (True, {"year": 2026})


async def test_same_address_while_it_is_on_its_way_is_one_document_and_one_job(
    web: Web, site: CountingServer
) -> None:
    async with web.idle() as app:
        first = await app.documents.add_url(site.url("/a"))
        second = await app.documents.add_url(site.url("/a#top"))
        assert first == second
        assert len(await app.jobs()) == len(web.shelf.blobs()) == 1


@pytest.mark.parametrize("kept", [True, False])
async def test_original_is_kept_only_where_originals_are(
    web: Web, site: CountingServer, kept: bool
) -> None:
    async with web.running(keep_originals=kept) as app:
        for _ in range(2):
            await app.documents.add_url(site.url("/a"), id="a")
            await completed(app, "a")
            await app.drain(SOON)
            assert [path.read_bytes() for path in web.shelf.blobs()] == kept * [SLUICE]


@pytest.mark.parametrize("what", ["upload", "fetch", "delete"])
async def test_slow_fetch_never_overwrites_what_came_after_it(
    web: Web, site: CountingServer, what: str
) -> None:
    gate = threading.Event()
    site.answers["/slow"] = Answer(until=gate.is_set, body=b"long ago")
    async with web.running() as app:
        await app.documents.add_url(site.url("/slow"), id="a")
        await until(lambda: site.at("/slow"), "the request")
        match what:
            case "upload":
                await app.documents.add(NOON, id="a")
            case "fetch":
                await app.documents.add_url(site.url("/a"), id="a")
            case _:
                await app.documents.delete("a")
        gate.set()
        await app.drain(SOON)
        (late,) = [job for job in await app.jobs(kind=FETCH) if job.result == {"late": True}]
        assert late.state is JobState.COMPLETED
        texts = {"upload": [NOON.decode()], "fetch": [SLUICE.decode()], "delete": []}
        assert await found(app, "sluice long ago") == texts[what]
        assert web.shelf.blobs() == []


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
        good = await app.documents.add_url(site.url(f"/a/{email}{query}"))
        await completed(app, good.ref.id)
        assert (await app.documents.get(good.ref.id)).title == "[EMAIL]"
        assert "of=[EMAIL]&access_token=***" in good.source
        other = await app.documents.add_url(site.url(f"/a/{email}{query}x"))
        assert other.ref != good.ref, "two that look the same are two"
        for path in ("/gone", "/gz", "/hang-up"):
            site.answers["/hang-up"] = Answer(reset=True)
            document = await app.documents.add_url(site.url(f"{path}{query}"))
            assert (await failed(app, document.ref.id)).message
        far = await app.documents.add_url(f"http://{number.replace('203', '93')}/", id="far")
        assert far.ref.id == "far"
        (job,) = [job for job in await app.jobs() if job.payload.get("document") == "far"]
        assert (job.lane or "").startswith("host:[IP_ADDRESS]-")
        await app.documents.delete("far")
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
        await app.documents.add_url(site.url("/b"), id="b")
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

    async with apart.farm.app("documents") as app:
        setattr(app.documents, "_enqueue", away)  # noqa: B010
        with pytest.raises(QueueUnavailable):
            await app.documents.add_url(site.url("/a"), id="a")
    async with apart.running() as app:
        first = await completed(app, "a")
        await app.documents.add_url(site.url("/a"), id="a")
        assert (await completed(app, "a")).generation == first.generation
        assert await found(app, "sluice") == [SLUICE.decode()]
        await app.drain(SOON)
    assert apart.blobs() == []
