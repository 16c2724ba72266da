"""Jobs that make many requests: each waits for its turn, and none is made twice."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Job, JobContext, JobOrchestrator, JobState, Penstock
from penstock.engine import parking
from penstock.errors import LaneBusy
from penstock.ports.lanes import Busy, Permit, PermitRequest
from tests.conformance.support import BACKENDS
from tests.support.counting_server import Answer, CountingServer
from tests.support.rate_windows import most_at_once
from tests.support.waiting import PATIENCE, look_on, until
from tests.support.worker_processes import Farm

QUEUES = ["sqlite", "postgres", "redis"]
FREE: dict[str, Any] = {"min_interval_seconds": 0.0, "max_parallel": 100}
ONE: dict[str, Any] = {"min_interval_seconds": 0.0, "max_parallel": 1}
Work = Callable[[JobContext], Awaitable[Any]]


def app_with(farm: Farm, work: Work, lane: str | None = None, **settings: Any) -> Penstock:
    lanes = {"fetch": FREE, **settings.pop("lanes", {})}
    options = {
        name: settings.pop(name)
        for name in ("timeout", "max_retries", "backoff")
        if name in settings
    }
    app = farm.bare(lanes=lanes, **settings)
    app.job("work", lane=lane, **options)(work)

    @app.job("noop")
    async def noop(ctx: JobContext) -> None:
        pass

    return app


async def run(app: Penstock, **options: Any) -> Job:
    job = await app.enqueue("work", **options)
    return await app.wait(job.id, timeout=PATIENCE)


def ended_well(job: Job) -> bool:
    return (job.state, job.attempts, job.releases) == (JobState.COMPLETED, 1, 0)


async def end_well(app: Penstock, jobs: Sequence[Job]) -> None:
    """And give back every slot."""
    ended = [await app.wait(job.id, timeout=PATIENCE) for job in jobs]
    assert all(map(ended_well, ended)), ended
    await slots_free(app)


async def ask(ctx: JobContext) -> None:
    async with ctx.lanes.permit("one"):
        pass


def ask_in_thread(ctx: JobContext) -> None:
    ctx.from_thread(ask(ctx))


@asynccontextmanager
async def taken(app: Penstock, engine: JobOrchestrator, lane: str = "one") -> AsyncIterator[None]:
    """Somebody else has a slot of that lane, which has no other."""
    visit = engine.asking("default", app.queue.now() + PATIENCE)
    async with visit.lanes.request(lane, patience=PATIENCE):
        yield


async def slots_free(app: Penstock) -> None:
    async def free() -> bool:
        return not any(lane.in_flight for lane in await app.lane_infos())

    await until(free, "every slot to be given back")


@pytest.mark.parametrize("at_once", [True, False])
async def test_requests_in_a_slow_lane_are_each_made_once(
    farm: Farm, server: CountingServer, at_once: bool
) -> None:
    async def work(ctx: JobContext) -> None:
        asks = (ctx.http.get(server.url("/slow"), lane="slow") for _ in range(8))
        if at_once:
            await asyncio.gather(*asks)
        else:
            for ask in asks:
                await ask

    slow = {"min_interval_seconds": 0.2, "max_parallel": 2}
    begun = time.monotonic()
    async with (app := app_with(farm, work, lanes={"slow": slow})), app.running():
        assert ended_well(await run(app))
        await slots_free(app)
    assert len(server.arrivals("/slow")) == 8
    assert max(server.arrivals("/slow")) - begun > 7 * 0.2


async def test_two_requests_to_one_host_just_work(farm: Farm, server: CountingServer) -> None:
    async def work(ctx: JobContext) -> None:
        await ctx.http.get(server.url("/first"))
        await ctx.http.get(server.url("/second"))

    async with (app := app_with(farm, work)), app.running():
        assert ended_well(await run(app))
    assert [hit.path for hit in server.hits] == ["/first", "/second"]


async def test_lane_of_three_seconds_and_one_at_a_time_serves_a_job_to_its_end(
    farm: Farm, server: CountingServer
) -> None:
    """As semantic_scholar is: longer apart than anybody used to wait."""

    async def work(ctx: JobContext) -> None:
        for _ in range(3):
            await ctx.http.get(server.url("/page"), lane="scholar")

    lane = {"min_interval_seconds": 1.5, "max_parallel": 1}
    begun = time.monotonic()
    async with (app := app_with(farm, work, lanes={"scholar": lane})), app.running():
        assert ended_well(await run(app))
    # Each is at least so long after the first was asked for; one may be slow to arrive.
    assert len(server.arrivals("/page")) == 3
    for n, arrived in enumerate(server.arrivals("/page")):
        assert arrived - begun > 1.5 * n


@pytest.mark.parametrize("queue", QUEUES)
async def test_a_hundred_at_once_take_the_time_that_the_rate_says(
    queue: str, tmp_path: Path
) -> None:
    """And no more, exactly: tests/simulation/test_rates.py, where no machine is busy."""
    farm = Farm(tmp_path, url=BACKENDS[queue].url(tmp_path), lease_seconds=60.0)
    starts: list[float] = []
    asked = 0

    async def one(ctx: JobContext) -> None:
        async with ctx.lanes.permit("fast"):
            starts.append(time.monotonic())

    async def work(ctx: JobContext) -> None:
        await asyncio.gather(*(one(ctx) for _ in range(100)))

    fast = {"requests_per_interval": 100, "interval_seconds": 1.0, "max_parallel": 100}
    async with (app := app_with(farm, work, lanes={"fast": fast})), app.running() as engine:
        member = engine._engine.membership.member
        permits = member.permits

        async def counted(requests: Sequence[PermitRequest]) -> list[Permit | Busy]:
            nonlocal asked
            asked += len(requests)
            return await permits(requests)

        member.permits = counted  # type: ignore[method-assign]
        begun = time.monotonic()
        done = await run(app)
    assert ended_well(done)
    assert len(starts) == 100
    assert all(at - begun > 0.0099 * n for n, at in enumerate(starts)), "not before their turn"
    assert max(starts) - begun < 30, "the rate, and what a busy machine adds"
    assert asked < 2500, "those behind do not ask again with each that is served"


async def test_own_lane_is_given_to_no_more_requests_than_it_has_slots(
    farm: Farm, server: CountingServer
) -> None:
    server.answers["/own"] = Answer(delay=0.05)

    async def work(ctx: JobContext) -> None:
        await asyncio.gather(*(ctx.http.get(server.url("/own")) for _ in range(12)))

    own = {"min_interval_seconds": 0.0, "max_parallel": 3}
    async with (app := app_with(farm, work, "own", lanes={"own": own})), app.running():
        jobs = await app.enqueue_many("work", [None] * 3)
        await end_well(app, jobs)
    assert len(server.arrivals("/own")) == 36
    assert most_at_once(server.spans("/own")) == 3


async def test_parent_is_given_to_no_more_requests_than_it_has_slots(
    farm: Farm, server: CountingServer
) -> None:
    """The job holds a slot of the parent itself; only one of its requests can go by that."""
    server.answers["/all"] = Answer(delay=0.05)

    async def work(ctx: JobContext) -> None:
        lanes = ["left", "right", "parent"] * 4
        await asyncio.gather(*(ctx.http.get(server.url("/all"), lane=lane) for lane in lanes))

    lanes = {
        "parent": {"min_interval_seconds": 0.0, "max_parallel": 2},
        "left": {**FREE, "parent": "parent"},
        "right": {**FREE, "parent": "parent"},
    }
    async with (app := app_with(farm, work, "left", lanes=lanes)), app.running():
        jobs = await app.enqueue_many("work", [None] * 2)
        await end_well(app, jobs)
    assert len(server.arrivals("/all")) == 24
    assert most_at_once(server.spans("/all")) == 2


@pytest.mark.parametrize("queue", QUEUES)
async def test_two_jobs_that_want_each_others_lane_both_finish(queue: str, tmp_path: Path) -> None:
    inside: dict[str, int] = {"a": 0, "b": 0}
    most = dict(inside)
    both = asyncio.Barrier(2)

    async def use(lane: str) -> None:
        """What would be a request to what the lane protects."""
        inside[lane] += 1
        most[lane] = max(most[lane], inside[lane])
        await asyncio.sleep(0.05)
        inside[lane] -= 1

    farm = Farm(tmp_path, url=BACKENDS[queue].url(tmp_path), lease_seconds=60.0)
    app = farm.bare(lanes={"a": ONE, "b": ONE})

    @app.job("cross", lane=lambda payload: payload["own"], timeout=PATIENCE)
    async def cross(ctx: JobContext, own: str, other: str, first: bool) -> None:
        if first:
            await both.wait()
        await use(own)  # by the slot it was started with
        async with ctx.lanes.permit(other):
            await use(other)
        await use(own)  # by the slot it has again

    async with app, app.running():
        jobs = [
            await app.enqueue("cross", {"own": own, "other": other, "first": n == 0})
            for n in range(3)
            for own, other in [("a", "b"), ("b", "a")]
        ]
        await end_well(app, jobs)
    assert most == {"a": 1, "b": 1}


async def test_waiting_does_not_count_toward_the_timeout(
    farm: Farm, server: CountingServer
) -> None:
    async def work(ctx: JobContext) -> None:
        for _ in range(4):
            await ctx.http.get(server.url("/slow"), lane="slow")

    slow = {"min_interval_seconds": 1.5, "max_parallel": 1}
    app = app_with(farm, work, lanes={"slow": slow}, timeout=4.0, max_retries=0)
    async with app, app.running():
        done = await run(app)
        assert ended_well(done), done.error
    assert len(server.arrivals("/slow")) == 4


async def test_what_a_job_does_itself_counts_toward_the_timeout_after_it_has_waited(
    farm: Farm,
) -> None:
    async def work(ctx: JobContext) -> None:
        for _ in range(2):
            async with ctx.lanes.permit("slow"):
                pass
        await asyncio.sleep(PATIENCE)

    slow = {"min_interval_seconds": 0.5, "max_parallel": 1}
    app = app_with(farm, work, lanes={"slow": slow}, timeout=0.3, max_retries=0)
    async with app, app.running():
        done = await run(app)
    assert done.state is JobState.FAILED
    assert "timeout of 0.3 s" in str(done.error)


async def test_request_that_hangs_ends_although_others_of_its_job_wait(farm: Farm) -> None:
    """Their waiting stops the clock of the job, and not that of a request."""

    async def one(ctx: JobContext) -> None:
        async with ctx.lanes.permit("one"):
            await asyncio.sleep(PATIENCE)

    async def work(ctx: JobContext) -> None:
        await asyncio.gather(one(ctx), one(ctx))

    app = app_with(farm, work, lanes={"one": ONE}, timeout=0.3, max_retries=0)
    async with app, app.running():
        done = await run(app)
        await slots_free(app)
    assert done.state is JobState.FAILED


@pytest.mark.parametrize("work", [ask, ask_in_thread])
async def test_waiting_counts_toward_the_deadline(farm: Farm, work: Any) -> None:
    """The slot is never free."""

    app = app_with(farm, work, lanes={"one": ONE})
    async with app, app.running() as engine:
        async with taken(app, engine):
            done = await run(app, deadline=time.time() + 1.0)
        await slots_free(app)
    assert done.state is JobState.FAILED
    assert "deadline" in str(done.error)
    assert not engine.running


async def test_turn_after_the_deadline_is_not_waited_for(farm: Farm) -> None:
    released = asyncio.Event()

    async def work(ctx: JobContext) -> None:
        for _ in range(2):
            try:
                async with ctx.lanes.permit("rare"):
                    pass
            except LaneBusy:
                released.set()
                raise

    rare = {"min_interval_seconds": 600.0, "max_parallel": 1}
    async with (app := app_with(farm, work, lanes={"rare": rare})), app.running():
        await app.enqueue("work", deadline=time.time() + 60)
        async with asyncio.timeout(PATIENCE):
            await released.wait()


async def test_patience_is_for_those_who_would_rather_be_told(farm: Farm) -> None:
    async def work(ctx: JobContext) -> list[str]:
        told = []
        async with ctx.lanes.permit("rare", patience=0.0):
            pass  # had at once, because nobody else wants it
        for patience in (0.0, 0.2):
            try:
                async with ctx.lanes.permit("one", patience=patience):
                    pass
            except LaneBusy as busy:
                told.append(busy.why)
        return told

    rare = {"min_interval_seconds": 600.0, "max_parallel": 1}
    app = app_with(farm, work, lanes={"one": ONE, "rare": rare})
    async with app, app.running() as engine:
        async with taken(app, engine):
            done = await run(app)
        async with taken(app, engine):
            pass
    assert done.result == ["all its slots are taken"] * 2


@pytest.mark.parametrize("work", [ask, ask_in_thread])
async def test_job_that_waits_holds_no_worker(farm: Farm, work: Any) -> None:
    app = app_with(farm, work, lanes={"one": ONE}, max_workers=1)
    async with app, app.running() as engine:
        async with taken(app, engine):
            jobs = await app.enqueue_many("work", [None] * 3)
            await until(lambda: engine.status["parked"] == 3, "all to wait")
            free = await app.enqueue("noop")
            assert (await app.wait(free.id, timeout=PATIENCE)).state is JobState.COMPLETED
        await end_well(app, jobs)
        await until(lambda: len(engine.workers) == 1, "the worker that was lent to end")


async def test_jobs_that_have_waited_run_no_more_at_a_time_than_there_are_workers(
    farm: Farm,
) -> None:
    running = most = 0

    async def work(ctx: JobContext) -> None:
        nonlocal running, most
        async with ctx.lanes.permit("some"):
            pass
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.03)
        running -= 1

    some = {"min_interval_seconds": 0.01, "max_parallel": 20}
    app = app_with(farm, work, lanes={"some": some}, max_workers=2)
    async with app, app.running():
        jobs = await app.enqueue_many("work", [None] * 30)
        await end_well(app, jobs)
    assert most == 2


async def test_no_more_are_claimed_than_can_wait(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "MOST", 5)
    begun = 0

    async def work(ctx: JobContext) -> None:
        nonlocal begun
        begun += 1
        async with ctx.lanes.permit("one"):
            pass

    app = app_with(farm, work, lanes={"one": ONE}, max_workers=2)
    async with app, app.running() as engine:
        async with taken(app, engine):
            jobs = await app.enqueue_many("work", [None] * 20)
            await until(lambda: engine.status["parked"] == 5, "as many to wait as may")
            await look_on(0.3)
            assert begun == 5
            free = await app.enqueue("noop")
            done = await app.wait(free.id, timeout=PATIENCE)
            assert done.state is JobState.COMPLETED, "other kinds go on"
        await end_well(app, jobs)


async def test_requests_of_several_jobs_are_served_in_turn(farm: Farm) -> None:
    """A job that wants much does not keep one waiting that wants little."""
    order: list[str] = []
    app = farm.bare(lanes={"one": ONE})

    async def one(ctx: JobContext, who: str) -> None:
        async with ctx.lanes.permit("one"):
            order.append(who)

    @app.job("many")
    async def many(ctx: JobContext) -> None:
        await asyncio.gather(*(one(ctx, "many") for _ in range(20)))

    @app.job("few")
    async def few(ctx: JobContext) -> None:
        await one(ctx, "few")

    async with app, app.running() as engine:
        async with taken(app, engine):
            first = await app.enqueue("many")
            await until(lambda: engine.status["parked"] == 1, "the many to wait")
            second = await app.enqueue("few")
            await until(lambda: engine.status["parked"] == 2, "the few to wait")
        await end_well(app, [first, second])
    assert order.index("few") < 10


@pytest.mark.parametrize("lane", [{"max_parallel": 1}, {"max_parallel": 50, "pace": 0.02}])
async def test_jobs_in_line_and_requests_that_wait_both_get_their_turns(
    farm: Farm, lane: dict[str, Any]
) -> None:
    order: list[str] = []
    busy = {"min_interval_seconds": lane.get("pace", 0.0), "max_parallel": lane["max_parallel"]}
    app = farm.bare(lanes={"busy": busy})

    @app.job("in_line", lane="busy")
    async def in_line(ctx: JobContext) -> None:
        order.append("line")
        await asyncio.sleep(0.01)

    @app.job("outside")
    async def outside(ctx: JobContext) -> None:
        for _ in range(10):
            async with ctx.lanes.permit("busy"):
                order.append("permit")
                await asyncio.sleep(0.01)

    async with app:
        line = await app.enqueue_many("in_line", [None] * 100)  # a request has its turn after ~5
        other = await app.enqueue("outside")
        async with app.running():
            for job in (other, *line):
                await app.wait(job.id, timeout=PATIENCE)
    last = max(n for n, who in enumerate(order) if who == "permit")
    meanwhile = order[:last].count("line")
    assert meanwhile < len(line), "the line did not go first throughout"
    assert meanwhile >= 3, "nor did the requests"


async def test_stopping_lets_a_request_that_has_waited_finish(farm: Farm) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def work(ctx: JobContext) -> str:
        async with ctx.lanes.permit("one"):
            entered.set()
            await leave.wait()
        return "whole"

    async with (app := app_with(farm, work, lanes={"one": ONE})):
        async with app.running() as engine:
            async with taken(app, engine):
                job = await app.enqueue("work")
                await until(lambda: engine.status["parked"] == 1, "it to wait")
            await entered.wait()
            stopping = asyncio.create_task(engine.stop())
            await until(lambda: engine.status["draining"], "the stop to begin")
            leave.set()
            await stopping
        done = await app.get(job.id)
    assert (done.state, done.result, done.attempts) == (JobState.COMPLETED, "whole", 1)


async def test_cancelled_job_gives_back_what_it_waited_for(farm: Farm) -> None:
    """From its own lane, while it waits for another, while it has that, and while it comes back."""
    app = farm.bare(lanes={"a": ONE, "b": {"min_interval_seconds": 0.003, "max_parallel": 1}})

    @app.job("cross", lane="a")
    async def cross(ctx: JobContext) -> None:
        for _ in range(3):
            async with asyncio.timeout(0.5), ctx.lanes.permit("b"):
                await asyncio.sleep(0.002)

    async with app, app.running():
        jobs = await app.enqueue_many("cross", [None] * 40)
        for job in jobs:
            await asyncio.sleep(0.005)
            await app.cancel(job.id)
        await app.drain(timeout=PATIENCE)
        await slots_free(app)
        last = await app.enqueue("cross")
        assert (await app.wait(last.id, timeout=PATIENCE)).state is JobState.COMPLETED


async def test_own_time_limit_around_a_permit_leaves_the_job_its_slot_and_its_worker(
    farm: Farm,
) -> None:
    async def work(ctx: JobContext) -> bool:
        try:
            async with asyncio.timeout(0.1), ctx.lanes.permit("one"):
                pass
        except TimeoutError:
            return ctx.remaining() < math.inf
        return False

    app = app_with(farm, work, "own", lanes={"one": ONE, "own": ONE}, max_workers=1)
    async with app, app.running() as engine:
        async with taken(app, engine):
            assert (await run(app)).result is True
        await until(lambda: len(engine.workers) == 1, "the worker that was lent to end")
        await slots_free(app)


async def test_job_that_waits_is_released_when_the_breaker_of_the_lane_opens(
    farm: Farm, server: CountingServer
) -> None:
    """It has waited behind the two that find out, and begins anew once it is closed."""
    server.answers["/api"] = Answer(500, delay=1.0)
    begun: list[str] = []

    async def work(ctx: JobContext) -> None:
        begun.append(ctx.job.id)
        await ctx.http.get(server.url("/api"), lane="api")

    lane = {"min_interval_seconds": 0.0, "max_parallel": 2}
    api = {**lane, "breaker_first_seconds": 1.0, "breaker_cap_seconds": 1.0}
    app = app_with(farm, work, lanes={"api": api}, backoff=0.5)
    async with app, app.running() as engine:
        jobs = await app.enqueue_many("work", [None] * 3)
        await until(lambda: engine.status["parked"] == 1, "the third to wait")

        async def released() -> list[str]:
            return [job.id for job in jobs if (await app.get(job.id)).releases]

        third = await until(released, "it to be released")
        server.answers["/api"] = Answer(200)
        ended = [await app.wait(job.id, timeout=PATIENCE) for job in jobs]
        await slots_free(app)
    assert {job.state for job in ended} == {JobState.COMPLETED}
    assert begun.count(third[0]) > 1
    assert sum(hit.status == 200 for hit in server.hits) == 3


async def test_job_that_tries_a_lane_in_trouble_makes_its_requests_one_after_another(
    farm: Farm, server: CountingServer
) -> None:
    """Only one at a time goes by the slot of the try; none of them ends the job."""
    server.answers["/own"] = Answer(500)

    async def work(ctx: JobContext) -> None:
        asks = [asyncio.create_task(ctx.http.get(server.url("/own"))) for _ in range(3)]
        try:
            await asyncio.gather(*asks)
        finally:  # none goes on when its job has failed
            for ask in asks:
                ask.cancel()
            await asyncio.gather(*asks, return_exceptions=True)

    own = {**FREE, "breaker_first_seconds": 1.0, "breaker_cap_seconds": 1.0}
    # The backoff: one does not run again before the other has failed, too, and the breaker opens.
    app = app_with(farm, work, "own", lanes={"own": own}, backoff=PATIENCE)
    async with app, app.running():
        jobs = await app.enqueue_many("work", [None] * 2)

        async def is_open() -> bool:
            """And no request is under way."""
            states = {(await app.get(job.id)).state for job in jobs}
            lanes = [lane for lane in await app.lane_infos() if lane.breaker == "open"]
            return states == {JobState.QUEUED} and bool(lanes)

        await until(is_open, "the breaker to open")
        server.answers["/own"] = Answer(200, delay=0.05)
        ended = [await app.wait(job.id, timeout=PATIENCE) for job in jobs]
        await slots_free(app)
    assert {(job.state, job.attempts) for job in ended} == {(JobState.COMPLETED, 1)}
    assert sum(hit.status == 200 for hit in server.hits) == 6
