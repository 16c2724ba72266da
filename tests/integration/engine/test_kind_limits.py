"""Kinds of which a process takes only so many at a time."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from penstock import JobContext, JobState, Penstock
from penstock.errors import ConfigError
from tests.support.waiting import look_on, until

QUICK: dict[str, Any] = {"durable": False, "poll_seconds": 0.1, "upkeep_seconds": 0.1}


class Works:
    """An app with a kind that is bounded to three, and one that is not."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.app = Penstock(f"sqlite:///{folder}/jobs.db", **QUICK, **settings)
        self.gate = asyncio.Event()
        self.here = self.most = 0
        self.app.job("bounded", max_per_process=3)(self.bounded)
        self.app.job("quick")(self.quick)

    async def bounded(self, ctx: JobContext) -> None:
        self.here += 1
        self.most = max(self.most, self.here)
        try:
            async with ctx.parked():
                await self.gate.wait()
        finally:
            self.here -= 1

    async def quick(self, ctx: JobContext) -> None: ...


@pytest.fixture
def works(tmp_path: Path) -> Works:
    return Works(tmp_path)


@pytest.mark.parametrize("before", [True, False])
async def test_process_takes_no_more_of_a_kind_and_all_of_the_others(
    works: Works, before: bool
) -> None:
    """Whether they were there before it or come one by one."""
    async with works.app as app:
        if before:
            await app.enqueue_many("bounded", [{}] * 30)
        async with app.running():
            for _ in range(0 if before else 30):
                await app.enqueue("bounded")
            await until(lambda: works.here == 3, "as many as may be")
            for _ in range(3):
                quick = await app.enqueue_many("quick", [{}] * 200)
                for job in quick:
                    assert (await app.wait(job.id, timeout=60)).state is JobState.COMPLETED
            running = await app.jobs(kind="bounded", states=["running"])
            assert len(running) == works.here == 3, "the others are in the queue, for anybody"
            works.gate.set()
            await app.drain(timeout=60)
        assert works.most == 3


async def test_idle_process_makes_no_trips_for_a_kind_that_is_full(works: Works) -> None:
    async with works.app as app, app.running() as orchestrator:
        await app.enqueue_many("bounded", [{}] * 30)
        await until(lambda: works.here == 3, "as many as may be")
        begun, before = time.monotonic(), orchestrator.status["trips"]
        await look_on(0.5)
        most, trips = 60 * (time.monotonic() - begun), orchestrator.status["trips"]
        assert trips - before < most, "it looks now and then, and does not spin"
        works.gate.set()
        await app.drain(timeout=60)


def test_bound_must_be_a_number_of_jobs(works: Works) -> None:
    with pytest.raises(ConfigError, match="max_per_process of 'none' must be at least 1"):
        works.app.job("none", max_per_process=0)(works.quick)
