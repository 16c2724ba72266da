"""What tests of periodic jobs ask of a queue."""

from __future__ import annotations

import time
from collections.abc import Sequence
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


def gaps(jobs: Sequence[Job], seconds: float) -> list[float]:
    """Between the ticks of jobs in order: how many were missed each time, if any."""
    numbers = [round(tick(job) / seconds) for job in jobs]
    steps = [later - earlier - 1 for earlier, later in pairwise(numbers)]
    return [step for step in steps if step]


def last_tick_ago(seconds: float) -> float:
    """An interval, of days, whose last tick was so many seconds ago on this machine's clock."""
    return (time.time() - seconds) / 1000
