"""A handler that blocks the event loop is seen, and named, while it does."""

import asyncio
import logging
import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest

from penstock import JobContext, JobState
from tests.support.app_api import Site
from tests.support.handler_app import error_of
from tests.support.waiting import until
from tests.support.worker_processes import Farm

NEVER = 3600.0
"""A lease that is renewed only where something is to be told."""
TIMEOUT = 4.0


def block(farm: Farm, end: float) -> str:
    """Block until a time, and until the queue's file has the job that does so; its id."""
    give_up = time.monotonic() + 60.0
    with closing(sqlite3.connect(farm.path)) as connection:  # here: this is the place that is named
        while time.monotonic() < give_up:
            (row,) = connection.execute("SELECT status ->> '$.blocked.job' FROM processes")
            if row[0] and time.time() > end:
                return str(row[0])
            time.sleep(0.05)
    raise AssertionError("nobody was named")


@pytest.mark.parametrize("where", ["in the handler", "in a task of it"])
async def test_job_that_blocks_the_event_loop_is_named_and_its_timeout_holds(
    farm: Farm, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    caplog.set_level(logging.WARNING, "penstock")
    app = farm.bare(lease_seconds=NEVER, max_retries=0)
    seen = []

    @app.job("hog", timeout=TIMEOUT)
    async def hog(ctx: JobContext) -> None:
        async def part() -> None:
            seen.append(block(farm, ctx.deadline))

        if where == "in the handler":
            await part()
        else:
            await asyncio.gather(part())

    site = Site(app)
    async with app, app.running():
        job = await app.enqueue("hog")
        done = await app.wait(job.id, timeout=60)
        async with await site.client() as client:

            async def over() -> dict[str, Any] | None:
                seen: dict[str, Any] = (await client.get("/v1/overview")).json()
                return seen if seen["processes"][0]["blocked_seconds"] else None

            overview = await until(over, "it is told that it is over")
            page = (await client.get("/")).text

    assert seen == [job.id]
    assert done.state is JobState.FAILED
    kind, message = error_of(done)
    assert kind == "JobTimeout"
    assert "blocked the event loop, at test_blocked_loop.py:" in message
    every = [one.getMessage() for one in caplog.records if "event loop for" in one.getMessage()]
    (said,) = [one for one in every if f"job {job.id} (hog)" in one]  # others may be the machine's
    assert "test_blocked_loop.py:" in said
    (one,) = [one for one in overview["attention"] if one["what"] == "event loop was blocked"]
    assert f"job {job.id} (hog)" in one["todo"]
    assert overview["processes"][0]["blocked_by"] == job.id
    assert "event loop was blocked" in page
    assert "was blocked by a job" in page
    assert f"/jobs/{job.id}" in page


async def test_who_is_late_because_another_blocked_the_event_loop_completes(farm: Farm) -> None:
    app = farm.bare(lease_seconds=NEVER, max_retries=0)
    begun: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    goes_on = asyncio.Event()

    @app.job("late", timeout=TIMEOUT)
    async def late(ctx: JobContext) -> str:
        begun.set_result(ctx.deadline)
        await goes_on.wait()
        return "done"

    @app.job("hog")
    async def hog(ctx: JobContext) -> None:
        deadline = await begun
        goes_on.set()
        block(farm, deadline)

    async with app, app.running():
        await app.enqueue("hog")
        victim = await app.enqueue("late")
        done = await app.wait(victim.id, timeout=60)
    assert (done.state, done.result) == (JobState.COMPLETED, "done")
