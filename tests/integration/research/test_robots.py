"""robots.txt: asked for before every page, of every host on the way, and kept for an hour."""

import asyncio
import sys
import time
from typing import Any

import pytest
from protego import Protego

from penstock import JobState
from penstock.errors import ConfigError
from penstock.outbound.http import host_lane
from penstock.research import robots
from tests.support.counting_server import Answer, CountingServer, redirect
from tests.support.document_app import SOON
from tests.support.page_jobs import PAGE, Reader
from tests.support.page_samples import page
from tests.support.waiting import until

ARTICLE = Answer(headers={"content-type": "text/html"}, body=page())
HOUR = 3600.0


@pytest.fixture
def site(site: CountingServer) -> CountingServer:
    site.answers["/page"] = ARTICLE
    return site


def rules(*lines: str, **options: Any) -> Answer:
    return Answer(headers={"content-type": "text/plain"}, body="\n".join(lines).encode(), **options)


async def test_page_that_robots_txt_disallows_is_not_asked_for(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/robots.txt"] = rules("User-agent: *", "Disallow: /page", "Allow: /page/open")
    async with reader.running() as pages:
        why, said = await pages.refusal(site.url("/page?n=1"))
        assert why == "robots"
        assert said == "the robots.txt of 127.0.0.1 asks Penstock not to fetch this page"
        assert site.at("/page") == []
        await pages.read(site.url("/page/open"))
    assert len(site.at("/robots.txt")) == 1


@pytest.mark.parametrize(
    ("lines", "allowed"),
    [
        (["User-agent: penstock", "Disallow: /"], False),
        (["USER-AGENT: PENSTOCK/2.0", "Disallow: /"], False),
        (["User-agent: *", "Disallow: /", "", "User-agent: Penstock", "Allow: /"], True),
        (["User-agent: *", "Disallow: /", "User-agent: other", "Allow: /"], False),
        (["User-agent: a", "User-agent: penstock", "User-agent: b", "Disallow: /p*e$"], False),
        (["User-agent: pen", "Disallow: /"], True),
        (["User-agent: penstocks", "Disallow: /"], True),
        (["\ufeffUser-agent: *", "Disallow: /page"], False),
        (["User-agent: * # all", "Disallow: /%70age"], False),
        (["User-agent: *", "Disallow:"], True),
        (["<html><body>Not found</body></html>"], True),
        (["\x00\xff" * 1000], True),
        ([], True),
    ],
    ids=str,
)
async def test_rules_are_read_as_they_are_meant(
    reader: Reader, site: CountingServer, lines: list[str], allowed: bool
) -> None:
    site.answers["/robots.txt"] = rules(*lines)
    async with reader.running() as pages:
        job = await pages.ask(site.url("/page"))
        assert job.state is (JobState.COMPLETED if allowed else JobState.FAILED), job.error
    assert len(site.at("/page")) == allowed


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 204])
async def test_where_there_is_no_robots_txt_all_is_allowed(
    reader: Reader, site: CountingServer, status: int
) -> None:
    site.answers["/robots.txt"] = Answer(status, body=b"")
    async with reader.running() as pages:
        await pages.read(site.url("/page"))


@pytest.mark.parametrize(
    "answer",
    [Answer(500), Answer(503), Answer(429), Answer(reset=True)],
    ids=["500", "503", "429", "hangs up"],
)
async def test_where_it_cannot_be_had_nothing_is_fetched_for_now(
    reader: Reader, site: CountingServer, answer: Answer
) -> None:
    """The pages wait, and are fetched once it can be had. No attempt is spent on the outage."""
    site.answers["/robots.txt"] = answer
    # The first must not have been tried twice before the others have seen it, too.
    async with reader.running(retry_base_seconds=60.0) as pages:
        wanted = [{"url": site.url(f"/page/{n}"), "fresh": 0.0} for n in range(3)]
        jobs = await pages.app.enqueue_many(PAGE, wanted)

        async def noticed() -> bool:
            lanes = await pages.app.lane_infos()
            return any(lane.breaker == "open" or lane.blocked_why for lane in lanes)

        # Two tries of one job are no outage yet: they would be that job's own.
        await until(noticed, "the outage to have its witnesses")
        assert [hit for hit in site.hits if hit.path.startswith("/page")] == []
        site.answers["/robots.txt"] = Answer(404)
        for job in jobs:
            done = await pages.app.wait(job.id, timeout=2 * SOON)
            assert done.state is JobState.COMPLETED, done.error
            assert done.attempts == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(headers={"content-encoding": "br"}),
        Answer(headers={"content-length": "99999999999"}),
        Answer(headers={"content-encoding": "gzip"}, body=b"no gzip"),
        redirect("/robots.txt"),
    ],
    ids=["packed", "huge", "broken", "circle"],
)
async def test_rules_that_cannot_be_read_allow_nothing(
    reader: Reader, site: CountingServer, answer: Answer
) -> None:
    site.answers["/robots.txt"] = answer
    async with reader.running() as pages:
        why, said = await pages.refusal(site.url("/page"))
        assert (why, site.at("/page")) == ("robots", [])
        assert "the robots.txt of 127.0.0.1 cannot be read" in said


async def test_redirects_of_robots_txt_are_followed(reader: Reader, site: CountingServer) -> None:
    site.answers["/robots.txt"] = redirect("/0", 301)
    for n in range(4):
        site.answers[f"/{n}"] = redirect(f"/{n + 1}")
    site.answers["/4"] = rules("User-agent: *", "Disallow: /page")
    async with reader.running() as pages:
        assert (await pages.refusal(site.url("/page")))[0] == "robots"


async def test_every_hop_of_a_redirect_is_looked_up_before_it_is_made(
    reader: Reader, site: CountingServer
) -> None:
    """Of the same host, and of another: where it leads to is nobody's choice but the server's."""
    site.answers["/robots.txt"] = rules("User-agent: *", "Disallow: /secret")
    site.answers["/near"] = redirect("/secret/a")
    site.answers["/far"] = redirect(site.url("/hop", host="localhost"))
    site.answers["/hop"] = redirect(site.url("/secret/b", host="localhost"))
    site.answers["/secret"] = ARTICLE
    async with reader.running() as pages:
        for path, host in (("/near", "127.0.0.1"), ("/far", "localhost")):
            why, said = await pages.refusal(site.url(path))
            assert why == "robots"
            assert f"the robots.txt of {host}" in said
    hosts = [hit.headers["host"].partition(":")[0] for hit in site.at("/robots.txt")]
    assert hosts == ["127.0.0.1", "localhost"]
    assert [hit for hit in site.hits if hit.path.startswith("/secret")] == []


async def test_it_is_asked_for_once_by_many_jobs_at_once(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/robots.txt"] = rules("User-agent: *", "Disallow: /x", delay=0.3)
    async with reader.running() as pages:
        jobs = await asyncio.gather(*(pages.ask(site.url(f"/page/{n}")) for n in range(6)))
        assert {job.state for job in jobs} == {JobState.COMPLETED}
    assert len(site.at("/robots.txt")) == 1


async def test_job_that_dies_while_asking_leaves_it_to_the_next(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/robots.txt"] = Answer(hang=True)
    async with reader.running() as pages:
        first = await pages.app.enqueue(PAGE, {"url": site.url("/page/1"), "fresh": 0.0})
        await until(lambda: site.at("/robots.txt"), "the request")
        second = await pages.app.enqueue(PAGE, {"url": site.url("/page/2"), "fresh": 0.0})
        site.answers["/robots.txt"] = Answer(404)
        await pages.app.cancel(first.id)
        done = await pages.app.wait(second.id, timeout=SOON)
        assert done.state is JobState.COMPLETED, done.error
    assert len(site.at("/robots.txt")) == 2


async def test_it_is_kept_for_an_hour_and_then_asked_for_again(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/robots.txt"] = Answer(404)
    now = time.monotonic()
    async with reader.running(clock=lambda: now) as pages:
        for _ in range(2):
            await pages.read(site.url("/page"))
        assert len(site.at("/robots.txt")) == 1
        site.answers["/robots.txt"] = rules("User-agent: *", "Disallow: /")
        now += HOUR - 1
        await pages.read(site.url("/page"))
        now += 2
        assert (await pages.refusal(site.url("/page")))[0] == "robots"
    assert len(site.at("/robots.txt")) == 2


async def test_of_all_servers_only_so_much_is_kept(
    reader: Reader, site: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robots, "MAX_ENTRIES", 1)
    async with reader.running() as pages:
        for host in ("127.0.0.1", "localhost", "localhost", "127.0.0.1"):
            await pages.read(site.url("/page", host=host))
    assert len(site.at("/robots.txt")) == 3


async def test_of_a_long_one_the_beginning_counts(reader: Reader, site: CountingServer) -> None:
    filler = ["# " + "x" * 98] * 5_100
    first = rules("User-agent: *", "Disallow: /page", *filler)
    last = rules("User-agent: *", *filler, *filler, "Disallow: /page")
    async with reader.running() as pages:
        site.answers["/robots.txt"] = first
        assert (await pages.refusal(site.url("/page")))[0] == "robots"
        site.answers["/robots.txt"] = last
        await pages.read(site.url("/page", host="localhost"))


async def test_pace_that_is_asked_for_is_kept_by_the_host_s_lane(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/robots.txt"] = rules("User-agent: *", "Crawl-delay: 1", "Disallow: /x")
    site.answers["/moved"] = redirect("/page/3")
    begun = time.monotonic()
    async with reader.running() as pages:
        # Jobs that have started before the pace is learnt have their permits already.
        await pages.read(site.url("/page/0"))
        paths = ("/page/1", "/page/2", "/moved")
        jobs = await asyncio.gather(*(pages.ask(site.url(path)) for path in paths))
        assert {job.state for job in jobs} == {JobState.COMPLETED}
        lanes = {lane.name: lane.spacing for lane in await pages.app.lane_infos()}
        assert lanes[host_lane("127.0.0.1")] >= 1.0
    # Not from one to the next: a busy server notes some late.
    assert max(hit.arrived for hit in site.hits) - begun >= 4 * 0.95
    assert len([hit for hit in site.hits if hit.path != "/robots.txt"]) == 5


async def test_pace_is_bounded_and_ends_when_it_is_no_longer_asked_for(
    reader: Reader, site: CountingServer
) -> None:
    site.answers["/robots.txt"] = rules("User-agent: *", "Crawl-delay: 86400")
    now = time.monotonic()
    async with reader.running(clock=lambda: now) as pages:
        await pages.ask(site.url("/page"))
        lanes = pages.app.lanes
        assert lanes.config(host_lane("127.0.0.1")).min_interval_seconds == 30.0
        site.answers["/robots.txt"] = Answer(404)
        now += HOUR + 1
        await pages.app.control_lane(host_lane("127.0.0.1"), "reset")
        await pages.ask(site.url("/page"))
        assert lanes.config(host_lane("127.0.0.1")).min_interval_seconds == 0.0


def test_many_names_over_many_rules_are_read_in_no_time() -> None:
    """By name each rule would be kept once for each of them: gigabytes."""
    names = "\n".join(f"User-agent: a{n}" for n in range(12_000))
    text = names + "\n" + "\n".join(f"Disallow: /{n}*x*y$" for n in range(12_000))
    start = time.thread_time()
    found = Protego.parse(robots.ours(text))
    assert found.can_fetch("http://example.org/5aaxaay", "Penstock")
    assert not found.can_fetch("http://example.org/5aaxaay", "other")
    assert time.thread_time() - start < 5


async def test_without_the_extra_it_says_what_to_install(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "protego", None)
    async with reader.running(max_retries=0):
        job = await reader.ask(reader.site.url("/page/0"))
        assert job.error is not None
        assert job.error.type == ConfigError.__name__
        assert "penstock[research]" in job.error.message
    assert reader.site.hits == []
