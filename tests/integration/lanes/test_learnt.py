"""A lane that learns its limit, and a provider that says in its headers what is left."""

import asyncio
from pathlib import Path

import pytest

from penstock import JobContext, Penstock
from penstock.testing import simulate
from tests.support.metered_provider import Limits, MeteredProvider

WINDOW = 2.0


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
async def test_a_provider_that_says_what_is_left_refuses_nothing(
    tmp_path: Path, dialect: str
) -> None:
    limits = Limits(requests=20, tokens=1000, seconds=WINDOW)
    lane = {"max_parallel": "auto", "min_interval_seconds": 0}
    with MeteredProvider(limits, dialect=dialect, latency=0.02) as provider:
        app = Penstock(f"sqlite:///{tmp_path}/jobs.db", lanes={"model": lane})
        body = {"input_tokens": 10, "max_tokens": 20}

        @app.job("own", lane="model")
        async def own(ctx: JobContext) -> None:
            await ctx.http.post(provider.url, json=body)

        @app.job("other")
        async def other(ctx: JobContext) -> None:
            for _ in range(2):
                await ctx.http.post(provider.url, json=body, lane="model")

        async with app.running():
            await app.enqueue_many("own", [None] * 25)
            await app.enqueue_many("other", [None] * 5)
            await app.drain(timeout=120)
            (found,) = [one for one in await app.lane_infos() if one.name == "model"]

    assert len(provider.log) == 35
    assert [one.over for one in provider.refused] == []
    assert found.learnt is not None


async def test_requests_that_a_provider_refuses_cost_nothing_but_time(tmp_path: Path) -> None:
    lane = {"max_parallel": "auto", "auto_min": 2, "min_interval_seconds": 0}
    with MeteredProvider(Limits(parallel=5), dialect="bare", latency=0.05) as provider:
        app = Penstock(f"sqlite:///{tmp_path}/jobs.db", lanes={"model": lane}, max_workers=30)

        @app.job("own", lane="model")
        async def own(ctx: JobContext) -> None:
            await ctx.http.post(provider.url, json={})

        async with app.running():
            jobs = await app.enqueue_many("own", [None] * 80)
            await app.drain(timeout=120)
            (found,) = [one for one in await app.lane_infos() if one.name == "model"]
            ended = [await app.get(job.id) for job in jobs]

    assert {(job.state, job.attempts) for job in ended} == {("completed", 1)}
    assert found.learnt is not None
    assert found.learnt.max_parallel < 8
    assert len(provider.refused) < 20


def test_a_simulation_goes_by_what_was_learnt() -> None:
    app = Penstock(
        "sqlite:///simulated.db",
        max_workers=20,
        lanes={"model": {"max_parallel": "auto", "auto_max": 12, "min_interval_seconds": 0}},
    )
    busy, most = [0], [0]

    @app.job("ask", lane="model", max_retries=20)
    async def ask(ctx: JobContext) -> None:
        busy[0] += 1
        most[0] = max(most[0], busy[0])
        try:
            await asyncio.sleep(0.05)
        finally:
            busy[0] -= 1

    async def scenario(app: Penstock) -> None:
        await app.enqueue_many("ask", [None] * 150)

    def begin() -> None:
        busy[0] = 0

    simulate(app, scenario, seeds=3, reset=begin)
    assert most[0] > 4
