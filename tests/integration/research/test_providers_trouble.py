"""Search providers that fail: each failure is told for what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from penstock import Job, JobContext, JobState
from penstock.model.lane import LaneConfig
from tests.support.counting_server import Answer
from tests.support.handler_app import HandlerApp, error_of
from tests.support.provider_server import PATHS, ProviderServer, arxiv_feed
from tests.support.rate_windows import least_gap
from tests.support.worker_processes import Farm

QUICK = LaneConfig(min_interval_seconds=0.0, max_parallel=2)
NAMES = list(PATHS)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(1) as server:
        yield server


@pytest.fixture
def runner(farm: Farm) -> HandlerApp:
    return HandlerApp(farm, lanes=dict.fromkeys(NAMES, QUICK))


async def search(runner: HandlerApp, server: ProviderServer, name: str, **options: Any) -> Job:
    provider = server.provider(name)

    async def work(ctx: JobContext) -> list[Any]:
        return [asdict(page) async for page in provider.search(ctx, "wheels", 10)]

    return await runner.run(work, lane=name, **options)


BOMB = b'<!DOCTYPE feed [<!ENTITY a "private">]><feed>&a;</feed>'


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>private: sign in</html>",
        b'{"results": [{"private": ',
        b"[" * 100_000,
        b"null",
        b'["private"]',
        b'{"results": "private", "data": {}, "message": [], "total": 3}',
        b"\xff\xfe\x00private",
        BOMB,
    ],
    ids=["empty", "html", "cut", "deep", "null", "list", "types", "bytes", "bomb"],
)
async def test_answer_in_another_form_ends_the_job_at_once_and_is_not_quoted(
    runner: HandlerApp, server: ProviderServer, name: str, body: bytes
) -> None:
    server.faults[name] = Answer(body=body)
    done = await search(runner, server, name, max_retries=3)
    kind, message = error_of(done)
    assert (done.state, kind, done.attempts) == (JobState.FAILED, "ProviderError", 1)
    assert message.startswith(f"{name} returned")
    assert "private" not in message
    assert len(server.asked(name)) == 1


async def test_query_that_arxiv_does_not_take_is_an_error_and_no_finding(
    runner: HandlerApp, server: ProviderServer
) -> None:
    entry = (
        "<entry><id>http://arxiv.org/api/errors#incorrect_id_format_for_x</id>"
        "<title>Error</title><summary>incorrect id format</summary></entry>"
    )
    server.faults["arxiv"] = Answer(body=arxiv_feed([entry], 1))
    done = await search(runner, server, "arxiv")
    assert error_of(done) == ("ProviderError", "arxiv rejected the query")


async def test_searxng_without_json_is_told_what_to_set(
    runner: HandlerApp, server: ProviderServer
) -> None:
    server.faults["searxng"] = Answer(403)
    kind, message = error_of(await search(runner, server, "searxng"))
    assert kind == "ProviderError"
    assert "`search.formats` in its settings.yml must have json" in message


async def test_silence_of_all_engines_is_not_taken_for_nothing_found(
    runner: HandlerApp, server: ProviderServer
) -> None:
    silent = {"results": [], "unresponsive_engines": [["brave", "timeout"], ["bing", "CAPTCHA"]]}
    server.faults["searxng"] = Answer(body=json.dumps(silent).encode())
    kind, message = error_of(await search(runner, server, "searxng"))
    assert (kind, message.rpartition(": ")[2]) == ("Unavailable", "brave, bing")


@pytest.mark.parametrize("name", NAMES)
async def test_provider_that_says_when_to_come_back_is_left_alone_until_then(
    runner: HandlerApp, server: ProviderServer, name: str
) -> None:
    server.faults[name] = Answer(429, headers={"retry-after": "1"})
    provider = server.provider(name)

    async def work(ctx: JobContext) -> int:
        pages = [page async for page in provider.search(ctx, "wheels", 1)]
        return len(pages[0].findings)

    def heal(path: str, answer: Any = server.answer) -> Answer:
        given: Answer = answer(path)
        server.faults.clear()
        return given

    server.answer = heal  # type: ignore[method-assign]
    done = await runner.run(work, lane=name, max_retries=3)
    assert (done.state, done.result) == (JobState.COMPLETED, 1)
    assert len(server.asked(name)) == 2
    assert least_gap(server.arrivals(PATHS[name])) >= 1.0


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(500), "Unavailable"),
        (Answer(503), "Unavailable"),
        (Answer(reset=True), "Unavailable"),
        (Answer(404), "HttpError"),
    ],
)
async def test_failures_of_the_server_are_those_of_any_request(
    runner: HandlerApp, server: ProviderServer, answer: Answer, kind: str
) -> None:
    server.faults["crossref"] = answer
    assert error_of(await search(runner, server, "crossref"))[0] == kind


@pytest.mark.parametrize(
    "answer",
    [Answer(hang=True), Answer(headers={"content-length": "100000"}, body=b'{"results": [')],
    ids=["no answer", "half an answer"],
)
async def test_answer_that_does_not_come_ends_with_the_time_of_the_job(
    runner: HandlerApp, server: ProviderServer, answer: Answer
) -> None:
    server.faults["openalex"] = answer
    done = await search(runner, server, "openalex", timeout=0.5)
    assert error_of(done)[0] in ("Unavailable", "JobTimeout")


async def test_answer_without_end_is_cut_off(
    runner: HandlerApp, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.research.providers.paged.MAX_BYTES", 100_000)
    server.faults["openalex"] = Answer(body=b" " * 10_000, endless=True)
    kind, message = error_of(await search(runner, server, "openalex"))
    assert kind == "HttpError"
    assert message.endswith("body over 100,000 bytes")


async def test_answer_that_is_slow_but_comes_is_read(
    runner: HandlerApp, server: ProviderServer
) -> None:
    server.delays["semantic_scholar"] = 0.3
    done = await search(runner, server, "semantic_scholar")
    assert len(done.result[0]["findings"]) == 1
