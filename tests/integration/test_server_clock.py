"""Worker processes whose clock is wrong: the queue goes by its server's."""

import asyncio
import time
from itertools import pairwise
from pathlib import Path

import pytest

from penstock import JobContext, JobState, Penstock, RunLater
from tests.conformance.support import BACKENDS

HOUR = 3600.0


@pytest.fixture(params=["postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return BACKENDS[request.param].url(tmp_path)


@pytest.fixture
def right_time() -> float:
    """What the server's clock says, about."""
    return time.time()


@pytest.fixture(params=[HOUR, -HOUR], ids=["ahead", "behind"])
def wrong_clock(
    request: pytest.FixtureRequest, right_time: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process is an hour off."""
    right, skew = time.time, request.param
    monkeypatch.setattr(time, "time", lambda: right() + skew)


@pytest.mark.usefixtures("wrong_clock")
async def test_skewed_worker_keeps_delays_retries_and_timeouts(url: str, right_time: float) -> None:
    app = Penstock(url, retry_base_seconds=0.1)
    starts: list[float] = []

    @app.job("flaky", max_retries=2, timeout=5.0)
    async def flaky(ctx: JobContext) -> float:
        starts.append(time.monotonic())
        if len(starts) == 1:
            raise RunLater(0.3)
        if len(starts) == 2:
            raise ValueError
        return ctx.remaining()

    async with app.running():
        enqueued = time.monotonic()
        job = await app.enqueue("flaky", delay=0.4)
        done = await app.wait(job.id, timeout=60)

    assert 0.39 <= starts[0] - enqueued < 2.5, "not before its time, and not much after"
    assert (done.state, done.attempts) == (JobState.COMPLETED, 2)
    assert 0.29 <= starts[1] - starts[0] < 2.0, "released for as long as it asked"
    assert starts[2] - starts[1] < 2.0
    assert 3.0 < done.result <= 5.0
    assert done.started_at is not None
    assert abs(done.started_at - right_time) < 60, "stored times are the server's"


@pytest.mark.usefixtures("wrong_clock")
async def test_skewed_worker_neither_exceeds_a_rate_nor_stalls(url: str) -> None:
    app = Penstock(url, lanes={"api": {"min_interval_seconds": 0.1, "max_parallel": 5}})
    starts: list[float] = []

    @app.job("call", lane="api")
    async def call(ctx: JobContext) -> None:
        starts.append(time.monotonic())
        async with ctx.lanes.permit("api"):
            starts.append(time.monotonic())

    async with app.running():
        jobs = await app.enqueue_many("call", [{}] * 6)
        async with asyncio.timeout(60):
            for job in jobs:
                assert (await app.wait(job.id)).attempts == 1
    starts.sort()
    assert len(starts) == 12
    assert min(later - earlier for earlier, later in pairwise(starts)) > 0.08
