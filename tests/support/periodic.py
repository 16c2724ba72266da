"""What tests of periodic jobs ask of a queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

from penstock import Job, Penstock
from penstock.model.tick import tick_of
from tests.support.waiting import PATIENCE, until


def tick(job: Job) -> float:
    """The tick of a job that stands for one."""
    found = tick_of(job.id, job.kind, job.key)
    assert found is not None
    return found


async def jobs_of(app: Penstock, kind: str) -> list[Job]:
    """The jobs of a kind, in the order of their ticks."""
    return sorted(await app.jobs(kind=kind, limit=10_000), key=tick)


async def some_jobs(app: Penstock, kind: str, count: int, patience: float = PATIENCE) -> list[Job]:
    """The jobs of a kind, once there are so many."""

    async def enough() -> list[Job] | None:
        jobs = await jobs_of(app, kind)
        return jobs if len(jobs) >= count else None

    return await until(enough, f"{count} jobs of {kind!r}", patience)


async def in_a_row(app: Penstock, kind: str, count: int, seconds: float) -> list[Job]:
    """The jobs of a kind, once the newest of them are of so many ticks without a gap: while the
    machine stands still a tick may be missed, but not time and again."""

    async def enough() -> list[Job] | None:
        jobs = await jobs_of(app, kind)
        return jobs if len(jobs) >= count and not gaps(jobs[-count:], seconds) else None

    jobs = await until(enough, f"{count} ticks of {kind!r} in a row")
    assert len(gaps(jobs, seconds)) <= 2, [tick(job) for job in jobs]
    return jobs


@asynccontextmanager
async def pauses(seconds: float) -> AsyncIterator[list[float]]:
    """How long the machine stood still, each time that it did for more than `seconds`."""
    noted: list[float] = []

    async def watch() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.05)
            if (late := time.monotonic() - before) > seconds:
                noted.append(late)

    watching = asyncio.create_task(watch())
    try:
        yield noted
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def gaps(jobs: Sequence[Job], seconds: float) -> list[float]:
    """Between the ticks of jobs in order: how many were missed each time, if any."""
    numbers = [round(tick(job) / seconds) for job in jobs]
    steps = [later - earlier - 1 for earlier, later in pairwise(numbers)]
    return [step for step in steps if step]


def last_tick_ago(seconds: float) -> float:
    """An interval, of days, whose last tick was so many seconds ago on this machine's clock."""
    return (time.time() - seconds) / 1000
