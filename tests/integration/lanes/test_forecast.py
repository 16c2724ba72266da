"""A forecast against what then happens, by the clock on the wall, on the servers' queues."""

import asyncio
from pathlib import Path

import pytest

from penstock import JobContext, Penstock
from tests.conformance.support import Ledger
from tests.support.waiting import PATIENCE

RATE = 10
LANES = {"api": {"requests_per_interval": RATE, "interval_seconds": 1.0, "max_parallel": 50}}
HISTORY, BACKLOG = 10, 50


@pytest.mark.parametrize("backend", ["postgres", "redis"])
async def test_a_backlog_is_done_about_when_it_was_forecast(backend: str, tmp_path: Path) -> None:
    """The rate decides, and no core has to be free: only a machine that stands still makes it late,
    and then it may be very late. There is room for runs of five seconds: those before the forecast
    may have been in the way of such a stand-still, too."""
    ledger = Ledger(backend, tmp_path)
    app = Penstock(ledger.url, lanes=LANES, max_workers=50)

    @app.job("call", lane="api")
    async def call(ctx: JobContext) -> None:
        await asyncio.sleep(0.05)

    try:
        async with app:
            await app.enqueue_many("call", [{}] * HISTORY)
            async with app.running():
                await app.drain(timeout=PATIENCE)
            jobs = await app.enqueue_many("call", [{}] * BACKLOG)
            forecast = await app.forecast(processes=1, workers=50)
            async with app.running():
                await app.drain(timeout=PATIENCE)
            ended = [await app.get(job.id) for job in jobs]
    finally:
        await ledger.close()
    assert forecast.done_at is not None
    assert forecast.jobs == BACKLOG
    (line,) = forecast.lines
    assert (line.lane, line.kind, line.held_by) == ("api", "call", "rate")
    took = max(job.finished_at or 0.0 for job in ended) - forecast.at
    assert (forecast.done_at - forecast.at) / took <= 1.3
    assert forecast.done_at - forecast.at > 0.7 * BACKLOG / RATE
