"""Timeouts, deadlines and RunLater: every job ends."""

import asyncio
import time
from statistics import median

import pytest

from penstock import Job, JobContext, JobState, Penstock, RunLater
from penstock.engine import outcomes
from penstock.model.job import RELEASE_LIMIT
from penstock.testing import VirtualClock
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SOON = 60.0


@pytest.fixture
def penstock_source() -> Penstock:
    return Penstock("sqlite:///unused.db")


async def test_a_hung_handler_times_out_and_is_retried_as_often_as_allowed(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    app = penstock_app
    runs: list[int] = []
    cleaned_up: list[int] = []

    @app.job("hangs", timeout=1.0, max_retries=2)
    async def hangs(ctx: JobContext) -> None:
        runs.append(ctx.attempt)
        assert ctx.remaining() <= 1.0
        try:
            await asyncio.Event().wait()
        finally:
            cleaned_up.append(ctx.attempt)

    done = await app.wait((await app.enqueue("hangs")).id, timeout=60)
    assert runs == cleaned_up == [1, 2, 3]
    assert (done.state, done.attempts) == (JobState.FAILED, 3)
    assert done.error is not None
    assert (done.error.type, done.error.retryable) == ("JobTimeout", True)
    assert "1 s" in done.error.message
    assert [(r.attempt, r.outcome, r.error.type) for r in done.history] == [
        (1, "retry", "JobTimeout"),
        (2, "retry", "JobTimeout"),
        (3, "failed", "JobTimeout"),
    ]


async def test_a_handler_that_ignores_its_timeout_for_ever_does_not_hold_its_job_for_ever(
    farm: Farm,
) -> None:
    app = farm.bare(max_workers=2)
    over = asyncio.Event()

    @app.job("ignores", timeout=0.1, max_retries=0)
    async def ignores(ctx: JobContext) -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    async with app, app.running():
        job = await app.enqueue("ignores")
        try:
            done = await app.wait(job.id, timeout=SOON)
        finally:
            over.set()
        assert (done.state, done.attempts) == (JobState.FAILED, 1)
        assert done.error is not None
        assert done.error.type == "JobTimeout"


async def test_a_deadline_ends_a_running_job_for_good(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    app = penstock_app
    runs: list[float] = []

    @app.job("hangs", timeout=60, max_retries=5)
    async def hangs(ctx: JobContext) -> None:
        runs.append(ctx.deadline)
        await asyncio.Event().wait()

    deadline = penstock_clock.time() + 4
    done = await app.wait((await app.enqueue("hangs", deadline=deadline)).id, timeout=SOON)
    assert runs == [pytest.approx(deadline, abs=0.001)]
    assert (done.state, done.attempts) == (JobState.FAILED, 1)
    assert done.error is not None
    assert (done.error.type, done.error.retryable) == ("DeadlineExceeded", False)
    assert done.finished_at is not None
    assert done.finished_at >= deadline - 0.1


async def test_a_deadline_ends_a_queued_job_nobody_had_time_for(farm: Farm) -> None:
    app = farm.bare(max_workers=1, prefetch_seconds=0.05)
    leave = asyncio.Event()

    @app.job("busy")
    async def busy(ctx: JobContext) -> None:
        await leave.wait()

    @app.job("late")
    async def late(ctx: JobContext) -> None:
        raise AssertionError("it should not have been run")

    async with app, app.running():
        await app.enqueue("busy")
        job = await app.enqueue("late", deadline=time.time() + 1)
        done = await app.wait(job.id, timeout=SOON)
        leave.set()
    assert (done.state, done.attempts) == (JobState.FAILED, 0)
    assert done.error is not None
    assert done.error.type == "DeadlineExceeded"


async def test_a_retry_that_would_come_after_the_deadline_is_not_waited_for(
    penstock_app: Penstock, penstock_clock: VirtualClock
) -> None:
    app = penstock_app

    @app.job("fails", max_retries=5, backoff=3600)
    async def fails(ctx: JobContext) -> None:
        raise OSError("try again in an hour")

    job = await app.enqueue("fails", deadline=penstock_clock.time() + 1800)
    done = await app.wait(job.id, timeout=SOON)
    assert (done.state, done.attempts) == (JobState.FAILED, 1)
    assert done.error is not None
    assert "deadline" in done.error.message


async def test_run_later_spends_no_attempt(farm: Farm) -> None:
    app = farm.bare()
    attempts: list[int] = []

    @app.job("later", max_retries=0)
    async def later(ctx: JobContext) -> int:
        attempts.append(ctx.attempt)
        if len(attempts) < 4:
            raise RunLater(delay=0.02, reason="not yet")
        return len(attempts)

    async with app, app.running():
        done = await app.wait((await app.enqueue("later")).id, timeout=60)
    assert attempts == [1, 1, 1, 1]
    assert (done.state, done.attempts, done.releases, done.result) == (JobState.COMPLETED, 1, 3, 4)
    assert [(one.outcome, one.error.message) for one in done.history] == 3 * [
        ("released", "not yet")
    ]


async def test_a_job_waiting_to_be_run_later_says_so_and_frees_its_worker(farm: Farm) -> None:
    app = farm.bare(max_workers=1)

    @app.job("later")
    async def later(ctx: JobContext) -> None:
        ctx.run_later(60, "the moon is down")

    @app.job("work")
    async def work(ctx: JobContext) -> str:
        return "done"

    async with app, app.running():
        job = await app.enqueue("later")

        async def released() -> Job | None:
            row = await app.get(job.id)
            return row if row.releases else None

        row = await until(released, "the release")
        assert (row.state, row.attempts) == (JobState.QUEUED, 0)
        assert row.waiting_for is not None
        assert "the moon is down" in row.waiting_for
        assert (await app.wait((await app.enqueue("work")).id, timeout=SOON)).result == "done"


async def test_released_as_often_as_is_allowed_a_job_fails_with_that_reason(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RELEASE_LIMIT == 1000
    monkeypatch.setattr(outcomes, "RELEASE_LIMIT", 20)
    app = farm.bare()
    runs = 0

    @app.job("for_ever")
    async def for_ever(ctx: JobContext) -> None:
        nonlocal runs
        runs += 1
        raise RunLater(delay=0)

    async with app, app.running():
        done = await app.wait((await app.enqueue("for_ever")).id, timeout=SOON)
    assert (done.state, done.attempts, done.releases) == (JobState.FAILED, 1, 20)
    assert runs == 21
    assert done.error is not None
    assert (done.error.type, done.error.retryable) == ("ReleasedTooOften", False)


async def test_a_release_past_the_deadline_fails_with_that_reason(farm: Farm) -> None:
    app = farm.bare()

    @app.job("later")
    async def later(ctx: JobContext) -> None:
        raise RunLater(delay=3600)

    async with app, app.running():
        job = await app.enqueue("later", deadline=time.time() + 1800)
        done = await app.wait(job.id, timeout=SOON)
    assert (done.state, done.attempts, done.releases) == (JobState.FAILED, 1, 0)
    assert done.error is not None
    assert done.error.type == "DeadlineExceeded"


@pytest.mark.parametrize("retries", [0, 3])
async def test_a_failing_job_is_run_once_more_than_it_may_be_retried(
    farm: Farm, retries: int
) -> None:
    app = farm.bare()
    runs: list[int] = []

    @app.job("fails", max_retries=retries)
    async def fails(ctx: JobContext) -> None:
        runs.append(ctx.attempt)
        raise OSError(f"run {ctx.attempt}")

    async with app, app.running():
        done = await app.wait((await app.enqueue("fails")).id, timeout=60)
    assert runs == list(range(1, retries + 2))
    assert (done.state, done.attempts) == (JobState.FAILED, retries + 1)
    assert [record.error.message for record in done.history] == [f"run {n}" for n in runs]


@pytest.mark.parametrize("ending", [RunLater(delay=0.05), OSError("try again")])
async def test_a_job_to_be_run_again_is_run_when_it_is_due_not_at_the_next_look(
    farm: Farm, ending: Exception
) -> None:
    app = farm.bare(poll_seconds=600.0, retry_base_seconds=0.05)
    runs: list[float] = []

    @app.job("again")
    async def again(ctx: JobContext) -> str:
        runs.append(time.time())
        if len(runs) < 4:
            raise ending
        return "done"

    async with app, app.running():
        done = await app.wait((await app.enqueue("again")).id, timeout=SOON)
    assert done.result == "done"
    assert len(runs) == 4


async def test_a_job_to_be_run_again_is_taken_by_another_process_when_the_first_has_gone(
    farm: Farm,
) -> None:
    # Neither takes the other for gone, which runs in the same process.
    failing, other = (farm.bare(poll_seconds=600.0, lease_seconds=600.0) for _ in range(2))

    @failing.job("again")
    async def fails(ctx: JobContext) -> None:
        raise RunLater(delay=0.3)

    @other.job("again")
    async def succeeds(ctx: JobContext) -> str:
        return "done"

    @other.job("idle")
    async def idle(ctx: JobContext) -> None:
        return None

    async with failing:
        job = await failing.enqueue("again")
        async with other.running(kinds=["idle"]):
            async with failing.running():

                async def released() -> bool:
                    return (await failing.get(job.id)).releases > 0

                await until(released, "the release")
            async with other.running(kinds=["again"]):
                done = await other.wait(job.id, timeout=SOON)
    assert done.result == "done"


@pytest.mark.parametrize("ending", [RunLater(delay=0), OSError("try again")])
async def test_a_job_that_is_due_again_at_once_does_not_stop_the_event_loop(
    farm: Farm, ending: Exception
) -> None:
    app = farm.bare(max_workers=1, retry_base_seconds=0.0001)
    longest: list[float] = []

    @app.job("again", max_retries=3)
    async def again(ctx: JobContext) -> str:
        if ctx.job.releases + ctx.attempt < 4:
            raise ending
        return "done"

    async def tick() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest[-1] = max(longest[-1], time.monotonic() - before)

    async with app, app.running():
        longest.append(0.0)
        ticking = asyncio.create_task(tick())
        for _ in range(10):
            longest.append(0.0)
            assert (await app.wait((await app.enqueue("again")).id, timeout=60)).result == "done"
        ticking.cancel()
    assert median(longest[1:]) < 1.0, "the machine may stand still, but not each time"
