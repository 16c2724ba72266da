"""Search engines and browsers that fail: each failure is told for what it is, and ends."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from penstock import JobContext, JobState
from penstock.errors import Blocked
from tests.support.browser_searches import LANE, Visits, browsers, titles, wheels
from tests.support.counting_server import Answer, CountingServer, redirect
from tests.support.handler_app import error_of
from tests.support.result_server import HTML, ResultServer
from tests.support.sampling import some_of
from tests.support.waiting import until


def page(body: str) -> Answer:
    return Answer(headers=HTML, body=f"<!doctype html>{body}".encode())


BLOCKS = {
    "selector": (page("<div id=captcha></div><div class=result></div>"), "the page shows #captcha"),
    "text": (page("<p>Are you a <b>robot</b>?</p>"), "the page shows text=are you a robot"),
    "by script": (
        page("<script>setTimeout(() => document.body.id = 'captcha', 200)</script><p>wait"),
        "the page shows #captcha",
    ),
    "forbidden": (Answer(403), "HTTP 403"),
    "too many": (Answer(429), "HTTP 429"),
    "unavailable": (Answer(503, headers=HTML, body=b"<p>busy"), "HTTP 503"),
    "sent away": (redirect("/sorry?continue=x"), "it leads to */sorry*"),
    "consent elsewhere": (redirect("http://consent.example/"), "it leads to consent.example"),
    "sent away by script": (
        page("<script>location = 'http://consent.example/'</script>"),
        "it leads to consent.example",
    ),
    "garbage": (Answer(headers=HTML, body=b"\x00\xff<" * 1000), "neither has results nor says"),
    "empty": (page(""), "neither has results nor says"),
}


async def caught(visits: Visits, limit: int = 10) -> Any:
    """The titles that were found, and what a handler is told that catches a block."""

    async def work(ctx: JobContext) -> list[Any]:
        found: list[str] = []
        try:
            async for one in visits.providers[LANE].search(ctx, "wheels", limit):
                found += [finding.title for finding in one.findings]
        except Blocked as error:
            return [found, error.engine, str(error), error.retry_after]
        return [found]

    return (await visits.run(work)).result


@pytest.mark.parametrize("block", some_of(BLOCKS, "selector", "forbidden", "sent away", "empty"))
async def test_block_is_told_with_the_name_of_the_engine_and_pauses_its_lane(
    visits: Visits, results: ResultServer, block: str
) -> None:
    """Also where the handler makes something else of the error: others are not to ask either."""
    answer, why = BLOCKS[block]
    results.faults = {"/link": answer, "/sorry": page("<p>prove it")}
    visits.use("link", pause_seconds=600.0)
    _, engine, message, pause = await caught(visits)
    assert (engine, pause) == (LANE, 600.0)
    assert message.startswith(f"{LANE} has blocked us: ")
    assert why in message
    async with visits.runner.app as app:
        (lane,) = [one for one in await app.lane_infos() if one.name == LANE]
    assert lane.blocked_until is not None
    assert lane.blocked_until > time.time() + 500


async def test_job_that_is_blocked_waits_for_the_engine_and_spends_no_attempt(
    visits: Visits, results: ResultServer
) -> None:
    results.titles = wheels(1)
    results.faults["/link"] = Answer(429, headers={"retry-after": "1"})
    visits.use("link")

    def heal(path: str, answer: Any = results.answer) -> Answer:
        given: Answer = answer(path)
        results.faults.clear()
        return given

    results.answer = heal  # type: ignore[method-assign]
    done = await visits.search(1)
    assert titles(done) == wheels(1)
    assert done.attempts == 1
    first, second = results.arrivals("/link")
    assert second - first >= 1.0


@pytest.mark.parametrize("way", ["link", "page"])
async def test_block_on_a_later_page_keeps_what_was_found(
    visits: Visits, results: ResultServer, way: str
) -> None:
    results.titles = wheels(30)
    visits.use(way)
    answer = results.answer

    def block_second(path: str) -> Answer:
        return answer(path) if len(results.at(path)) < 2 else page("<div id=captcha></div>")

    results.answer = block_second  # type: ignore[method-assign]
    found, engine, *_ = await caught(visits, 30)
    assert (found, engine) == (wheels(10), LANE)


@pytest.mark.parametrize(
    "how",
    some_of(["redirect", "script", "meta", "form", "popup", "frame"], "redirect", "script"),
)
async def test_no_page_leads_the_browser_into_the_network_behind(
    visits: Visits, results: ResultServer, server: CountingServer, how: str
) -> None:
    results.titles = wheels(1)
    visits.use("link", hosts=("localhost",), wait_seconds=1.0)  # named, and still not allowed
    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"):
        target = server.url("/secret", host=host)
        results.faults["/link"] = {
            "redirect": redirect(target),
            "script": page(f"<script>location = '{target}'</script>"),
            "meta": page(f"<meta http-equiv=refresh content='0;url={target}'>"),
            "form": page(f"<form action='{target}'></form><script>document.forms[0].submit()"),
            "popup": page(f"{results.rows(0)}<script>window.open('{target}')</script>"),
            "frame": page(f"{results.rows(0)}<iframe src='{target}'></iframe>"),
        }[how]
        await caught(visits)
        async with visits.runner.app as app:
            await app.control_lane(LANE, "reset")
    assert len(results.asked("link")) == 4
    assert server.hits == []


async def test_engine_of_this_machine_is_not_asked_unless_it_is_allowed(
    visits: Visits, results: ResultServer
) -> None:
    visits.allow = []
    visits.use()
    kind, message = error_of(await visits.search(1))
    assert kind == "AddressRefused"
    assert message.endswith("name it in the setting fetch_allow")
    assert results.hits == []


LOOP = "for (;;) ;"
GROWTH = "for (;;) document.body?.append(Array(1e6).join('x'))"
ENDLESS = {
    "no answer": Answer(hang=True),
    "half a page": Answer(headers={**HTML, "content-length": "100000"}, body=b"<p>"),
    "redirects": redirect("/link?q=x"),
    "script that reloads": page("<script>setTimeout(() => location.reload(), 20)</script>"),
    "script without end": page(f"<script>{LOOP}</script>"),
    "script without end later": page(f"<script>setTimeout(() => {{ {LOOP} }}, 50)</script>"),
    "dialogs": page("<script>for (;;) alert('x')</script>"),
    "page without end": Answer(headers=HTML, body=b"<p>x</p>" * 1000, endless=True),
    "dom without end": page(f"<script>{GROWTH}</script>"),
    "download": Answer(headers={"content-type": "application/zip"}, body=b"PK"),
}


@pytest.mark.parametrize("name", some_of(ENDLESS, "no answer", "script without end", "download"))
async def test_page_that_never_comes_to_rest_ends_in_time_and_the_next_search_works(
    visits: Visits, results: ResultServer, name: str
) -> None:
    results.titles = wheels(1)
    results.faults["/link"] = ENDLESS[name]
    visits.use("link", browser={"timeout_seconds": 10.0})
    kind, _ = error_of(await visits.search(1))
    assert kind in ("Unavailable", "ProviderError", "Blocked", "BrowserLost")
    results.faults.clear()
    async with visits.runner.app as app:
        await app.control_lane(LANE, "reset")
    assert titles(await visits.search(1)) == wheels(1)


async def test_failures_of_the_server_are_those_of_any_request(
    visits: Visits, results: ResultServer
) -> None:
    visits.use("link")
    for answer, kind in (
        (Answer(500), "Unavailable"),
        (Answer(404), "HttpError"),
        (Answer(reset=True), "Unavailable"),
    ):
        results.faults["/link"] = answer
        assert error_of(await visits.search(1))[0] == kind
        async with visits.runner.app as app:
            await app.control_lane(LANE, "reset")


async def test_engine_that_nobody_answers_for_is_unavailable(
    visits: Visits, results: ResultServer
) -> None:
    visits.use()
    results.down()
    assert error_of(await visits.search(1))[0] == "Unavailable"


async def test_page_that_tampers_with_its_scripts_is_read_all_the_same(
    visits: Visits, results: ResultServer
) -> None:
    results.titles = wheels(2)
    results.extra = """<script>
        String.prototype.slice = () => "x".repeat(1e8);
        Document.prototype.querySelectorAll = Array.prototype.map = () => { throw 1; };
        window.Promise = window.MutationObserver = null;
        </script>"""
    visits.use("link")
    assert titles(await visits.search(2)) == wheels(2)


async def test_selector_that_is_none_is_a_mistake_in_the_config(
    visits: Visits, results: ResultServer
) -> None:
    visits.use("link", result="..result")
    kind, message = error_of(await visits.search(1))
    assert kind == "ConfigError"
    assert "..result" in message


@pytest.mark.parametrize("what", ["chromium", "driver"])
async def test_browser_that_is_killed_in_the_middle_is_started_again(
    visits: Visits, results: ResultServer, what: str
) -> None:
    results.titles = wheels(1)
    visits.use("link")
    answer = results.answer

    def kill(path: str) -> Answer:
        if len(results.hits) > 1:
            return answer(path)
        for one in browsers():
            if one.name().startswith("node") == (what == "driver"):
                one.kill()
                break
        return Answer(hang=True)

    results.answer = kill  # type: ignore[method-assign]
    done = await visits.search(1, max_retries=2)
    assert titles(done) == wheels(1)
    assert [one.error["type"] for one in done.history if one.error] == ["BrowserLost"]


async def test_browser_is_closed_when_nobody_searches_and_started_again_when_somebody_does(
    visits: Visits, results: ResultServer
) -> None:
    results.titles = wheels(1)
    visits.use(browser={"idle_seconds": 0.5})
    assert titles(await visits.search(1)) == wheels(1)
    await until(lambda: not browsers(), "the browser to be closed")
    assert titles(await visits.search(1)) == wheels(1)
    await visits.close()
    await until(lambda: not browsers(), "the browser to be gone")


async def test_job_that_is_cancelled_gives_its_tab_back(
    visits: Visits, results: ResultServer
) -> None:
    results.titles = wheels(1)
    results.faults["/link"] = Answer(hang=True)
    visits.use("link")

    async def work(ctx: JobContext) -> int:
        pages = visits.providers[LANE].search(ctx, "wheels", 1)
        searching = asyncio.ensure_future(anext(pages))
        await until(lambda: results.hits, "the search")
        searching.cancel()
        await asyncio.wait({searching})
        results.faults.clear()
        found = await anext(visits.providers[LANE].search(ctx, "wheels", 1))
        return len(found.findings)

    done = await visits.run(work)
    assert (done.state, done.result) == (JobState.COMPLETED, 1), done.error
