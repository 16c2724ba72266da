"""A worker process counts its runs and publishes them with its lease, on every queue."""

import asyncio
import time
from pathlib import Path

import pytest

from penstock import JobContext, PermanentError, RunLater
from penstock.model.tally import Tally
from tests.conformance.support import BACKENDS
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm


@pytest.mark.usefixtures("patient_postgres")
@pytest.mark.parametrize("queue", sorted(BACKENDS))
async def test_runs_are_counted_by_kind_and_outcome_on_every_queue(
    queue: str, tmp_path: Path
) -> None:
    farm = Farm(tmp_path, url=BACKENDS[queue].url(tmp_path))
    farm.settings["lease_seconds"] = 6.0  # it tells of itself every 2 s
    app = farm.bare()
    cancelled = asyncio.Event()

    @app.job("good")
    async def good(ctx: JobContext) -> None:
        await asyncio.sleep(0.02)

    @app.job("bad")
    async def bad(ctx: JobContext) -> None:
        raise PermanentError("it never will")

    @app.job("again", max_retries=1)
    async def again(ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise OSError("only once")

    @app.job("later")
    async def later(ctx: JobContext) -> None:
        if not ctx.job.releases:
            raise RunLater(0.05, "not yet")

    @app.job("endless")
    async def endless(ctx: JobContext) -> None:
        cancelled.set()
        await asyncio.sleep(60)

    async def read() -> Tally:
        tallies = [Tally.from_status(process.status) for process in await app.processes()]
        return sum(tallies, Tally())

    async with app, app.running():
        await app.enqueue_many("good", [{} for _ in range(20)])
        await app.enqueue_many("bad", [{} for _ in range(3)])
        await app.enqueue("again")
        await app.enqueue("later")
        stopped = await app.enqueue("endless")
        await cancelled.wait()
        await app.cancel(stopped.id)
        await app.drain(PATIENCE)

        async def all_told() -> Tally | None:
            counted = await read()
            return counted if counted.count() >= 20 + 3 + 2 + 2 + 1 else None

        counted = await until(all_told, "the tally of everything")
        assert counted.count("completed", "good") == 20
        assert counted.count("failed", "bad") == 3
        assert counted.count("retry", "again") == counted.count("completed", "again") == 1
        assert counted.count("released", "later") == 1
        assert counted.count("cancelled", "endless") == 1
        assert counted.count("refused") == counted.count("handed_back") == 0
        p50, wait = counted.quantile("run", 0.5, "good"), counted.quantile("wait", 0.5, "good")
        assert p50 is not None
        assert 0.01 <= p50 < 20
        assert wait is not None
        assert 0 < wait < PATIENCE
        await app.enqueue("good")
        await app.drain(PATIENCE)

        async def one_more() -> Tally | None:
            since = (await read()) - counted
            return since if since.count() else None

        since = await until(one_more, "the tally of one more")
        assert (since.count(), since.count("completed", "good")) == (1, 1)


async def test_handler_that_blocks_the_event_loop_shows_in_its_process(farm: Farm) -> None:
    app = farm.bare(lease_seconds=0.6)

    @app.job("blocks")
    async def blocks(ctx: JobContext) -> None:
        time.sleep(1.0)  # noqa: ASYNC251 (that is the point)

    async def lag() -> float:
        return max([float(one.status.get("loop_lag", 0)) for one in await app.processes()])

    async with app, app.running():
        await app.enqueue("blocks")

        async def late() -> bool:
            return await lag() > 0.3

        await until(late, "the lag to be told")
