"""`ctx.http`: a request that is answered 429 waits its turn and is sent again, and no other is."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from penstock import JobContext, JobState
from penstock.errors import RateLimited
from penstock.model.lane import LaneConfig
from penstock.outbound import http
from tests.support.counting_server import Answer, CountingServer
from tests.support.handler_app import FREE, LANES, SOON, HandlerApp
from tests.support.waiting import until
from tests.support.worker_processes import Farm

Limit = Callable[..., None]
ONE = LaneConfig(min_interval_seconds=0.0, max_parallel=1)


@pytest.fixture
def limit(server: CountingServer, monkeypatch: pytest.MonkeyPatch) -> Limit:
    """Answers the first requests to a path with 429."""
    others = server.answer

    def limit(path: str, times: int = 1, retry_after: int = 0) -> None:
        def answer(asked: str) -> Answer:
            if asked == path and len(server.at(path)) <= times:
                return Answer(429, headers={"retry-after": str(retry_after)})
            return others(asked)

        monkeypatch.setattr(server, "answer", answer)

    return limit


@pytest.mark.parametrize("lane", ["api", None])
async def test_one_429_in_a_fan_out_repeats_that_request_alone(
    runner: HandlerApp, server: CountingServer, limit: Limit, lane: str | None
) -> None:
    limit("/7")

    async def work(ctx: JobContext) -> int:
        asked = (ctx.http.post(server.url(f"/{n}"), json=n, lane="api") for n in range(12))
        return len(await asyncio.gather(*asked))

    job = await runner.run(work, lane=lane)
    assert (job.state, job.result, job.attempts, job.releases) == (JobState.COMPLETED, 12, 1, 0)
    asked = Counter(hit.path for hit in server.hits)
    assert asked == {f"/{n}": 2 if n == 7 else 1 for n in range(12)}
    assert [hit.body for hit in server.at("/7")] == [b"7", b"7"]


async def test_waiting_as_retry_after_says_does_not_count_toward_the_timeout(
    runner: HandlerApp, server: CountingServer, limit: Limit
) -> None:
    limit("/", retry_after=6)
    runs: list[int] = []

    async def work(ctx: JobContext) -> int:
        runs.append(ctx.token)
        return (await ctx.http.get(server.url("/"))).status_code

    job = await runner.run(work, timeout=5.0)
    assert (job.state, job.result, job.attempts) == (JobState.COMPLETED, 200, 1)
    assert len(runs) == 1
    first, second = server.arrivals("/")
    assert second - first >= 5.9


async def test_stream_that_is_answered_429_is_asked_for_again(
    runner: HandlerApp, server: CountingServer, limit: Limit
) -> None:
    limit("/")
    runs: list[int] = []

    async def work(ctx: JobContext) -> str:
        runs.append(ctx.token)
        async with ctx.http.stream("GET", server.url("/")) as parts:
            return b"".join([part async for part in parts]).decode()

    assert (await runner.run(work)).result == "{}"
    assert (len(server.hits), len(runs)) == (2, 1)


async def refused(ctx: JobContext, url: str, **options: Any) -> bool:
    """Whether a request ends in RateLimited, which its lane knows of."""
    try:
        await ctx.http.post(url, **options)
    except RateLimited as error:
        report = ctx.lanes.reports.of(error)
        return report is not None and report.told
    return False


async def test_429s_without_end_are_raised_after_so_many_tries(
    runner: HandlerApp, server: CountingServer, limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "RATE_LIMITED_TRIES", 3)
    limit("/", times=100)

    async def work(ctx: JobContext) -> bool:
        return await refused(ctx, server.url("/"))

    assert (await runner.run(work)).result is True
    assert len(server.hits) == 3


async def stream() -> AsyncIterator[bytes]:
    yield b"once"


@pytest.mark.parametrize(
    ("options", "deadline"),
    [
        (lambda: {"content": stream()}, None),
        (lambda: {"patience": 0.0}, None),
        (dict, SOON),
    ],
    ids=["a body that can be sent once", "no patience", "a deadline before that"],
)
async def test_429_is_raised_at_once_where_the_request_cannot_be_sent_again(
    runner: HandlerApp,
    server: CountingServer,
    limit: Limit,
    options: Callable[[], dict[str, Any]],
    deadline: float | None,
) -> None:
    limit("/", retry_after=600)

    async def work(ctx: JobContext) -> bool:
        return await refused(ctx, server.url("/"), **options())

    assert (await runner.run(work, deadline=deadline)).result is True
    assert len(server.hits) == 1


async def test_429_is_raised_where_the_breaker_opens_before_its_next_turn(
    farm: Farm, server: CountingServer, limit: Limit
) -> None:
    runner = HandlerApp(farm, poll_seconds=0.05)
    limit("/", retry_after=600)

    async def work(ctx: JobContext) -> bool:
        return await refused(ctx, server.url("/"), lane="api")

    async def paused() -> bool:
        return any(lane.blocked_why for lane in await runner.app.lane_infos())

    runner.register(work, None)
    async with runner.app, runner.app.running():
        job = await runner.app.enqueue("work")
        await until(paused, "the lane to pause")
        farm.execute("UPDATE lanes SET step = 3, retry_at = 1e12, blocked_until = 0")
        assert (await runner.app.wait(job.id, timeout=SOON)).result is True
    assert len(server.hits) == 1


async def test_job_whose_lane_pauses_leaves_the_slot_of_its_parent_to_others(
    farm: Farm, server: CountingServer, limit: Limit
) -> None:
    child = LaneConfig(min_interval_seconds=0.0, max_parallel=1, parent="family")
    lanes = {**LANES, "family": ONE, "limited": child, "free": child, "fetch": FREE}
    app = farm.bare(lanes=lanes)
    limit("/limited", retry_after=600)

    @app.job("work", lane=lambda payload: str(payload["lane"]))
    async def work(ctx: JobContext, lane: str) -> None:
        await ctx.http.get(server.url(f"/{lane}"))

    async with app, app.running():
        waits = await app.enqueue("work", {"lane": "limited"})
        await until(lambda: len(server.hits), "the 429")
        other = await app.enqueue("work", {"lane": "free"})
        assert (await app.wait(other.id, timeout=SOON)).state is JobState.COMPLETED
        assert (await app.get(waits.id)).state is JobState.RUNNING
        await app.control_lane("limited", "resume")
        assert (await app.wait(waits.id, timeout=SOON)).state is JobState.COMPLETED
    assert [hit.path for hit in server.hits] == ["/limited", "/free", "/limited"]
