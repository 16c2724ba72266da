"""Worker processes whose clock is wrong: the queue goes by its server's."""

import asyncio
import time
from pathlib import Path

import pytest

from penstock import JobContext, JobState, Penstock, RunLater, runtime
from tests.conformance.support import BACKENDS
from tests.support.waiting import PATIENCE

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
    monkeypatch.setattr(runtime, "now", time.time)


@pytest.mark.usefixtures("wrong_clock")
async def test_skewed_worker_keeps_delays_retries_and_timeouts(url: str, right_time: float) -> None:
    app = Penstock(url, retry_base_seconds=0.1)
    starts: list[float] = []

    @app.job("flaky", max_retries=2, timeout=600.0)
    async def flaky(ctx: JobContext) -> float:
        starts.append(time.monotonic())
        if len(starts) == 1:
            raise RunLater(1.5)
        if len(starts) == 2:
            raise ValueError
        return ctx.remaining()

    async with app.running():
        enqueued = time.monotonic()
        job = await app.enqueue("flaky", delay=1.5)
        done = await app.wait(job.id, timeout=60)

    # The queue knows its server's clock as well as the way there is quick, which it need not be.
    assert 0.5 < starts[0] - enqueued < PATIENCE, "not before its time, and not much after"
    assert (done.state, done.attempts) == (JobState.COMPLETED, 2)
    assert 0.5 < starts[1] - starts[0] < PATIENCE, "released for as long as it asked"
    assert starts[2] - starts[1] < PATIENCE
    assert 500 < done.result <= 601
    assert done.started_at is not None
    assert abs(done.started_at - right_time) < HOUR / 6, "stored times are the server's"


@pytest.mark.usefixtures("wrong_clock")
async def test_skewed_worker_neither_exceeds_a_rate_nor_stalls(url: str) -> None:
    app = Penstock(url, lanes={"api": {"min_interval_seconds": 0.1, "max_parallel": 5}})
    starts: list[float] = []

    @app.job("call", lane="api")
    async def call(ctx: JobContext) -> None:
        starts.append(time.monotonic())
        async with ctx.lanes.permit("api"):
            starts.append(time.monotonic())

    begun = time.monotonic()
    async with app.running():
        jobs = await app.enqueue_many("call", [{}] * 6)
        async with asyncio.timeout(60):
            for job in jobs:
                assert (await app.wait(job.id)).attempts == 1
    assert len(starts) == 12
    # Not from one to the next: on a busy machine some are noted late.
    assert max(starts) - begun > 11 * 0.08
