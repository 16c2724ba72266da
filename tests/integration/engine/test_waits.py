"""Sleeping, and waiting for signals: the worker and the lease are given up meanwhile."""

import asyncio
import time
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.engine import waits
from penstock.errors import JobEnded, Suspended, ValidationError
from penstock.testing import VirtualClock
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SOON = 60.0
MOMENT = 0.05
LONG = 3600.0


@pytest.fixture(autouse=True)
def _suspends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a moment, so that no test has to sleep for long."""
    monkeypatch.setattr(waits, "SHORT_SECONDS", 0.0)


async def waits_for(app: Penstock, job: Job, what: str) -> Job:
    """The job, once it is queued again and waits for that."""

    async def waiting() -> Job | None:
        found = await app.get(job.id)
        return found if what in (found.waiting_for or "") else None

    return await until(waiting, f"a job that waits for {what}")


async def test_a_job_sleeps_and_goes_on_with_its_records(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)
    begun: list[int] = []
    called: list[str] = []

    async def note(what: str) -> str:
        called.append(what)
        return what

    @app.job("nap")
    async def nap(ctx: JobContext) -> list[str]:
        begun.append(ctx.attempt)
        before = await ctx.step("before", note, "before")
        await ctx.sleep(MOMENT)
        await ctx.sleep(MOMENT)
        return [before, await ctx.step("after", note, "after")]

    async with app.running():
        job = await app.enqueue("nap")
        done = await app.wait(job.id, timeout=SOON)
    assert done.result == ["before", "after"]
    assert called == ["before", "after"]
    assert set(begun) == {1}  # two sleeps, and no attempt for either
    assert (done.attempts, done.releases, done.history) == (1, 0, [])


async def test_a_sleep_that_is_over_is_not_slept_again(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)
    begun: list[int] = []

    @app.job("nap")
    async def nap(ctx: JobContext) -> str:
        begun.append(ctx.attempt)
        await ctx.sleep(MOMENT)
        if ctx.attempt == 1:
            raise ConnectionError("after the sleep")
        return "done"

    async with app.running():
        job = await app.enqueue("nap")
        assert await app.result(job.id, timeout=SOON) == "done"
    assert begun.count(2) == 1


@pytest.fixture
def penstock_source() -> Penstock:
    return Penstock("sqlite:///unused.db")


async def test_the_end_of_a_wait_is_the_one_recorded_first(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    app = penstock_app
    lengths = count(1)

    @app.job("varying")
    async def varying(ctx: JobContext) -> Any:
        longer = LONG * next(lengths)  # another one in each run
        await ctx.sleep(longer)
        answer = await ctx.wait_for("go", timeout=timedelta(seconds=-longer))
        if ctx.attempt == 1:
            raise ConnectionError("both were recorded")
        return answer

    job = await app.wait((await app.enqueue("varying")).id, timeout=LONG + SOON)
    assert (job.state, job.result, job.attempts) == (JobState.COMPLETED, None, 2)


@pytest.mark.parametrize(
    ("length", "seconds"),
    [(2, 2.0), (-0.001, 0.0), (timedelta(minutes=1), 60.0), (timedelta(days=-1), 0.0)],
)
def test_a_length_below_nothing_is_nothing(length: float | timedelta, seconds: float) -> None:
    assert waits.seconds_of("a sleep", length) == seconds


@pytest.mark.parametrize("length", ["3", None, float("nan"), float("inf"), timedelta(days=4000)])
def test_what_is_no_length_of_a_wait_is_refused(length: Any) -> None:
    with pytest.raises(ValidationError, match="seconds or a timedelta, at most ten years"):
        waits.seconds_of("a sleep", length)


async def test_sleeping_and_waiting_jobs_occupy_no_worker(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG, max_workers=1)

    @app.job("sleeper")
    async def sleeper(ctx: JobContext) -> None:
        await ctx.sleep(LONG)

    @app.job("waiter")
    async def waiter(ctx: JobContext) -> Any:
        return await ctx.wait_for("go")

    @app.job("other")
    async def other(ctx: JobContext) -> str:
        return "done"

    async with app.running() as orchestrator:
        asleep, waiting = await app.enqueue("sleeper"), await app.enqueue("waiter")
        await waits_for(app, asleep, "(sleeps)")
        await waits_for(app, waiting, "the signal 'go'")
        assert orchestrator.status["parked"] == 0
        assert await app.result((await app.enqueue("other")).id, timeout=SOON) == "done"
        await app.cancel(asleep.id)
        assert (await app.wait(asleep.id, timeout=SOON)).state is JobState.CANCELLED
        assert await app.signal(waiting.id, "go", {"by": "ops"})
        assert await app.result(waiting.id, timeout=SOON) == {"by": "ops"}
        with pytest.raises(JobEnded):
            await app.signal(waiting.id, "go")


async def test_a_signal_that_comes_first_is_kept_and_each_is_taken_once(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)

    @app.job("waiter")
    async def waiter(ctx: JobContext) -> list[Any]:
        found = [await ctx.wait_for("go"), await ctx.wait_for("go", timeout=LONG)]
        if ctx.attempt == 1:
            raise ConnectionError("both were taken")
        return found

    async with app:
        job = await app.enqueue("waiter")
        assert await app.signal(job.id, "go", 1, key="a")
        assert not await app.signal(job.id, "go", 1, key="a")
        assert await app.signal(job.id, "go", 2)
        async with app.running():
            assert await app.result(job.id, timeout=SOON) == [1, 2]


async def test_a_signal_without_a_payload_is_no_timeout(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)

    @app.job("waiter")
    async def waiter(ctx: JobContext) -> Any:
        return await ctx.wait_for("go")

    async with app:
        job = await app.enqueue("waiter")
        with pytest.raises(ValidationError, match=r"what ctx\.wait_for returns after its timeout"):
            await app.signal(job.id, "go", None)
        with pytest.raises(ValidationError, match="the key of a signal is a text of 1 to 200"):
            await app.signal(job.id, "go", key=17)  # type: ignore[arg-type]
        with pytest.raises(ValidationError, match="the name of a signal is a text of 1 to 200"):
            await app.signal(job.id, "")
        assert await app.signal(job.id, "go")
        async with app.running():
            assert await app.result(job.id, timeout=SOON) is True


async def test_a_wait_that_timed_out_stays_so(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    app = penstock_app
    seen: list[Any] = []

    @app.job("waiter")
    async def waiter(ctx: JobContext) -> Any:
        seen.append(await ctx.wait_for("go", timeout=LONG))
        return await ctx.wait_for("go")

    job = await app.enqueue("waiter")
    penstock_clock.advance(seconds=LONG)
    assert set(seen) == {None}
    await app.signal(job.id, "go", "late")
    assert await app.result(job.id, timeout=SOON) == "late"
    assert set(seen) == {None}


async def test_a_waiting_job_outlives_its_process(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)
    begun: list[int] = []

    @app.job("waiter")
    async def waiter(ctx: JobContext) -> Any:
        begun.append(ctx.attempt)
        return await ctx.wait_for("go")

    async with app:
        async with app.running():
            job = await app.enqueue("waiter")
            await waits_for(app, job, "the signal 'go'")
        assert begun == [1]
        await app.signal(job.id, "go", 7)
        async with app.running():
            assert await app.result(job.id, timeout=SOON) == 7
    assert begun == [1, 1]


async def test_a_suspension_runs_finally_and_passes_through_task_groups(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)
    cleaned: list[str] = []

    @app.job("tidy")
    async def tidy(ctx: JobContext) -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(ctx.wait_for("go"))
        except Exception:
            cleaned.append("caught")
            raise
        finally:
            cleaned.append("finally")
        return "done"

    async with app.running():
        job = await app.enqueue("tidy")
        await waits_for(app, job, "the signal 'go'")
        await app.signal(job.id, "go")
        assert await app.result(job.id, timeout=SOON) == "done"
    assert cleaned == ["finally", "finally"]


async def test_steps_and_waits_in_a_finally_are_left_to_the_run_that_ends(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)
    called: list[str] = []

    async def note(what: str) -> str:
        called.append(what)
        return what

    @app.job("tidy")
    async def tidy(ctx: JobContext) -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(ctx.wait_for("go"))
            await ctx.step("work", note, "work")
        finally:
            await asyncio.gather(*(ctx.step("free", note, "free") for _ in range(2)))
            await ctx.emit("freed")
            await ctx.sleep(MOMENT)
        return "done"

    @app.job("tidy_in_a_thread")
    def tidy_in_a_thread(ctx: JobContext) -> str:
        try:
            ctx.wait_for("go")
        finally:
            ctx.step("free", called.append, "freed in a thread")
        return "done"

    async with app.running():
        jobs = [await app.enqueue(kind) for kind in ("tidy", "tidy_in_a_thread")]
        for job in jobs:
            await waits_for(app, job, "the signal 'go'")
        assert called == []  # nothing is freed while they wait
        for job in jobs:
            await app.signal(job.id, "go")
            assert await app.result(job.id, timeout=SOON) == "done"
    assert sorted(called) == ["free", "free", "freed in a thread", "work"]


@pytest.mark.parametrize("then", ["returns", "steps"])
async def test_swallowing_a_suspension_is_told(farm: Farm, then: str) -> None:
    app = farm.bare(lease_seconds=LONG)

    caught: list[type[BaseException]] = []

    async def nothing() -> None: ...

    @app.job("greedy")
    async def greedy(ctx: JobContext) -> None:
        try:
            await ctx.sleep(LONG)
        except BaseException as error:
            caught.append(type(error))
        if then == "steps":
            await ctx.step("nothing", nothing)

    async with app.running():
        job = await app.wait((await app.enqueue("greedy")).id, timeout=SOON)
    assert job.error is not None
    assert job.error["type"] == "SuspensionSwallowed"
    assert "catch Exception, not BaseException" in job.error["message"]
    assert (job.state, job.attempts) == (JobState.FAILED, 1)
    assert caught == [Suspended]


async def test_a_job_with_a_step_under_way_is_parked_instead(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG, poll_seconds=0.02)
    begun: list[int] = []
    asleep = asyncio.Event()

    async def ends_after_the_signal() -> str:
        await asleep.wait()
        return "step"

    @app.job("both")
    async def both(ctx: JobContext) -> list[Any]:
        begun.append(ctx.attempt)
        step = ctx.step("step", ends_after_the_signal)
        return list(await asyncio.gather(step, ctx.sleep(MOMENT), ctx.wait_for("go")))

    async with app.running() as orchestrator:
        job = await app.enqueue("both")
        await until(lambda: orchestrator.status["parked"] == 1, "the job to be parked")
        await app.signal(job.id, "go", 3)
        asleep.set()
        assert await app.result(job.id, timeout=SOON) == ["step", None, 3]
    assert begun == [1]


async def test_a_step_that_never_began_keeps_no_lease(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)

    @app.job("hasty")
    async def hasty(ctx: JobContext) -> Any:
        task = asyncio.create_task(ctx.step("never", called_for_nothing))
        task.cancel()  # before its first line
        await asyncio.wait([task])
        ctx.sleep(LONG).close()
        return await ctx.wait_for("go")

    async with app.running() as orchestrator:
        job = await app.enqueue("hasty")
        await waits_for(app, job, "the signal 'go'")
        assert orchestrator.status["parked"] == 0
        await app.signal(job.id, "go", 7)
        assert await app.result(job.id, timeout=SOON) == 7


async def called_for_nothing() -> None:
    raise AssertionError("nobody waits for it")


async def test_a_sync_handler_sleeps_and_waits(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)
    begun: list[int] = []

    @app.job("sync")
    def sync(ctx: JobContext) -> Any:
        begun.append(ctx.attempt)
        ctx.sleep(MOMENT)
        return ctx.wait_for("go", timeout=LONG)

    async with app.running():
        job = await app.enqueue("sync")
        await waits_for(app, job, "the signal 'go'")
        await app.signal(job.id, "go", "now")
        assert await app.result(job.id, timeout=SOON) == "now"
    assert set(begun) == {1}
    assert len(begun) >= 2


async def test_the_deadline_counts_while_a_job_sleeps(farm: Farm) -> None:
    app = farm.bare(lease_seconds=LONG)

    @app.job("late")
    async def late(ctx: JobContext) -> None:
        await ctx.sleep(LONG)

    async with app.running():
        job = await app.enqueue("late", deadline=time.time() + 2.0)
        ended = await app.wait(job.id, timeout=SOON)
    assert ended.error is not None
    assert ended.error["type"] == "DeadlineExceeded"
