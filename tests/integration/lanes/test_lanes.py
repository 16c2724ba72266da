"""Jobs in lanes: what waits, what it waits for, and that nothing else does."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.errors import LaneNotFound
from penstock.ports.lanes import LaneCommand
from penstock.ports.queue import Exchange
from tests.support.counting_server import Answer, CountingServer
from tests.support.rate_windows import most_at_once
from tests.support.waiting import look_on, until
from tests.support.worker_processes import Farm

SOON = 60.0


@pytest.mark.parametrize("kind", ["call", "fan"])
async def test_job_in_a_lane_of_one_that_asks_for_its_own_lane_does_not_deadlock(
    farm: Farm, server: CountingServer, kind: str
) -> None:
    farm.settings["lanes"] = {"one": {"min_interval_seconds": 0.02, "max_parallel": 1}}
    payload = {"lane": "one", "url": server.url("/one"), "times": 4}
    async with farm.app("laned") as app, app.running():
        for _ in range(3):
            job = await app.enqueue(kind, payload)
            done = await app.wait(job.id, timeout=SOON)
            assert (done.state, done.attempts, done.releases) == (JobState.COMPLETED, 1, 0)
    assert len(server.arrivals("/one")) == 12


async def test_job_that_asks_for_the_parent_of_its_lane_does_not_block_itself(
    farm: Farm,
) -> None:
    app = farm.bare(
        lanes={
            "all": {"min_interval_seconds": 0.0, "max_parallel": 1},
            "child": {"min_interval_seconds": 0.0, "max_parallel": 1, "parent": "all"},
        }
    )

    @app.job("both", lane="child")
    async def both(ctx: JobContext) -> None:
        async with ctx.lanes.permit("all"):
            pass

    async with app, app.running():
        job = await app.enqueue("both")
        done = await app.wait(job.id, timeout=SOON)
    assert done.state is JobState.COMPLETED


async def test_job_waits_for_a_busy_lane_without_a_worker_and_is_not_begun_anew(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"slow": {"min_interval_seconds": 6.0, "max_parallel": 5}}
    payload = {"url": server.url("/slow"), "lane": "slow"}
    async with farm.app("laned", max_workers=1) as app, app.running():
        first = await app.enqueue("visit", payload)
        await app.wait(first.id, timeout=SOON)
        second = await app.enqueue("visit", payload)
        free = await app.enqueue("noop")
        assert (await app.wait(free.id, timeout=SOON)).state is JobState.COMPLETED
        assert (await app.get(second.id)).state is JobState.RUNNING
        done = await app.wait(second.id, timeout=SOON)
        assert (done.state, done.result, done.releases) == (JobState.COMPLETED, 1, 0)
    first_at, second_at = server.arrivals("/slow")
    assert second_at - first_at >= 5.9


async def test_job_that_waits_for_a_paused_lane_goes_on_when_it_is_resumed(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"api": {"min_interval_seconds": 0.0, "max_parallel": 5}}
    payload = {"url": server.url("/api"), "lane": "api"}
    async with farm.app("laned", poll_seconds=60.0) as app, app.running() as orchestrator:
        await app.wait((await app.enqueue("visit", payload)).id, timeout=SOON)
        await app.control_lane("api", LaneCommand.PAUSE)
        job = await app.enqueue("visit", payload)
        await until(lambda: orchestrator.status["parked"] == 1, "the job to wait")
        await app.control_lane("api", LaneCommand.RESUME)
        done = await app.wait(job.id, timeout=SOON)
        assert (done.state, done.releases) == (JobState.COMPLETED, 0)


async def test_spent_daily_limit_makes_no_job_spin(farm: Farm, server: CountingServer) -> None:
    farm.settings["lanes"] = {
        "api": {"min_interval_seconds": 0.0, "max_parallel": 5, "requests_per_day": 1}
    }
    payload = {"url": server.url("/api"), "lane": "api"}
    async with farm.app("laned", grace_seconds=0.1) as app, app.running():
        await app.wait((await app.enqueue("visit", payload)).id, timeout=SOON)
        job = await app.enqueue("visit", payload)
        await look_on(1.0)
        ((releases,),) = farm.query("SELECT releases FROM jobs WHERE id = ?", job.id)
    assert releases <= 3


@asynccontextmanager
async def counted_trips(app: Penstock) -> AsyncIterator[list[float]]:
    """`app` running; when its dispatcher went to the queue."""
    trips: list[float] = []
    async with app.running() as orchestrator:
        member = orchestrator._engine.membership.member
        exchange = member.exchange

        async def counted(*arguments: Any, **options: Any) -> Exchange:
            trips.append(time.monotonic())
            return await exchange(*arguments, **options)

        member.exchange = counted  # type: ignore[method-assign]
        yield trips


async def test_dispatcher_rests_while_all_workers_are_busy_in_a_lane_with_room(
    farm: Farm,
) -> None:
    """More jobs of the lane could start, if only there were a worker."""
    farm.settings["lanes"] = {"wide": {"min_interval_seconds": 0.0, "max_parallel": 100}}
    app = farm.app("laned", max_workers=5, poll_seconds=60.0)
    async with app, counted_trips(app) as trips:
        for _ in range(30):  # so that it expects jobs to be short, and claims ahead
            await app.wait((await app.enqueue("noop")).id, timeout=SOON)
        await app.enqueue_many("hold", [{"lane": "wide", "gate": str(farm.gate)}] * 20)
        await until(lambda: len(farm.side.notes()) == 5, "every worker to be busy")
        before = len(trips)
        await look_on(1.0)
        during = len(trips) - before
        farm.gate.touch()
        await app.drain(timeout=SOON)
    assert during <= 25


async def test_dispatcher_rests_while_a_lane_is_blocked(farm: Farm) -> None:
    farm.settings["lanes"] = {"api": {"min_interval_seconds": 0.0, "max_parallel": 2}}
    app = farm.app("laned", poll_seconds=60.0)
    async with app, counted_trips(app) as trips:
        await app.enqueue_many("hold", [{"lane": "api", "gate": str(farm.gate)}] * 20)
        await until(lambda: len(farm.side.notes()) == 2, "the slots to be taken")
        before = len(trips)
        await look_on(1.0)
        during = len(trips) - before
        farm.gate.touch()
        await app.drain(timeout=SOON)
    assert during <= 25


async def test_jobs_without_a_lane_are_claimed_on_end_although_lanes_have_nothing(
    farm: Farm,
) -> None:
    """Looking for work in lanes and finding none says nothing of the jobs without."""
    app = farm.app("laned", poll_seconds=60.0)
    async with app:
        jobs = await app.enqueue_many("noop", [None] * 1000)
        async with app.running():
            for job in jobs:
                await app.wait(job.id, timeout=SOON)


async def test_job_that_has_left_its_lane_runs_on_beside_the_next_one(
    farm: Farm, server: CountingServer
) -> None:
    app = farm.bare(lanes={"one": {"min_interval_seconds": 0.0, "max_parallel": 1}})
    server.answers["/one"] = Answer(delay=0.2)
    both = asyncio.Barrier(2)

    @app.job("leaver", lane="one")
    async def leaver(ctx: JobContext) -> None:
        await ctx.http.post(server.url("/one"))
        ctx.lanes.leave()
        await both.wait()
        await ctx.http.post(server.url("/one"))

    async with app, app.running():
        jobs = await app.enqueue_many("leaver", [None] * 2)
        ended = [await app.wait(job.id, timeout=SOON) for job in jobs]
    assert {job.state for job in ended} == {JobState.COMPLETED}
    assert len(server.arrivals("/one")) == 4
    assert most_at_once(server.spans("/one")) == 1


async def test_slow_lane_in_front_holds_no_worker(farm: Farm, server: CountingServer) -> None:
    farm.settings["lanes"] = {"slow": {"min_interval_seconds": 600.0, "max_parallel": 50}}
    async with farm.app("laned", max_workers=2) as app, app.running() as orchestrator:
        payload = {"lane": "slow", "url": server.url("/slow")}
        await app.enqueue_many("call", [payload] * 2000)
        await until(lambda: server.hits, "the first request")
        jobs = await app.enqueue_many("noop", [None] * 200)
        for job in jobs:
            await app.wait(job.id, timeout=SOON)
        await until(lambda: orchestrator.status["busy"] == 0, "all workers to be free")
    assert len(server.hits) == 1


async def test_jobs_enqueued_into_a_lane_are_run_although_their_handler_names_none_any_more(
    farm: Farm,
) -> None:
    """Between two deployments: the lane of the kind was dropped, its jobs were not."""
    old = farm.bare(lanes={"api": {"max_parallel": 1}})
    old.job("work", lane="api")(_work)
    async with old:
        job = await old.enqueue("work")
    new = farm.bare()
    new.job("work")(_work)
    async with new, new.running():
        done = await new.wait(job.id, timeout=SOON)
    assert done.state is JobState.COMPLETED


async def _work(ctx: JobContext) -> str:
    return "done"


async def test_payload_whose_lane_cannot_be_computed_stops_no_other_job(farm: Farm) -> None:
    """It was enqueued where nobody knew the kind, so nobody could say so."""
    async with farm.bare() as enqueuer:
        bad = await enqueuer.enqueue("fetch", {"wrong": 1})
        good = await enqueuer.enqueue("fetch", {"url": "a"})
    app = farm.bare()

    @app.job("fetch", lane=lambda payload: "host:" + payload["url"])
    async def fetch(ctx: JobContext, url: str) -> str:
        return url

    app.job("work")(_work)
    async with app, app.running():
        other = await app.enqueue("work")
        assert (await app.wait(other.id, timeout=SOON)).state is JobState.COMPLETED
        assert (await app.wait(good.id, timeout=SOON)).state is JobState.COMPLETED
        assert (await app.wait(bad.id, timeout=SOON)).state is JobState.FAILED


async def test_jobs_of_a_lane_start_in_order(farm: Farm) -> None:
    app = farm.bare(max_workers=4, lanes={"api": {"min_interval_seconds": 0.0, "max_parallel": 4}})
    order: list[int] = []

    @app.job("note", lane="api")
    async def note(ctx: JobContext, n: int) -> None:
        order.append(n)
        await asyncio.sleep(0.01)

    async with app:
        jobs: list[Job] = await app.enqueue_many("note", [{"n": n} for n in range(40)])
        async with app.running():
            for job in jobs:
                await app.wait(job.id, timeout=SOON)
    assert order == sorted(order)


async def test_workers_bring_configured_limits_to_lanes_in_use(farm: Farm) -> None:
    async def call(ctx: JobContext) -> None:
        pass

    old = farm.bare(lanes={"api": {"max_parallel": 1}})
    old.job("call", lane="api")(call)
    async with old:
        await old.enqueue("call")
    # The second configures nothing, so it changes nothing.
    for lanes in ({"api": {"max_parallel": 7}}, {}):
        app = farm.bare(lanes=lanes)
        app.job("other")(call)
        async with app.running():
            (lane,) = await app.lane_infos()
            assert lane.max_parallel == 7


async def test_configured_lane_can_be_paused_before_it_is_used(farm: Farm) -> None:
    async with farm.bare(lanes={"api": {"max_parallel": 1}}) as app:
        await app.control_lane("api", "pause")
        await app.control_lane("openalex", "pause")
        with pytest.raises(LaneNotFound):
            await app.control_lane("mystery", "pause")
        assert {lane.name for lane in await app.lane_infos()} == {"api", "openalex"}
