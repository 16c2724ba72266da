"""Result pages of search engines, read in a real Chromium."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from penstock import JobState
from penstock.model.finding import Finding
from tests.support.browser_searches import Visits, titles, wheels
from tests.support.counting_server import Answer
from tests.support.result_server import HTML, SIZE, WAYS, ResultServer
from tests.support.sampling import some_of

COUNTED = ("page", "offset")
"""Ways whose pages have addresses."""


async def test_results_become_findings_with_their_real_addresses(
    visits: Visits, results: ResultServer
) -> None:
    visits.use()
    done = await visits.search(10)
    assert done.result == [{"findings": [], "skipped": 0, "next": None}], "nothing was found"
    assert len(results.asked("page")) == 1
    results.titles = ["Wheel 0", "Wheel 1"]
    done = await visits.search(5)
    assert done.state is JobState.COMPLETED, done.error
    found = [
        Finding(**{**one, "authors": tuple(one["authors"])}) for one in done.result[0]["findings"]
    ]
    assert found == [
        Finding(
            "browser.test",
            f"site.example/Wheel-{number}",
            f"Wheel {number}",
            f"https://site.example/Wheel-{number}",
            abstract="Water turns wheels.",
        )
        for number in (0, 1)
    ]
    # What comes twice is one finding, and a page of such ends the search.
    results.hits.clear()
    results.titles = [*wheels(SIZE), *wheels(SIZE + 3)[3:], *wheels(13)[3:], *wheels(80)[70:]]
    assert titles(await visits.search(100)) == wheels(SIZE + 3)
    assert len(results.asked("page")) == 3


@pytest.mark.parametrize("way", WAYS)
async def test_pages_are_followed_to_the_end_each_with_a_permit(
    visits: Visits, results: ResultServer, way: str
) -> None:
    results.titles = wheels(35)
    visits.use(way)
    done = await visits.search(100)
    assert titles(done) == wheels(35)
    assert done.result[-1]["next"] is None
    # Where pages are counted, only an empty one says that the one before was the last.
    pages = 5 if way in COUNTED else 4
    assert visits.loads == pages
    assert len(results.at("/rows") + results.asked(way)) == pages


@pytest.mark.parametrize("way", some_of(WAYS, "page", "link"))
async def test_no_more_pages_are_loaded_than_the_limit_needs(
    visits: Visits, results: ResultServer, way: str
) -> None:
    results.titles = wheels(90)
    visits.use(way)
    assert titles(await visits.search(15)) == wheels(15)
    assert len(results.at("/rows") + results.asked(way)) == 2


@pytest.mark.parametrize("way", some_of(WAYS, "page", "link"))
async def test_search_goes_on_where_an_earlier_one_ended(
    visits: Visits, results: ResultServer, way: str
) -> None:
    results.titles = wheels(35)
    visits.use(way)
    first = await visits.search(20)
    second = await visits.search(20, start=first.result[-1]["next"])
    assert titles(first) + titles(second) == wheels(35)


async def test_results_that_a_script_brings_one_by_one_are_waited_for(
    visits: Visits, results: ResultServer
) -> None:
    results.titles = wheels(5)
    script = """<!doctype html><main></main><script>
        const rows = %r.split("<!>");
        const put = (at) => {
          if (at === rows.length) return;
          document.querySelector("main").insertAdjacentHTML("beforeend", rows[at]);
          setTimeout(put, 50, at + 1);
        };
        setTimeout(put, 300, 0);
        </script>"""
    rows = results.rows(0).replace("\n", " ").replace("</div>", "</div><!>")
    results.faults["/link"] = Answer(headers=HTML, body=(script % rows).encode())
    visits.use("link", wait_seconds=30.0)
    assert titles(await visits.search(5)) == wheels(5)


@pytest.mark.parametrize(
    "query", ["水車 물레방아 château", "a&b=c#d %41+1", "{page} {offset} {query}", "x/../y"]
)
async def test_query_arrives_as_it_was_asked(
    visits: Visits, results: ResultServer, query: str
) -> None:
    visits.use("offset")
    assert (await visits.search(1, query=query)).state is JobState.COMPLETED
    (hit,) = results.asked("offset")
    assert parse_qs(hit.query) == {"q": [query], "from": ["0"]}


async def test_pages_may_be_counted_from_another_number(
    visits: Visits, results: ResultServer
) -> None:
    results.titles = wheels(20)
    visits.use("page", first=2)
    assert titles(await visits.search(SIZE)) == wheels(20)[SIZE:]


async def test_rows_of_no_use_are_counted_and_nothing_is_fetched_or_remembered_beside_results(
    visits: Visits, results: ResultServer
) -> None:
    results.titles = wheels(3)
    results.extra = (
        "<div class=result><h2>no link</h2></div>"
        "<div class=result><h2><a href='javascript:alert(1)'>script</a></h2></div>"
        "<div class=result><h2><a href='http://[/'>broken</a></h2></div>"
        "<div class=result><h2><a href='https://x.example'> </a></h2></div>"
    )
    visits.use("link")
    done = await visits.search(10)
    assert titles(done) == wheels(3)
    assert done.result[0]["skipped"] == 4

    # Pictures, and what is elsewhere.
    results.hits.clear()
    results.titles = wheels(1)
    elsewhere = results.url("/elsewhere", host="localhost")
    results.extra = (
        f"<script src='{elsewhere}'></script><iframe src='{elsewhere}'></iframe>"
        "<script src=/own.js></script><video src=/film></video>"
        f"<script>fetch('{elsewhere}'); new WebSocket('{elsewhere.replace('http', 'ws')}');"
        f"window.open('{elsewhere}'); navigator.sendBeacon('{elsewhere}', 'x')</script>"
    )
    assert titles(await visits.search(1)) == wheels(1)
    assert {hit.path for hit in results.hits} == {"/link", "/own.js"}

    # Cookies of one search are not sent by the next.
    results.hits.clear()
    results.extra = ""
    results.titles = wheels(SIZE + 1)
    for _ in range(2):
        await visits.search(SIZE + 1)
    first, second, again, _ = results.asked("link")
    assert [hit.headers.get("cookie") for hit in (first, second, again)] == [None, "who=you", None]
