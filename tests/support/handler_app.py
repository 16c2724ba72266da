"""One kind of job whose handler a test brings, for tests of what handlers ask of the outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from penstock import Job, JobContext
from penstock.model.lane import LaneConfig
from tests.support.worker_processes import Farm

SOON = 60.0
FREE = LaneConfig(min_interval_seconds=0.0, max_parallel=20)
LANES = {"api": FREE, "fetch": FREE, "host:*": FREE}
DAY = 86400.0
MIDNIGHT = 20.0
"""Seconds before midnight (UTC) in which nothing is begun: what a lane has used of the day is
counted anew then."""
Work = Callable[[JobContext], Awaitable[Any]]


class HandlerApp:
    """An app with one kind of job, in lane `api` or in none, whose handler a test brings."""

    def __init__(self, farm: Farm, **settings: Any) -> None:
        self.farm = farm
        self.app = farm.bare(**{"lanes": LANES, "max_retries": 0, **settings})

    def register(self, work: Work, lane: str | None, **options: Any) -> None:
        async def handler(ctx: JobContext) -> Any:
            return await work(ctx)

        self.app.job("work", lane=lane, **options)(handler)

    async def run(
        self,
        work: Work,
        *,
        lane: str | None = "api",
        deadline: float | None = None,
        patience: float = SOON,
        **options: Any,
    ) -> Job:
        """One job, from beginning to end."""
        to_midnight = DAY - time.time() % DAY
        await asyncio.sleep(to_midnight if to_midnight < MIDNIGHT else 0.0)
        self.register(work, lane, **options)
        async with self.app, self.app.running():
            at = None if deadline is None else time.time() + deadline
            job = await self.app.enqueue("work", deadline=at)
            return await self.app.wait(job.id, timeout=patience)

    async def opened_breaker(self, lane: str) -> None:
        """A lane in the middle of an outage, whose next try is due."""
        async with self.app:
            await self.app.control_lane(lane, "resume")
        self.farm.execute("UPDATE lanes SET step = 3, retry_at = 0 WHERE name = ?", lane)

    def use_of(self, lane: str) -> int:
        """How many permits of a lane with a daily limit have been taken."""
        rows = self.farm.query("SELECT used_today FROM lanes WHERE name = ?", lane)
        return int(rows[0][0]) if rows else 0


def error_of(job: Job) -> tuple[str, str]:
    assert job.error is not None
    return job.error.type, job.error.message
