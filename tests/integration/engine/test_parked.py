"""Jobs that wait for other jobs: without a worker, and with everything else as usual."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from penstock import Job, JobContext, JobFilter, JobOrchestrator, JobState, Penstock
from penstock.engine import parking
from penstock.errors import JobNotFound
from tests.support.waiting import PATIENCE, look_on, until
from tests.support.worker_processes import Farm

QUICK: dict[str, Any] = {
    "durable": False,
    "poll_seconds": 0.1,
    "retry_base_seconds": 0.05,
    "upkeep_seconds": 0.1,
    "lease_seconds": 60.0,
}
WIDE = {"family": {"min_interval_seconds": 0, "max_parallel": 100}}

trace: ContextVar[str] = ContextVar("trace", default="clean")


class Family:
    """An app whose parents wait for their children, and what went on in it."""

    def __init__(self, folder: Path, *, lane: str | None = None, **settings: Any) -> None:
        self.url = f"sqlite:///{folder}/jobs.db"
        self.app = Penstock(self.url, **{**QUICK, **settings})
        self.gate = asyncio.Event()
        self.at_work_now = self.most_at_work = self.begun = 0
        self.told: list[Job] = []
        self.ends: list[str] = []
        self.traces: list[str] = []
        self.app.job("parent", lane=lane)(self.parent)
        self.app.job("child")(self.child)
        self.app.job("broken", max_retries=0)(self.broken)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        self.at_work_now += 1
        self.most_at_work = max(self.most_at_work, self.at_work_now)
        try:
            await asyncio.sleep(0.002)
            yield
        finally:
            self.at_work_now -= 1

    async def parent(self, ctx: JobContext, children: int = 1, gated: bool = False) -> list[Any]:
        self.begun += 1
        results: list[Any] = []
        trace.set("parent's")
        made = [await ctx.enqueue("child", {"n": n, "gated": gated}) for n in range(children)]
        try:
            async for job in ctx.finished(made):
                async with self.at_work():
                    self.told.append(job)
                    results.append(job.result)
        except BaseException as error:
            self.ends.append(type(error).__name__)
            raise
        finally:
            self.ends.append("over")
        return sorted(results)

    async def child(self, ctx: JobContext, n: int, gated: bool) -> int:
        self.traces.append(trace.get())
        async with self.at_work():
            if gated:
                await self.gate.wait()
            return n

    async def broken(self, ctx: JobContext) -> None:
        raise ValueError("broken")

    async def children(self) -> list[Job]:
        return await self.app.jobs(kind="child")


async def parked(orchestrator: JobOrchestrator, count: int = 1) -> None:
    await until(lambda: orchestrator.status["parked"] == count, f"{count} to be parked")


@pytest.fixture
def family(tmp_path: Path) -> Family:
    """With a single worker."""
    return Family(tmp_path, max_workers=1)


@pytest.mark.parametrize("lane", [None, "family"])
@pytest.mark.parametrize(
    ("max_workers", "reserved", "parents"),
    [(1, 0, 1), (1, 0, 3), (2, 0, 2), (2, 0, 7), (2, 1, 2), (3, 2, 5)],
)
async def test_jobs_that_wait_hold_no_worker(
    tmp_path: Path, max_workers: int, reserved: int, parents: int, lane: str | None
) -> None:
    family = Family(
        tmp_path, lane=lane, lanes=WIDE, max_workers=max_workers, reserved_workers=reserved
    )
    async with family.app as app, app.running() as orchestrator:
        jobs = await app.enqueue_many("parent", [{"children": 3}] * parents)
        for job in jobs:
            assert (await app.wait(job.id, timeout=60)).result == [0, 1, 2]
        await until(lambda: orchestrator.status["busy"] == 0, "the last to end")
        assert family.most_at_work <= max_workers
        assert len({job.id for job in family.told}) == len(family.told) == 3 * parents
        assert {job.state for job in family.told} == {JobState.COMPLETED}
        assert set(family.traces) == {"clean"}, "a stand-in starts with nobody's context"
        assert len(orchestrator.workers) == max_workers
        assert orchestrator.status["parked"] == 0


async def test_each_job_is_told_as_it_ends_whatever_its_end(tmp_path: Path) -> None:
    family, told = Family(tmp_path, max_workers=2), asyncio.Queue[Job]()

    @family.app.job("mother")
    async def mother(ctx: JobContext) -> int:
        kinds = ["broken", "child", "child"]
        payloads: list[dict[str, Any]] = [{}, {"n": 1, "gated": False}, {"n": 2, "gated": True}]
        made = [await ctx.enqueue(*one) for one in zip(kinds, payloads, strict=True)]
        async for job in ctx.finished([*made, made[0]]):
            told.put_nowait(job)
        return len(made)

    async with family.app as app, app.running():
        job = await app.enqueue("mother")
        first, second = await told.get(), await told.get()
        assert {first.state, second.state} == {JobState.FAILED, JobState.COMPLETED}
        assert (await app.get(job.id)).state is JobState.RUNNING
        (last,) = await until(lambda: app.jobs(kind="child", states=["running"]), "the last")
        await app.cancel(last.id)
        third = await told.get()
        assert (third.id, third.state) == (last.id, JobState.CANCELLED)
        assert (await app.wait(job.id, timeout=60)).result == 3
        assert told.empty()


async def test_job_that_is_gone_is_not_waited_for(family: Family) -> None:
    made, go_on = asyncio.Queue[str](), asyncio.Event()

    @family.app.job("mother")
    async def mother(ctx: JobContext) -> str:
        child = await ctx.enqueue("broken")
        made.put_nowait(child.id)
        await go_on.wait()
        try:
            async for _ in ctx.finished([child]):
                raise AssertionError("there is no such job")
        except JobNotFound as error:
            return error.job_id
        return "nothing"

    async with family.app as app, app.running(kinds=["mother"]):
        job = await app.enqueue("mother")
        child = await made.get()
        async with app.running(kinds=["broken"]):
            await app.wait(child, timeout=60)
        assert await app.discard(job_id=child) == 1
        go_on.set()
        assert (await app.wait(job.id, timeout=60)).result == child


async def test_slot_in_the_lane_is_kept_by_jobs_that_wait(tmp_path: Path) -> None:
    lanes = {"family": {"min_interval_seconds": 0, "max_parallel": 2}}
    family = Family(tmp_path, lane="family", lanes=lanes, max_workers=4)
    async with family.app as app, app.running() as orchestrator:
        jobs = await app.enqueue_many("parent", [{"gated": True}] * 5)
        await parked(orchestrator, 2)
        await look_on(0.3)
        assert family.begun == 2
        (lane,) = await app.lane_infos()
        assert lane.in_flight == 2
        family.gate.set()
        for job in jobs:
            assert (await app.wait(job.id, timeout=60)).state is JobState.COMPLETED
        assert family.begun == 5


async def test_job_that_comes_back_waits_for_a_worker_and_goes_first(family: Family) -> None:
    order: list[str] = []
    hold = asyncio.Event()

    @family.app.job("mother")
    async def mother(ctx: JobContext) -> None:
        child = await ctx.enqueue("child", {"n": 1, "gated": False})
        order.extend([f"child {job.result}" async for job in ctx.finished([child])])

    @family.app.job("long")
    async def long(ctx: JobContext, n: int) -> None:
        order.append(f"long {n}")
        await hold.wait()

    async with family.app as app, app.running(kinds=["mother", "long"]) as orchestrator:
        job = await app.enqueue("mother")
        await parked(orchestrator)
        longs = await app.enqueue_many("long", [{"n": 1}, {"n": 2}])
        await until(lambda: order, "a long one to have the worker")
        async with app.running(kinds=["child"]):
            await parked(orchestrator, 0)
        await look_on(0.2)
        assert order == ["long 1"]
        assert orchestrator.status["busy"] == 1
        hold.set()
        for one in (job, *longs):
            assert (await app.wait(one.id, timeout=60)).state is JobState.COMPLETED
        assert order == ["long 1", "child 1", "long 2"]


async def test_cancel_ends_the_wait_at_once_and_the_worker_survives(family: Family) -> None:
    async with family.app as app, app.running() as orchestrator:
        job = await app.enqueue("parent", {"gated": True})
        await parked(orchestrator)
        await app.cancel(job.id)
        await until(lambda: family.ends == ["CancelledError", "over"], "the handler to clean up")
        await until(lambda: orchestrator.status["parked"] == 0, "it to be gone")
        assert (await app.get(job.id)).state is JobState.CANCELLED
        family.gate.set()
        again = await app.enqueue("parent")
        assert (await app.wait(again.id, timeout=60)).result == [0]
        await until(lambda: len(orchestrator.workers) == 1, "one worker to be left")


@pytest.mark.parametrize("what", ["timeout", "deadline"])
async def test_time_runs_on_while_a_job_waits(family: Family, what: str) -> None:
    @family.app.job("mother", timeout=0.3 if what == "timeout" else 60, max_retries=0)
    async def mother(ctx: JobContext) -> None:
        async for _ in ctx.finished([await ctx.enqueue("child", {"n": 0, "gated": True})]):
            raise AssertionError("nothing has ended")

    async with family.app as app, app.running() as orchestrator:
        deadline = time.time() + 0.3 if what == "deadline" else None
        job = await app.enqueue("mother", deadline=deadline)
        failed = await app.wait(job.id, timeout=60)
        assert failed.error is not None
        assert failed.error.type == {"timeout": "JobTimeout", "deadline": "DeadlineExceeded"}[what]
        family.gate.set()
        await app.drain(timeout=PATIENCE)
        await until(lambda: len(orchestrator.workers) == 1, "one worker to be left")


async def test_wait_that_is_not_timed_does_not_count_toward_the_timeout(family: Family) -> None:
    """In several tasks at a time, too; what is left of the timeout is left."""
    left: list[float] = []

    @family.app.job("mother", timeout=60.0, max_retries=0)
    async def mother(ctx: JobContext) -> None:
        async def turn(seconds: float) -> None:
            async with ctx.parked(timed=False):
                await asyncio.sleep(seconds)

        left.append(ctx.remaining())
        waits = asyncio.gather(turn(0.2), turn(3.0))
        await asyncio.sleep(0.5)
        left.append(ctx.remaining())
        await waits
        left.append(ctx.remaining())
        assert ctx.deadline - (ctx.job.started_at or 0.0) > 62.9

    async with family.app as app, app.running():
        job = await app.enqueue("mother")
        ended = await app.wait(job.id, timeout=PATIENCE)
        assert ended.state is JobState.COMPLETED, ended.error
    assert left[0] >= left[1] >= left[2] > left[0] - 2.9


@pytest.mark.parametrize("what", ["timeout", "deadline"])
async def test_timeout_goes_on_after_a_wait_and_a_deadline_meanwhile(
    family: Family, what: str
) -> None:
    waited: list[bool] = []

    # A machine that stands still for seconds does not end it before it waits.
    @family.app.job("mother", timeout=5.0, max_retries=0)
    async def mother(ctx: JobContext) -> None:
        async with ctx.parked(timed=False):
            await asyncio.sleep(5.5 if what == "timeout" else 60)
        waited.append(True)
        await asyncio.sleep(60)

    async with family.app as app, app.running() as orchestrator:
        deadline = time.time() + 0.5 if what == "deadline" else None
        job = await app.enqueue("mother", deadline=deadline)
        failed = await app.wait(job.id, timeout=PATIENCE)
        assert failed.error is not None
        assert failed.error.type == {"timeout": "JobTimeout", "deadline": "DeadlineExceeded"}[what]
        assert waited == [True] * (what == "timeout")
        await until(lambda: len(orchestrator.workers) == 1, "one worker to be left")


async def test_handler_can_give_up_waiting_by_itself(family: Family) -> None:
    """Its own time-out ends the wait; it goes on once it has a worker again."""

    giving_up: list[asyncio.Timeout] = []

    @family.app.job("mother")
    async def mother(ctx: JobContext) -> str:
        child = await ctx.enqueue("child", {"n": 0, "gated": True})
        try:
            async with asyncio.timeout(None) as patience:
                giving_up.append(patience)
                async for _ in ctx.finished([child]):
                    return "it ended"
        except TimeoutError:
            assert family.at_work_now == 0, "the only worker is this job's again"
        return "gave up"

    async with family.app as app, app.running() as orchestrator:
        job = await app.enqueue("mother")
        await parked(orchestrator)
        await until(lambda: family.at_work_now == 1, "the child to have the worker")
        giving_up[0].reschedule(asyncio.get_running_loop().time())
        await look_on(0.3)
        assert (await app.get(job.id)).state is JobState.RUNNING, "the child has the worker"
        family.gate.set()
        assert (await app.wait(job.id, timeout=60)).result == "gave up"
        assert len(orchestrator.workers) == 1


async def test_handler_may_wait_in_several_tasks(family: Family) -> None:
    @family.app.job("mother")
    async def mother(ctx: JobContext) -> int:
        made = [await ctx.enqueue("child", {"n": n, "gated": False}) for n in range(4)]

        async def some(jobs: list[Job]) -> int:
            return sum([job.result async for job in ctx.finished(jobs)])

        return sum(await asyncio.gather(some(made[:2]), some(made[2:]), some(made)))

    async with family.app as app, app.running() as orchestrator:
        job = await app.enqueue("mother")
        assert (await app.wait(job.id, timeout=60)).result == 12
        await until(lambda: orchestrator.status["busy"] == 0, "it to end")
        assert (len(orchestrator.workers), orchestrator.status["parked"]) == (1, 0)


async def test_task_that_a_handler_leaves_behind_takes_no_worker(family: Family) -> None:
    left: list[asyncio.Task[list[int]]] = []

    @family.app.job("mother")
    async def mother(ctx: JobContext) -> None:
        child = await ctx.enqueue("child", {"n": 7, "gated": True})

        async def wait() -> list[int]:
            return [job.result async for job in ctx.finished([child])]

        left.append(asyncio.create_task(wait()))
        await asyncio.sleep(0.05)

    async with family.app as app, app.running() as orchestrator:
        job = await app.enqueue("mother")
        assert (await app.wait(job.id, timeout=60)).state is JobState.COMPLETED
        family.gate.set()
        assert await left[0] == [7]
        again = await app.enqueue("parent")
        assert (await app.wait(again.id, timeout=60)).result == [0]
        await until(lambda: orchestrator.status["busy"] == 0, "it to end")
        assert len(orchestrator.workers) == 1


async def test_stop_does_not_wait_for_jobs_that_wait(family: Family) -> None:
    async with family.app as app:
        orchestrator = app.orchestrator(kinds=["parent"])
        await orchestrator.start()
        job = await app.enqueue("parent", {"children": 2})
        await parked(orchestrator)
        begun = time.monotonic()
        await orchestrator.stop(grace=60)
        assert time.monotonic() - begun < 40
        assert orchestrator.workers == []
        assert family.ends == ["CancelledError", "over"]
        handed_back = await app.get(job.id)
        assert (handed_back.state, handed_back.attempts) == (JobState.QUEUED, 0)
        assert handed_back.history == []

        # One child ends meanwhile; the next run is told at once, and makes no second one.
        made = await family.children()
        async with app.running(kinds=["child"]):
            await app.wait(made[0].id, timeout=60)
        async with app.running():
            done = await app.wait(job.id, timeout=60)
        assert (done.result, done.attempts) == ([0, 1], 1)
        assert {child.id for child in await family.children()} == {child.id for child in made}


async def test_job_that_begins_to_wait_during_a_stop_is_handed_back(family: Family) -> None:
    ready, go_on = asyncio.Event(), asyncio.Event()

    @family.app.job("mother")
    async def mother(ctx: JobContext) -> None:
        child = await ctx.enqueue("child", {"n": 0, "gated": True})
        ready.set()
        await go_on.wait()
        async for _ in ctx.finished([child]):
            raise AssertionError("nothing has ended")

    async with family.app as app:
        orchestrator = app.orchestrator()
        await orchestrator.start()
        job = await app.enqueue("mother")
        await ready.wait()
        stopping = asyncio.create_task(orchestrator.stop(grace=60))
        await until(lambda: orchestrator.status["draining"], "the stop to begin")
        go_on.set()
        async with asyncio.timeout(60):
            await stopping
        assert (await app.get(job.id)).state is JobState.QUEUED


async def test_too_many_jobs_that_wait_are_run_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "MOST", 2)
    monkeypatch.setattr(parking, "LATER_SECONDS", 0.1)
    family = Family(tmp_path, max_workers=1)
    async with family.app as app, app.running() as orchestrator:
        jobs = await app.enqueue_many("parent", [{"gated": True}] * 4)
        await parked(orchestrator, 2)

        async def released() -> bool:
            return any([(await app.get(job.id)).releases for job in jobs])

        await until(released, "one to be released")
        family.gate.set()
        for job in jobs:
            done = await app.wait(job.id, timeout=60)
            assert (done.state, done.attempts) == (JobState.COMPLETED, 1)


async def test_parked_jobs_are_seen_by_others(tmp_path: Path) -> None:
    family = Family(tmp_path, max_workers=1, lease_seconds=3.0)  # a heartbeat every second
    async with family.app as app, app.running() as orchestrator:
        await app.enqueue("parent", {"gated": True})
        await parked(orchestrator)

        async def told() -> bool:
            (process,) = await app.processes()
            return bool(process.status.get("parked") == 1)

        await until(told, "the heartbeat that says so")
        family.gate.set()
        await app.drain(timeout=PATIENCE)


async def test_death_of_the_process_is_not_on_the_record_of_jobs_that_waited(farm: Farm) -> None:
    """Those that did something may have caused it; those that waited have not."""
    async with farm.app("family") as app:
        mother = await app.enqueue("mother", {"gate": str(farm.gate)})
        worker = await farm.start("family")
        await until(lambda: len(farm.side.notes(kind="son")) == 3, "the sons to run")
        await worker.kill()
        farm.gate.touch()
        await farm.start("family")
        done = await app.wait(mother.id, timeout=60)
        assert (done.state, done.attempts, done.result) == (JobState.COMPLETED, 1, [0, 1, 2])
        assert [son.attempts for son in await app.jobs(parent_id=mother.id)] == [2, 2, 2]


async def test_immediate_stop_of_a_task_ends_a_whole_family(family: Family) -> None:
    async with family.app as app, app.running() as orchestrator:
        await app.enqueue("parent", {"children": 3, "gated": True}, log="paper")
        await until(lambda: family.at_work_now == 1, "a child to have the only worker")
        other = await app.enqueue("parent", log="other")
        assert await app.stop_log("paper", running=True) == (4, 0)
        assert (await app.wait(other.id, timeout=60)).result == [0]
        await app.drain(timeout=PATIENCE)
        found = await app.queue.find(JobFilter(log="paper"), 10)
        assert {job.state for job in found} == {JobState.CANCELLED}
        await until(lambda: len(orchestrator.workers) == 1, "one worker to be left")
