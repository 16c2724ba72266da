"""Plain functions as handlers: a thread each, which nobody can end from outside."""

import asyncio
import threading
import time
from contextvars import ContextVar
from typing import Any

from penstock import Job, JobContext, JobState, Penstock
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

SOON = 60.0


async def test_a_sync_handler_runs_in_a_thread_with_the_context_of_its_worker(farm: Farm) -> None:
    app = farm.bare()
    greeting: ContextVar[str] = ContextVar("greeting", default="none")
    threads: list[str] = []

    @app.job("greet")
    def greet(ctx: JobContext, name: str) -> str:
        threads.append(threading.current_thread().name)
        said = f"{greeting.get()} {name}"
        greeting.set("left behind by " + name)
        return said

    greeting.set("hello")
    async with app, app.running():
        jobs = [await app.enqueue("greet", {"name": name}) for name in ("a", "b", "c")]
        done = [await app.wait(job.id, timeout=60) for job in jobs]
    assert [job.result for job in done] == ["hello a", "hello b", "hello c"]
    assert threading.main_thread().name not in threads
    assert greeting.get() == "hello"


async def test_many_sync_handlers_run_side_by_side(farm: Farm) -> None:
    app = farm.bare(max_workers=4)
    together = threading.Barrier(4, timeout=SOON)

    @app.job("meet")
    def meet(ctx: JobContext) -> int:
        return together.wait()

    async with app, app.running():
        jobs = await app.enqueue_many("meet", [{}] * 4)
        done = [await app.wait(job.id, timeout=60) for job in jobs]
    assert sorted(job.result for job in done) == [0, 1, 2, 3]


class Stuck:
    """A sync handler that does not return before it is let go, on its first run."""

    def __init__(self, app: Penstock, **options: Any) -> None:
        self.let_go = threading.Event()
        self.returned_at = 0.0
        self.started_at: list[float] = []
        self.seen_cancelled = threading.Event()

        @app.job("stuck", **options)
        def stuck(ctx: JobContext) -> int:
            self.started_at.append(time.time())
            if len(self.started_at) == 1:
                while not self.let_go.wait(0.01):
                    if ctx.cancelled:
                        self.seen_cancelled.set()
                self.returned_at = time.time()
            return ctx.attempt


async def test_past_its_timeout_a_job_is_settled_but_not_retried_before_its_thread_returns(
    farm: Farm,
) -> None:
    lease = 4.0
    app = farm.bare(max_workers=2, lease_seconds=lease, retry_base_seconds=0.01)
    stuck = Stuck(app, timeout=3.0, max_retries=1)
    async with app, app.running() as orchestrator, farm.bare() as other:
        job = await app.enqueue("stuck")
        await until(lambda: orchestrator.status["stuck"] == 1, "the worker to be stuck")
        assert stuck.seen_cancelled.wait(SOON)

        async def settled() -> Job | None:
            row = await other.get(job.id)
            return row if row.state is JobState.QUEUED else None

        row = await until(settled, "the time-out to be stored")
        assert row.attempts == 1
        assert [(r.outcome, r.error.type) for r in row.history] == [("retry", "JobTimeout")]

        # Other processes see it as stuck, and the retry stays away, for as long as it takes.
        async def renewals() -> bool:
            (process,) = await other.processes()
            return process.status.get("stuck") == 1 and process.lease_until > row.run_at + lease

        await until(renewals, "some renewals")
        assert len(stuck.started_at) == 1
        assert (await other.get(job.id)).run_at > time.time()

        stuck.let_go.set()
        done = await app.wait(job.id, timeout=60)
        assert (done.state, done.attempts, done.result) == (JobState.COMPLETED, 2, 2)
        assert len(stuck.started_at) == 2
        assert stuck.started_at[1] >= stuck.returned_at > 0
        assert orchestrator.status["stuck"] == 0


async def test_a_stuck_worker_does_not_keep_the_others_from_working(farm: Farm) -> None:
    app = farm.bare(max_workers=2)
    stuck = Stuck(app, timeout=0.1, max_retries=0)

    @app.job("work")
    async def work(ctx: JobContext, n: int) -> int:
        return n

    async with app, app.running() as orchestrator:
        job = await app.enqueue("stuck")
        failed = await app.wait(job.id, timeout=SOON)
        assert (failed.state, failed.attempts) == (JobState.FAILED, 1)
        assert failed.error is not None
        assert failed.error.type == "JobTimeout"
        await until(lambda: orchestrator.status["stuck"] == 1, "the worker to be stuck")
        jobs = await app.enqueue_many("work", [{"n": n} for n in range(50)])
        done = [await app.wait(job.id, timeout=60) for job in jobs]
        assert [job.result for job in done] == list(range(50))
        assert orchestrator.status["stuck"] == 1
        stuck.let_go.set()
        await until(lambda: orchestrator.status["stuck"] == 0, "the thread to return")
        # A dead letter stays dead, whatever its thread had to say in the end.
        assert await app.get(job.id) == failed


async def test_a_cancelled_sync_handler_sees_it_and_its_result_is_dropped(farm: Farm) -> None:
    app = farm.bare(max_workers=1)
    stuck = Stuck(app)
    async with app, app.running():
        job = await app.enqueue("stuck")
        await until(lambda: stuck.started_at, "the job to run")
        assert (await app.cancel(job.id)).state is JobState.CANCELLED
        await until(stuck.seen_cancelled.is_set, "ctx.cancelled", SOON)
        stuck.let_go.set()
        await app.drain(timeout=PATIENCE)
        row = await app.get(job.id)
        assert (row.state, row.result) == (JobState.CANCELLED, None)
        following = await app.enqueue("stuck")
        assert (await app.wait(following.id, timeout=60)).state is JobState.COMPLETED


async def test_a_dead_letter_redriven_while_its_thread_is_stuck_does_not_break_the_worker(
    farm: Farm,
) -> None:
    app = farm.bare(max_workers=2)
    let_go = threading.Event()
    running: list[int] = []

    @app.job("stuck", timeout=0.1, max_retries=0)
    def stuck(ctx: JobContext) -> None:
        running.append(1)
        let_go.wait(SOON)

    @app.job("work")
    async def work(ctx: JobContext, n: int) -> int:
        return n

    async with app, app.running() as orchestrator:
        job = await app.enqueue("stuck")
        await app.wait(job.id, timeout=SOON)
        assert await app.redrive(job_id=job.id) == 1
        await until(lambda: len(running) == 2, "the second run")
        await until(lambda: orchestrator.status["busy"] == 2, "both workers to be busy")
        await app.wait(job.id, timeout=SOON)
        let_go.set()
        await until(lambda: orchestrator.status["busy"] == 0, "both threads to return")
        jobs = await app.enqueue_many("work", [{"n": n} for n in range(20)])
        for new in jobs:
            assert (await app.wait(new.id, timeout=60)).state is JobState.COMPLETED
        assert all(not worker.task.done() for worker in orchestrator.workers)
        assert orchestrator.status["stuck"] == 0


async def test_progress_and_children_from_a_thread(farm: Farm) -> None:
    app = farm.bare(progress_seconds=0.02)
    half_way = threading.Event()

    @app.job("parent")
    def parent(ctx: JobContext) -> str:
        ctx.progress(0.5, "half way")
        half_way.wait(SOON)
        child = ctx.from_thread(ctx.enqueue("child", {"n": 7}))
        return child.id

    @app.job("child")
    async def child(ctx: JobContext, n: int) -> int:
        return n

    async with app, app.running():
        job = await app.enqueue("parent")

        async def noted() -> bool:
            row = await app.get(job.id)
            return (row.progress, row.message) == (0.5, "half way")

        await until(noted, "the progress to be stored")
        half_way.set()
        done = await app.wait(job.id, timeout=60)
        assert done.state is JobState.COMPLETED
        made = await app.wait(done.result, timeout=60)
        assert (made.result, made.parent_id) == (7, job.id)


async def test_a_sync_handler_does_not_block_the_event_loop(farm: Farm) -> None:
    app = farm.bare()
    entered, leave = threading.Event(), threading.Event()

    @app.job("sleeps")
    def sleeps(ctx: JobContext) -> None:
        entered.set()
        leave.wait(SOON)

    async with app, app.running():
        job = await app.enqueue("sleeps")
        await until(entered.is_set, "the job to run")
        await asyncio.sleep(0)
        leave.set()
        assert (await app.wait(job.id, timeout=SOON)).state is JobState.COMPLETED
