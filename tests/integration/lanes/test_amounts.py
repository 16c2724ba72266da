"""Tokens that a provider counts: four processes together stay below, whatever they ask for."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import JobContext, JobState, Penstock
from penstock.errors import AmountTooLarge, ValidationError
from tests.support.counting_server import Answer, CountingServer
from tests.support.metered_provider import MeteredProvider
from tests.support.spending import APART, TOGETHER, error_in_flight, limits_of, spend
from tests.support.worker_processes import Farm

SOON = 60.0
WINDOW = 3.0
FIRST = [
    ("sqlite", TOGETHER, "sliding"),
    ("postgres", APART, "sliding"),
    ("redis", TOGETHER, "bucket"),
]
COURSES = [
    *FIRST,
    *(
        pytest.param(queue, meters, window, marks=pytest.mark.long)
        for queue in ("sqlite", "postgres", "redis", "valkey")
        for meters in (TOGETHER, APART)
        for window in ("sliding", "bucket")
        if (queue, meters, window) not in FIRST
    ),
]


@pytest.mark.parametrize(("queue", "meters", "window"), COURSES)
async def test_provider_that_counts_tokens_refuses_nothing(
    tmp_path: Path, queue: str, meters: tuple[str, ...], window: str
) -> None:
    with MeteredProvider(limits_of(60_000, meters, WINDOW, window)) as provider:
        count = await spend(tmp_path, queue, provider, windows=2.0)
    print(f"{queue}: {provider.worst}, {provider.late} late")
    assert (provider.refused, len(provider.log)) == ([], count)
    assert max(provider.worst.values()) <= 1 + 1e-6


@pytest.mark.parametrize("refuses", [False, True])
async def test_bounds_that_are_too_low_overshoot_by_the_error_in_flight_and_lose_nothing(
    tmp_path: Path, refuses: bool
) -> None:
    limits = limits_of(60_000, TOGETHER, WINDOW, "sliding")
    with MeteredProvider(limits, refuses=refuses) as provider:
        count = await spend(tmp_path, "sqlite", provider, windows=2.0, real=(1.0, 3.0))
    over = (provider.worst["tokens"] - 1) * 60_000
    in_flight = error_in_flight(provider.log, lag=WINDOW / 3)
    print(f"{over:,.0f} tokens over, {in_flight:,} in flight; {len(provider.refused)} refused")
    assert len([one for one in provider.log if not one.over]) == count
    assert over <= in_flight


def app_of(farm: Farm, **lane: Any) -> Penstock:
    keys = {"tokens_per_interval": 1000, "interval_seconds": 600.0, **lane}
    return farm.bare(lanes={"model": keys, "child": {"min_interval_seconds": 0, "parent": "model"}})


async def test_permit_waits_for_room_until_others_tell_their_use(farm: Farm) -> None:
    app = app_of(farm, max_parallel=4)

    @app.job("ask")
    async def ask(ctx: JobContext) -> list[str]:
        seen = []
        async with ctx.lanes.permit("model", tokens=900) as first:
            first.used(tokens=100)
            seen.append("first")
        async with ctx.lanes.permit("child", tokens=900):
            seen.append("second")
        try:
            async with ctx.lanes.permit("model", tokens=1, patience=0.2):
                seen.append("third")
        except Exception as error:
            seen.append(str(error))
        return seen

    async with app, app.running():
        done = await app.wait((await app.enqueue("ask")).id, timeout=SOON)
    assert done.result == ["first", "second", "lane model is busy: its tokens"]


async def test_what_is_too_large_is_a_clear_error_wherever_it_is_found(farm: Farm) -> None:
    app = app_of(farm)

    @app.job("ask")
    async def ask(ctx: JobContext) -> None:
        async with ctx.lanes.permit("model", tokens=1001):
            pass

    @app.job("large", lane="model", amount=lambda payload: payload["words"])
    async def large(ctx: JobContext, words: int) -> int:
        return words

    why = "1001 tokens in a window are more than lane model has, 1000"
    async with app:
        with pytest.raises(AmountTooLarge, match=why):
            await app.enqueue("large", {"words": 1001})
        with pytest.raises(ValidationError, match="the amount of a 'large' job"):
            await app.enqueue("large", {"words": -5})
        # From a process that knows neither the kind nor the lane.
        async with farm.bare() as stranger:
            unknown = await stranger.enqueue("large", {"words": 1001})
            small = await stranger.enqueue("large", {"words": 7})
        async with app.running():
            asked = await app.wait((await app.enqueue("ask")).id, timeout=SOON)
            found = await app.wait(unknown.id, timeout=SOON)
            done = await app.wait(small.id, timeout=SOON)
    for job in (asked, found):
        assert job.error is not None
        assert (job.state, job.error.type, job.attempts) == (JobState.FAILED, "AmountTooLarge", 1)
        assert job.error.message == why
    assert done.result == 7


async def test_client_reads_the_use_from_the_answer(farm: Farm, server: CountingServer) -> None:
    usage = b'{"usage": {"prompt_tokens": 60, "completion_tokens": 40}}'
    server.answers["/ok"] = Answer(body=usage)
    server.answers["/busy"] = Answer(429, headers={"retry-after": "0"})
    app = app_of(farm, max_parallel=4)

    @app.job("call", lane="model", amount={"input_tokens": 300, "output_tokens": 400})
    async def call(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/ok"))  # by the start: 700, and then 100
        await ctx.http.post(server.url("/ok"), amount=900)
        await ctx.http.post(server.url("/ok"), amount={"tokens": 800, "cost": 0.01})

    async with app, app.running():
        done = await app.wait((await app.enqueue("call")).id, timeout=SOON)
    assert done.state is JobState.COMPLETED, done.error
    ((used,),) = farm.query("SELECT used FROM lanes WHERE name = 'model'")
    _, _, _, _, parts, under_way, _, _ = json.loads(used)
    assert (sum(part[1] for part in parts), under_way) == (300, [])


async def test_rerun_by_who_does_not_know_the_kind_reserves_the_amount(farm: Farm) -> None:
    app = app_of(farm)

    @app.job("large", lane="model", amount=600)
    async def large(ctx: JobContext) -> float:
        assert ctx._run.lease.reserved is not None
        return ctx._run.lease.reserved.tokens

    async with app:
        async with app.running():
            first = await app.wait((await app.enqueue("large")).id, timeout=SOON)
        async with app_of(farm) as stranger:
            again = await stranger.rerun(first.id)
        async with app.running():
            held = await app.get(again.id)
            assert held.state is JobState.QUEUED, "400 are left of 1000"
    assert first.result == 600
