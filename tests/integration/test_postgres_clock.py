"""Worker processes whose clock is wrong: the queue's clock counts, and it is the server's."""

import asyncio
import time
from itertools import pairwise

import pytest

from penstock import JobContext, JobState, Penstock, RunLater
from tests.support.postgres import new_url, psql

SKEWS = [3600.0, -3600.0]


@pytest.fixture(params=SKEWS, ids=["ahead", "behind"])
def wrong_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is an hour off."""
    right, skew = time.time, request.param
    monkeypatch.setattr(time, "time", lambda: right() + skew)


@pytest.mark.usefixtures("wrong_clock")
async def test_skewed_worker_keeps_delays_retries_and_timeouts() -> None:
    url = new_url()
    app = Penstock(url, retry_base_seconds=0.1)
    starts: dict[str, list[float]] = {}

    @app.job("flaky", max_retries=2, timeout=5.0)
    async def flaky(ctx: JobContext) -> float:
        starts.setdefault(ctx.job.id, []).append(time.monotonic())
        if ctx.attempt == 1 and len(starts[ctx.job.id]) == 1:
            raise RunLater(0.3)
        if ctx.attempt == 1:
            raise ValueError
        return ctx.remaining()

    async with app.running():
        enqueued = time.monotonic()
        job = await app.enqueue("flaky", delay=0.4)
        done = await app.wait(job.id, timeout=10)
        first, second, _ = starts[job.id]

    assert done.state is JobState.COMPLETED
    assert first - enqueued >= 0.39, "not before its time"
    assert second - first >= 0.29, "released for as long as it asked"
    assert 3.0 < done.result <= 5.0
    async with psql(url) as mine:
        (now,) = (await mine.fetch("SELECT penstock.clock()"))[0]
    assert done.started_at is not None
    assert abs(done.started_at - now) < 60, "stored times are the server's"


@pytest.mark.usefixtures("wrong_clock")
async def test_skewed_worker_neither_exceeds_a_rate_nor_stalls() -> None:
    app = Penstock(new_url(), lanes={"api": {"min_interval_seconds": 0.1, "max_parallel": 5}})
    starts: list[float] = []

    @app.job("call", lane="api")
    async def call(ctx: JobContext) -> None:
        starts.append(time.monotonic())
        async with ctx.lanes.permit("api"):
            starts.append(time.monotonic())

    async with app.running():
        jobs = await app.enqueue_many("call", [{}] * 6)
        async with asyncio.timeout(20):
            for job in jobs:
                assert (await app.wait(job.id)).attempts == 1
    starts.sort()
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert len(starts) == 12
    assert min(gaps) > 0.08
