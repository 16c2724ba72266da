"""A lane whose dependency goes away, with times at a tenth of what is usual."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import Job, Penstock
from tests.support.counting_server import CountingServer
from tests.support.waiting import until

SOON = 60.0
RESUMED = 30.0
"""Seconds from the return of a dependency to the first job done; the times are at a tenth, the
limit is generous, because a busy machine may stand still. `make bench` asks for the target."""

LANE: dict[str, Any] = {
    "min_interval_seconds": 0.0,
    "max_parallel": 4,
    "breaker_first_seconds": 0.1,
    "breaker_cap_seconds": 1.0,
    "probe_seconds": 0.3,
    "timeout_seconds": 30.0,
}
STEADY = {**LANE, "breaker_first_seconds": 600.0, "breaker_cap_seconds": 600.0}
"""A lane whose ladder is too long for the test: only a probe, a person or a new process helps."""
JOBS = 100


async def opens(app: Penstock) -> None:
    """Wait for the breaker to open."""

    async def is_open() -> bool:
        return any(lane.breaker == "open" for lane in await app.lane_infos())

    await until(is_open, "the breaker to open")


async def enqueue(app: Penstock, server: CountingServer, count: int = JOBS) -> list[Job]:
    payload = {"lane": "api", "url": server.url("/api"), "note": True}
    return await app.enqueue_many("call", [payload] * count)


async def all_ended(app: Penstock, jobs: list[Job], timeout: float = SOON) -> list[Job]:
    async with asyncio.timeout(timeout):
        return [await app.wait(job.id) for job in jobs]
