"""Services that run no jobs make requests with the same permits as jobs do."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock import JobContext, JobOrchestrator, JobState, Penstock
from penstock.errors import DeadlineExceeded, LaneBusy, Unavailable
from penstock.ports.lanes import LaneInfo
from tests.support.counting_server import Answer, CountingServer
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

ONE: dict[str, Any] = {"lanes": {"api": {"min_interval_seconds": 0.0, "max_parallel": 1}}}
LONG = 600.0


@pytest.fixture
def farm(farm: Farm) -> Farm:
    """No lease ends during a test."""
    farm.settings["lease_seconds"] = LONG
    return farm


@asynccontextmanager
async def service_of(app: Penstock) -> AsyncIterator[JobOrchestrator]:
    """The process as a member of the queue that runs no jobs."""
    async with app:
        service = JobOrchestrator(app.queue, {}, settings=app.config.engine, works=False)
        await service.start()
        try:
            yield service
        finally:
            await service.stop()


async def api(app: Penstock) -> LaneInfo:
    (lane,) = [lane for lane in await app.lane_infos() if lane.name == "api"]
    return lane


async def test_member_that_runs_no_jobs_takes_none(farm: Farm) -> None:
    app = farm.bare()

    @app.job("call")
    async def call(ctx: JobContext) -> None:
        pass

    async with service_of(app) as service:
        job = await app.enqueue("call")
        (process,) = await app.processes()
        assert (process.kinds, process.max_workers, service.workers) == ([], 0, [])
        async with app.running():  # others do
            assert (await app.wait(job.id, timeout=60)).state is JobState.COMPLETED
    assert not service.running


async def test_visit_and_job_never_have_the_same_slot(farm: Farm) -> None:
    app = farm.bare(**ONE)

    @app.job("call", lane="api")
    async def call(ctx: JobContext) -> None:
        pass

    async with service_of(app) as service, app.running():
        visit = service.asking("default", app.queue.now() + LONG)
        async with visit.lanes.request("api"):
            job = await app.enqueue("call")
            await until(lambda: _waits(app, job.id), "the job to wait for the lane")
            assert (await api(app)).in_flight == 1
        assert (await app.wait(job.id, timeout=60)).state is JobState.COMPLETED


async def _waits(app: Penstock, job_id: str) -> bool:
    return (await app.get(job_id)).waiting_for is not None


async def test_visit_waits_for_a_slot_longer_than_a_job_would(farm: Farm) -> None:
    app = farm.bare(**ONE)
    async with service_of(app) as service:
        first, second = (service.asking("default", app.queue.now() + LONG) for _ in range(2))
        got = asyncio.Event()

        async def wait() -> None:
            async with second.lanes.request("api"):
                got.set()

        async with first.lanes.request("api"):
            waiting = asyncio.create_task(wait())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(got.wait(), 1.5)
        await asyncio.wait_for(waiting, PATIENCE)


async def test_visit_whose_time_is_up_is_told_that_the_lane_is_busy(farm: Farm) -> None:
    app = farm.bare(**ONE)
    async with service_of(app) as service:
        first = service.asking("default", app.queue.now() + LONG)
        async with first.lanes.request("api"):
            began = time.monotonic()
            second = service.asking("default", app.queue.now() + 2.0)
            with pytest.raises(LaneBusy, match="all its slots are taken"):
                async with second.lanes.request("api"):
                    pass
            assert 1.0 < time.monotonic() - began < PATIENCE
            assert second.remaining() == 0


async def test_cancelled_visit_gives_its_permit_back(farm: Farm) -> None:
    app = farm.bare(**ONE)
    async with service_of(app) as service:
        holds = asyncio.Event()

        async def hold() -> None:
            async with service.asking("default", app.queue.now() + LONG).lanes.request("api"):
                holds.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hold())
        await holds.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with service.asking("default", app.queue.now() + LONG).lanes.request("api"):
            pass
    assert farm.query("SELECT * FROM slots") == []


async def test_slots_of_a_killed_service_are_free_at_once(farm: Farm) -> None:
    lanes = {"api": {"min_interval_seconds": 0.0, "max_parallel": 2}}
    farm.settings["lanes"] = lanes
    options = {"url": farm.url, "lane": "api", "permits": 2, "settings": farm.settings}
    victim = await farm.run("tests.support.permit_holder", options)
    async with service_of(farm.bare()) as service:
        await victim.kill()
        killed = time.monotonic()
        async with service.asking("default", time.time() + LONG).lanes.request("api"):
            assert time.monotonic() - killed < PATIENCE, "without waiting for the lease"


async def test_slots_of_a_service_that_ends_are_free(farm: Farm) -> None:
    farm.settings |= ONE
    options = {"url": farm.url, "lane": "api", "permits": 1, "settings": farm.settings}
    process = await farm.run("tests.support.permit_holder", options)
    assert len(farm.query("SELECT * FROM slots")) == 1
    process.send(signal.SIGTERM)
    assert await process.exit() == 0
    assert farm.query("SELECT * FROM slots") == []


async def test_breaker_counts_visits_as_it_counts_jobs(farm: Farm, server: CountingServer) -> None:
    steady = {"breaker_first_seconds": LONG, "breaker_cap_seconds": LONG}
    app = farm.bare(lanes={"api": {**ONE["lanes"]["api"], **steady}})
    server.answers["/"] = Answer(500)
    async with service_of(app) as service:
        first, second = (service.asking("default", app.queue.now() + LONG) for _ in range(2))

        async def fail(visit: Any) -> None:
            with pytest.raises(Unavailable) as caught:
                await visit.http.post(server.url("/x"), lane="api")
            assert caught.value.lane == "api"

        await fail(first)
        await fail(first)
        await until(lambda: _is(app, "suspect"), "one visit to be taken for one witness")
        await fail(second)
        await until(lambda: _is(app, "open"), "two visits to open the breaker")
        with pytest.raises(LaneBusy, match="breaker"):
            await first.http.post(server.url("/x"), lane="api")


async def _is(app: Penstock, breaker: str) -> bool:
    lane = await api(app)
    return lane.breaker == breaker and lane.in_flight == 0


async def test_requests_of_a_visit_end_with_it(farm: Farm, server: CountingServer) -> None:
    app = farm.bare(**ONE)
    server.answers["/"] = Answer(hang=True)
    async with service_of(app) as service:
        visit = service.asking("default", app.queue.now() + 3.0)
        with pytest.raises(Unavailable):
            await visit.http.post(server.url("/x"), lane="api")
        with pytest.raises(DeadlineExceeded):
            await visit.http.post(server.url("/x"), lane="api")
    assert len(server.hits) == 1
