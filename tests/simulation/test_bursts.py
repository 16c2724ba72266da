"""Bursts under a virtual clock and faults: no payload is acknowledged and then not run."""

import asyncio
import random

from penstock import Job, JobContext, JobState, Penstock, runtime
from penstock.testing import simulate

SEEDS = 30


def test_latest_payload_that_was_acknowledged_is_the_one_that_runs() -> None:
    desk = Penstock("sqlite:///simulated.db", lease_seconds=3.0, retry_base_seconds=0.1)
    told: dict[str, int] = {}

    @desk.job("index", max_retries=8)
    async def index(ctx: JobContext, n: int) -> int:
        await asyncio.sleep(0.2)
        return n

    async def typing(app: Penstock) -> None:
        chance = random.Random(runtime.random_bytes(8))
        burst = index.on(app).with_options(debounce=0.3, debounce_key="k", max_wait=1.0)
        for n in range(30):
            told[(await burst.enqueue(n=n)).id] = n
            await asyncio.sleep(chance.choice((0.0, 0.1, 0.29, 0.3, 0.31, 0.6)))
        for job in list(told):
            await app.wait(job)

    def check(jobs: list[Job]) -> None:
        assert {job.id for job in jobs} == told.keys()
        for job in jobs:
            assert job.payload == {"n": told[job.id]}
            assert job.state is not JobState.COMPLETED or job.result == told[job.id]

    report = simulate(desk, typing, seeds=range(SEEDS), check=check, reset=told.clear)
    assert report.jobs > 3 * SEEDS
