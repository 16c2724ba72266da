"""How much a process claims ahead of its workers."""

import asyncio
import time
from pathlib import Path

import pytest

from penstock import JobContext, Penstock, runtime
from tests.support.waiting import PATIENCE, look_on

HOUR = 3600.0


async def test_clock_that_is_set_back_during_a_run_has_a_process_hoard_no_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that seems to have taken less than no time says nothing of how long jobs take."""
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db", max_workers=1, lease_seconds=600.0)
    begun, done = asyncio.Event(), asyncio.Event()

    @app.job("first")
    async def first(ctx: JobContext) -> None:
        monkeypatch.setattr(runtime, "now", lambda: time.time() - HOUR)

    @app.job("long")
    async def long(ctx: JobContext) -> None:
        begun.set()
        await done.wait()

    async with app.running():
        await app.wait((await app.enqueue("first")).id, timeout=PATIENCE)
        await app.enqueue_many("long", [{}] * 20)
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await look_on(0.2)
        states = [job.state.value for job in await app.jobs(limit=100)]
        done.set()

    assert states.count("running") == 1
