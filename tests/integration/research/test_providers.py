"""Search providers, each against a server that answers as it documents."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from penstock import Job, JobContext, JobState
from penstock.model.finding import Finding
from penstock.model.lane import LaneConfig
from penstock.ports.provider import SearchProvider
from penstock.research.providers.paged import SPARE_PAGES
from tests.support.counting_server import Answer, redirect
from tests.support.handler_app import HandlerApp, error_of
from tests.support.provider_server import PATHS, ProviderServer, Work
from tests.support.worker_processes import Farm

QUICK = LaneConfig(min_interval_seconds=0.0, max_parallel=2, requests_per_day=1000)
NAMES = list(PATHS)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
def runner(farm: Farm) -> HandlerApp:
    return HandlerApp(farm, lanes=dict.fromkeys([*NAMES, "fetch", "host:*"], QUICK))


async def search(
    runner: HandlerApp,
    provider: SearchProvider,
    limit: int,
    query: str = "water wheels",
    **options: Any,
) -> Job:
    """A job in the provider's lane, whose result is its pages."""

    async def work(ctx: JobContext) -> list[Any]:
        found = provider.search(ctx, query, limit)
        return [asdict(page) async for page in found]

    return await runner.run(work, lane=provider.lane, **options)


def titles(job: Job) -> list[str]:
    assert job.state is JobState.COMPLETED, job.error
    return [finding["title"] for page in job.result for finding in page["findings"]]


def works(count: int) -> list[str]:
    return [f"Work {number}" for number in range(count)]


EXPECTED = {
    "openalex": Finding(
        "openalex",
        "W0",
        "Work 0",
        "https://journal.example/0",
        authors=("Ada Byron",),
        year=2024,
        doi="10.5555/w0",
        arxiv_id="2401.00000",
        abstract="Water turns wheels.",
        open_access_url="https://free.example/0.pdf",
        extra={"cited_by": 7, "type": "article"},
    ),
    "semantic_scholar": Finding(
        "semantic_scholar",
        "0" * 40,
        "Work 0",
        "https://www.semanticscholar.org/paper/" + "0" * 40,
        authors=("Ada Byron",),
        year=2024,
        doi="10.5555/w0",
        arxiv_id="2401.00000",
        abstract="Water turns wheels.",
        extra={"cited_by": 7},
    ),
    "crossref": Finding(
        "crossref",
        "10.5555/w0",
        "Work 0",
        "https://doi.org/10.5555/W0",
        authors=("Ada Byron", "The Wheelwrights"),
        year=2024,
        doi="10.5555/w0",
        abstract="Water & wheels, p < 0.05",
        open_access_url="https://free.example/pdf",
        extra={"cited_by": 7, "type": "journal-article", "venue": "Journal of Mills"},
    ),
    "arxiv": Finding(
        "arxiv",
        "2401.00000",
        "Work 0",
        "http://arxiv.org/abs/2401.00000v2",
        authors=("Ada Byron", "Émilie du Châtelet"),
        year=2024,
        doi="10.5555/w0",
        arxiv_id="2401.00000",
        abstract="Water turns wheels, $a<b$.",
        open_access_url="http://arxiv.org/pdf/2401.00000v2",
        extra={"comment": "3 pages"},
    ),
    "searxng": Finding(
        "searxng",
        "site.example/0",
        "Work 0",
        "https://site.example/0?utm_source=x",
        year=2024,
        abstract="Water turns wheels.",
        extra={"engines": ["duckduckgo", "brave"]},
    ),
}


@pytest.mark.parametrize("name", NAMES)
async def test_rows_become_findings_with_all_that_the_provider_tells(
    runner: HandlerApp, server: ProviderServer, name: str
) -> None:
    server.works = [Work(0)]
    done = await search(runner, server.provider(name), 5)
    assert done.state is JobState.COMPLETED, done.error
    read = done.result[0]["findings"][0]
    expected = EXPECTED[name]
    assert Finding(**{**read, "authors": tuple(read["authors"])}) == expected


@pytest.mark.parametrize(
    ("name", "requests"),
    [("openalex", 3), ("semantic_scholar", 3), ("crossref", 3), ("arxiv", 3), ("searxng", 24)],
)
async def test_pages_are_followed_to_the_end_each_with_a_permit(
    runner: HandlerApp, server: ProviderServer, name: str, requests: int
) -> None:
    server.works = [Work(number) for number in range(230)]
    done = await search(runner, server.provider(name), 300)
    assert titles(done) == works(230)
    assert done.result[-1]["next"] is None
    # One more where a provider does not say which page is the last.
    assert requests <= len(server.asked(name)) <= requests + 1
    assert runner.use_of(name) == len(server.asked(name))


@pytest.mark.parametrize("name", NAMES)
async def test_no_more_than_the_limit_is_brought_and_asked_for(
    runner: HandlerApp, server: ProviderServer, name: str
) -> None:
    server.works = [Work(number) for number in range(50)]
    assert titles(await search(runner, server.provider(name), 7)) == works(7)
    (asked,) = server.asked(name)
    sizes = {asked[key] for key in ("per_page", "limit", "rows", "max_results") if key in asked}
    assert sizes == (set() if name == "searxng" else {"7"})


async def test_limit_over_a_page_is_spread_evenly_so_that_nothing_is_asked_for_in_vain(
    runner: HandlerApp, server: ProviderServer
) -> None:
    server.works = [Work(number) for number in range(500)]
    assert titles(await search(runner, server.provider("openalex"), 150)) == works(150)
    assert [asked["per_page"] for asked in server.asked("openalex")] == ["75", "75"]


@pytest.mark.parametrize("name", NAMES)
async def test_nothing_found_is_one_empty_page(
    runner: HandlerApp, server: ProviderServer, name: str
) -> None:
    done = await search(runner, server.provider(name), 10)
    assert done.result == [{"findings": [], "skipped": 0, "next": None}]
    assert len(server.asked(name)) == 1


async def test_provider_of_a_thousand_results_is_not_asked_for_more(
    runner: HandlerApp, server: ProviderServer
) -> None:
    server.works = [Work(number) for number in range(1200)]
    assert titles(await search(runner, server.provider("semantic_scholar"), 1200)) == works(999)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "arxiv"])
async def test_rows_of_no_use_are_counted_and_made_up_for(
    runner: HandlerApp, server: ProviderServer, name: str
) -> None:
    server.works = [Work(number) for number in range(40)]
    server.spoilt = [None, 5, [], {}, {"title": "no address"}]
    done = await search(runner, server.provider(name), 20)
    assert len(titles(done)) == 20
    assert {page["skipped"] for page in done.result} == {5}


@pytest.mark.parametrize("name", NAMES)
async def test_provider_that_gives_nothing_of_use_is_not_asked_for_ever(
    runner: HandlerApp, server: ProviderServer, name: str
) -> None:
    server.works = [Work(number, " ") for number in range(300)]
    done = await search(runner, server.provider(name), 10)
    assert titles(done) == []
    assert sum(page["skipped"] for page in done.result) >= 30
    assert len(server.asked(name)) == 1 + SPARE_PAGES


async def test_page_that_comes_again_ends_the_search(
    runner: HandlerApp, server: ProviderServer
) -> None:
    """Some instances of SearXNG know no second page, and give the first for it."""
    server.works = [Work(number % 10) for number in range(100)]
    assert titles(await search(runner, server.provider("searxng"), 50)) == works(10)
    assert len(server.asked("searxng")) == 2


@pytest.mark.parametrize("name", NAMES)
async def test_titles_and_queries_of_every_script_arrive(
    runner: HandlerApp, server: ProviderServer, name: str
) -> None:
    title = "水車の研究 — 물레방아 <&> Châtelet 𝔸"
    server.works = [Work(0, title)]
    done = await search(runner, server.provider(name), 1, query="水車 물레방아 château")
    assert titles(done) == [title]
    asked = next(iter(server.asked(name)))
    said = next(asked[key] for key in ("search", "query", "search_query", "q") if key in asked)
    assert said.replace("all:", "").replace(" AND", "") == "水車 물레방아 château"


async def test_text_that_no_store_takes_is_replaced(
    runner: HandlerApp, server: ProviderServer
) -> None:
    server.works = [Work(0, "half \ud800 of \x00 it")]
    assert titles(await search(runner, server.provider("openalex"), 1)) == ["half ? of \ufffd it"]


async def test_words_that_are_operators_elsewhere_are_words(
    runner: HandlerApp, server: ProviderServer
) -> None:
    await search(runner, server.provider("arxiv"), 1, query='Wheels ANDNOT ti:"mills" (a-b)')
    (asked,) = server.asked("arxiv")
    said = "all:wheels AND all:andnot AND all:ti AND all:mills AND all:a AND all:b"
    assert asked["search_query"] == said


async def test_hyphens_are_kept_from_a_provider_that_finds_nothing_with_them(
    runner: HandlerApp, server: ProviderServer
) -> None:
    await search(runner, server.provider("semantic_scholar"), 1, query="water-wheel")
    assert [asked["query"] for asked in server.asked("semantic_scholar")] == ["water wheel"]


@pytest.mark.parametrize(
    ("name", "query", "limit", "message"),
    [
        ("openalex", " \n ", 1, "the query is empty"),
        ("openalex", "x" * 2001, 1, "longer than 2,000 characters"),
        ("openalex", "x", 0, "limit must be at least 1"),
        ("arxiv", "?!", 1, "needs at least one word"),
    ],
)
async def test_what_cannot_be_asked_is_refused_before_it_costs_a_request(
    runner: HandlerApp, server: ProviderServer, name: str, query: str, limit: int, message: str
) -> None:
    done = await search(runner, server.provider(name), limit, query=query)
    kind, said = error_of(done)
    assert kind == "ValidationError"
    assert message in said
    assert server.hits == []


async def test_two_pages_of_a_lane_slower_than_jobs_wait_come_in_one_run(
    farm: Farm, server: ProviderServer
) -> None:
    slow = replace(QUICK, min_interval_seconds=1.5, max_parallel=1)
    server.works = [Work(number) for number in range(200)]
    done = await search(
        HandlerApp(farm, lanes={"openalex": slow}), server.provider("openalex"), 200
    )
    assert titles(done) == works(200)
    assert (done.attempts, done.releases) == (1, 0)


async def test_search_goes_on_where_an_error_ended_it(
    runner: HandlerApp, server: ProviderServer
) -> None:
    server.works = [Work(number) for number in range(200)]
    server.faults["openalex"] = Answer(404)
    server.fault_from = 2
    provider = server.provider("openalex")

    async def work(ctx: JobContext) -> list[Any]:
        pages = []
        try:
            async for page in provider.search(ctx, "wheels", 200):
                pages.append(page)  # noqa: PERF401 (what came before the error is the point)
        except Exception as error:
            server.faults.clear()
            rest = provider.search(ctx, "wheels", 100, start=pages[-1].next)
            pages += [page async for page in rest]
            return [type(error).__name__, [one.title for page in pages for one in page.findings]]
        return ["no error", []]

    done = await runner.run(work, lane="openalex")
    assert done.result == ["HttpError", works(200)]
    assert [asked["cursor"] for asked in server.asked("openalex")] == ["*", "at-100", "at-100"]


@pytest.mark.parametrize("name", ["openalex", "semantic_scholar", "crossref"])
async def test_key_comes_from_the_environment_and_is_in_no_log_and_no_error(
    runner: HandlerApp,
    server: ProviderServer,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("A_KEY", "s3cret")
    caplog.set_level(logging.INFO)
    server.faults[name] = Answer(403)
    done = await search(runner, server.provider(name, "A_KEY"), 1)
    assert error_of(done)[0] == "AuthenticationError"
    (hit,) = server.hits
    sent = (
        server.asked(name)[0].get("api_key"),
        hit.headers.get("x-api-key"),
        hit.headers.get("crossref-plus-api-token"),
    )
    assert sent == {
        "openalex": ("s3cret", None, None),
        "semantic_scholar": (None, "s3cret", None),
        "crossref": (None, None, "Bearer s3cret"),
    }.get(name)
    assert "s3cret" not in str(done) + caplog.text


async def test_key_that_is_not_set_is_named(
    runner: HandlerApp, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("A_KEY", raising=False)
    done = await search(runner, server.provider("openalex", "A_KEY"), 1)
    assert error_of(done) == ("ConfigError", "set A_KEY to the key of openalex")
    assert server.hits == []


@pytest.mark.parametrize("name", ["openalex", "semantic_scholar", "crossref"])
async def test_key_does_not_follow_a_redirect_to_another_host(
    runner: HandlerApp, server: ProviderServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "s3cret")
    server.faults[name] = redirect(server.url("/elsewhere", host="localhost"))
    await search(runner, server.provider(name, "A_KEY"), 1)
    (hit,) = server.at("/elsewhere")
    assert "s3cret" not in f"{hit.query} {hit.headers}"
