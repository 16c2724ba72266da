"""`fetch_page`: a page of the web becomes a document, or it is said why not."""

import logging
import time
import zlib
from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from penstock.outbound.http import host_lane
from penstock.research.page import page_id, reason_of
from penstock.text.user_agent import VERSION
from tests.support.counting_server import Answer, CountingServer, redirect
from tests.support.document_app import SOON
from tests.support.documents import MAKERS, MIMES, SENTENCES
from tests.support.page_jobs import Reader
from tests.support.page_samples import ARTICLES, ENGLISH, JAPANESE, KOREAN, Article, page
from tests.support.waiting import until

HOUR = 3600.0


def html(body: bytes, kind: str = "text/html") -> Answer:
    return Answer(headers={"content-type": kind}, body=body)


@pytest.mark.parametrize("article", ARTICLES.values(), ids=ARTICLES)
async def test_page_becomes_a_document_of_its_main_text(
    reader: Reader, site: CountingServer, article: Article
) -> None:
    site.answers["/article"] = html(page(article))
    before = datetime.now(UTC).replace(microsecond=0)
    async with reader.running() as pages:
        document = await pages.read(site.url("/article?utm_source=x#top"))
        text = await pages.text(document)
    assert article.paragraphs[0] in text
    assert not [one for one in article.around if one in text]
    assert document.ref == ("default", "web", f"127.0.0.1:{site.port}/article")
    assert document.source == site.url("/article?utm_source=x")
    assert (document.title, document.mime) == (article.title, "text/html")
    assert document.metadata["untrusted"] is True
    fetched_at = datetime.fromisoformat(document.metadata["fetched_at"])
    assert before <= fetched_at <= datetime.now(UTC)
    assert document.reading == {
        "text": "main",
        "language": article.language,
        "author": "Ada Weir",
        "date": "2024-03-02",
    }


@pytest.mark.parametrize(
    ("article", "charset", "encoding"),
    [(JAPANESE, "Shift_JIS", "cp932"), (KOREAN, "EUC-KR", "cp949")],
)
async def test_charset_that_only_the_header_names_reaches_the_parser(
    reader: Reader, site: CountingServer, article: Article, charset: str, encoding: str
) -> None:
    body = page(article, charset=encoding)
    site.answers["/a"] = html(body, f"text/html; charset={charset}")
    site.answers["/b"] = html(GREEK, "text/html; charset=iso-8859-7")
    async with reader.running() as pages:
        document = await pages.read(site.url("/a"))
        assert article.paragraphs[0] in await pages.text(document)
        assert document.charset == charset.lower()
        greek = await pages.read(site.url("/b"))
        assert "ο φύλακας" in await pages.text(greek)
        added = await pages.app.documents.add_url(site.url("/b"))
        done = await pages.app.documents.wait(added.ref.id, timeout=SOON)
        assert "ο φύλακας" in await pages.text(done)


GREEK = (
    "<html><body><article><p>"
    + "Το νερό ανοίγει την αυγή και ο φύλακας γράφει την ώρα στο βιβλίο του. " * 5
    + "</p></article></body></html>"
).encode("iso-8859-7")


@pytest.mark.parametrize("name", ["pdf", "docx", "md"])
async def test_what_is_no_page_but_a_document_is_read_by_its_content(
    reader: Reader, site: CountingServer, name: str
) -> None:
    site.answers["/get"] = html(MAKERS[name](), "application/octet-stream")
    async with reader.running() as pages:
        document = await pages.read(site.url("/get"))
        assert SENTENCES[0] in await pages.text(document)
        assert document.mime == MIMES[name]
        assert document.reading == {}


async def test_page_that_was_fetched_not_long_ago_is_not_fetched_again(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/article"] = html(page())
    async with reader.running() as pages:
        first = await pages.read(site.url("/article"))
        again = await pages.read(site.url("/article/?utm_campaign=y"), fresh=HOUR)
        assert again == first
        assert len(site.at("/article")) == 1
        other = await pages.read(site.url("/article"), fresh=HOUR, tenant="kim")
        assert (other.ref.tenant, other.title) == ("kim", first.title)
        assert len(site.at("/article")) == 2, "what a tenant has fetched is its own"

        site.answers["/article"] = html(page(JAPANESE))
        newer = await pages.read(site.url("/article"))
        assert newer.generation > first.generation
        assert newer.title == JAPANESE.title
        assert len(site.at("/article")) == 3


async def test_page_that_is_on_its_way_is_not_fetched_again_and_one_that_failed_is(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/article"] = html(page())
    async with reader.running() as pages:
        await pages.app.control_lane("embedder", "pause")
        first = await pages.ask(site.url("/article"))
        again = await pages.ask(site.url("/article"), fresh=HOUR)
        assert first.result == again.result
        assert len(site.at("/article")) == 1
        await pages.app.control_lane("embedder", "resume")
        assert (await pages.read(site.url("/article"), fresh=HOUR)).title == ENGLISH.title

        site.answers["/broken"] = html(b"\x00\x01\x02" * 100)
        failed = await pages.document(site.url("/broken"), fresh=HOUR)
        assert (failed.state, reason_of(failed.error or {})) == ("failed", "format")
        site.answers["/broken"] = html(page(KOREAN))
        assert (await pages.read(site.url("/broken"), fresh=HOUR)).title == KOREAN.title


async def test_page_that_fails_leaves_what_is_known_of_it_searchable(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/article"] = html(page())
    async with reader.running() as pages:
        known = await pages.read(site.url("/article"))
        site.answers["/article"] = Answer(404)
        assert (await pages.refusal(site.url("/article")))[0] == "http"
        assert await pages.app.documents.get(known.ref.id, collection="web") == known


async def test_redirect_is_followed_and_the_page_known_by_what_it_was_asked_by(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/old"] = redirect(site.url("/new?n=7", host="localhost"), 301)
    site.answers["/new"] = html(page())
    async with reader.running() as pages:
        document = await pages.read(site.url("/old"))
        assert document.ref.id == page_id(site.url("/old"))
        assert document.source == site.url("/new?n=7", host="localhost")
        assert (await pages.read(site.url("/old"), fresh=HOUR)) == document
        lanes = {lane.name for lane in await pages.app.lane_infos()}
        assert {"host:127.0.0.1", "host:localhost"} <= lanes
    assert len(site.at("/robots.txt")) == 2, "one for each host"


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(b"<p>gate</p>" * 100_000) for _ in range(size // 1_100_000)]
    return b"".join(parts) + packer.flush()


GZIP = {"content-encoding": "gzip"}


@pytest.mark.parametrize(
    ("answer", "reason", "said"),
    [
        (Answer(404), "http", "127.0.0.1: HTTP 404"),
        (Answer(410), "http", "HTTP 410"),
        (Answer(403), "http", "not open to everybody"),
        (Answer(204), "http", "brings no document"),
        (redirect("/page"), "http", "more than 5 redirects"),
        (Answer(body=b"x" * 600_000), "too_large", "500,000"),
        (Answer(headers={"content-length": "9" * 12}), "too_large", "500,000"),
        (Answer(body=bomb(50_000_000), headers=GZIP), "too_large", "500,000"),
        (Answer(body=b"no gzip", headers=GZIP), "http", "cannot be read"),
        (Answer(headers={"content-encoding": "br"}), "http", "packed in a way"),
        (Answer(headers={"content-encoding": "zstd"}), "http", "packed in a way"),
        (Answer(body=b"x", headers={"content-type": "video/mp4"}), "format", "video/mp4"),
        (Answer(500), "unreachable", "HTTP 500"),
        (Answer(reset=True), "unreachable", "127.0.0.1"),
        (Answer(body=b"half", headers={"content-length": "90"}, cut=True), "unreachable", "127"),
    ],
    ids=str,
)
async def test_what_is_wrong_with_a_page_is_said_in_a_word_and_a_sentence(
    reader: Reader, site: CountingServer, answer: Answer, reason: str, said: str
) -> None:
    site.answers["/page"] = answer
    start = time.monotonic()
    async with reader.running(document_bytes=500_000, max_retries=0) as pages:
        why, message = await pages.refusal(site.url("/page?token=canary"))
    assert time.monotonic() - start <= 2 * SOON
    assert why == reason
    assert said in message
    assert "canary" not in message
    assert reader.web.shelf.blobs() == []


@pytest.mark.parametrize(
    "answer",
    [
        Answer(hang=True),
        Answer(endless=True, body=b"x"),
        Answer(body=b"half", headers={"content-length": "90"}),
    ],
    ids=["says nothing", "trickles", "stops half-way"],
)
async def test_a_page_that_takes_its_time_has_no_more_than_its_job(
    reader: Reader, site: CountingServer, answer: Answer
) -> None:
    site.answers["/page"] = answer
    start = time.monotonic()
    async with reader.running(timeout=1.0, max_retries=0) as pages:
        why, _ = await pages.refusal(site.url("/page"))
    assert why in ("timeout", "unreachable")
    assert time.monotonic() - start <= SOON
    assert reader.web.shelf.blobs() == []


async def test_a_page_longer_than_it_was_said_to_be_ends_where_it_was_said(
    reader: Reader, site: CountingServer
) -> None:
    body = page()
    length = {"content-length": str(len(body))}
    site.answers["/page"] = Answer(body=body + b"<p>and more</p>", headers=length, cut=True)
    async with reader.running() as pages:
        assert "and more" not in await pages.text(await pages.read(site.url("/page")))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b"<html><body><img src=a></body></html>", "empty"),
        (b"\x00\x01\x02\x03" * 100, "format"),
        (b"PK\x03\x04 no zip", "unreadable"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 100, "format"),
    ],
)
async def test_what_cannot_be_read_fails_its_document_and_says_why(
    reader: Reader, site: CountingServer, body: bytes, reason: str
) -> None:
    site.answers["/page"] = html(body)
    async with reader.running() as pages:
        document = await pages.document(site.url("/page"))
        assert document.error is not None
        assert (document.state, reason_of(document.error)) == ("failed", reason)


SECRETS = ("canary.kim@example.com", "canary-token", "010-9876-5432")


async def test_neither_the_document_nor_a_log_shows_what_is_personal_or_secret_in_an_address(
    reader: Reader, site: CountingServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "penstock")
    caplog.set_level(logging.INFO)
    email, token, phone = SECRETS
    query = f"?of={email}&access_token={token}&tel={phone}"
    site.answers["/a"] = redirect(f"/b/{email}{query}")
    site.answers["/b"] = html(page())
    site.answers["/c"] = redirect(f"http://{phone}.example.org:81/{query}")
    async with reader.running() as pages:
        good = await pages.read(site.url(f"/a{query}"))
        assert "/b/[EMAIL]?of=[EMAIL]&access_token=***&tel=[PHONE]" in good.source
        again = await pages.read(site.url(f"/a{query}"), fresh=HOUR)
        assert again.ref == good.ref
        assert (await pages.read(site.url(f"/a{query}x"))).ref != good.ref
        job = await pages.ask(site.url(f"/c{query}"))
        shown = str([asdict(good), job.error, job.result, job.lane])
    for secret in SECRETS:
        assert secret not in shown
        assert secret not in caplog.text


async def test_requests_say_who_asks_and_whom_to_turn_to(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/page"] = html(page())
    async with reader.running(contact="https://example.org/about") as pages:
        await pages.read(site.url("/page"))
    told = {hit.headers["user-agent"] for hit in site.hits}
    assert told == {f"Penstock/{VERSION} (+https://example.org/about)"}


async def test_a_job_gives_its_place_back_before_the_document_is_stored(
    reader: Reader, site: CountingServer
) -> None:
    """What is left to do needs nothing of the host, whose places others wait for."""
    site.answers["/page"] = html(page())
    async with reader.running() as pages:
        documents = pages.app.documents
        add, open_requests = documents.add, []

        async def noting(*arguments: object, **options: object) -> object:
            async def given_back() -> bool:
                lanes = {lane.name: lane.in_flight for lane in await pages.app.lane_infos()}
                open_requests.append(lanes[host_lane("127.0.0.1")])
                return open_requests[-1] == 0

            await until(given_back, "its place")
            return await add(*arguments, **options)  # type: ignore[arg-type]

        documents.add = noting  # type: ignore[method-assign, assignment]
        await pages.read(site.url("/page"))
    assert open_requests[-1] == 0
