"""Starting and stopping: twice, at once, again, and many in one process."""

import asyncio
import gc
import threading
from typing import Any

import psutil
import pytest

from penstock import JobContext, JobOrchestrator, JobState, Penstock, PenstockError
from penstock.adapters.sqlite.member import SqliteMember
from penstock.ports.queue import Exchange
from tests.support.cpu_time import cpu_share
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

SOON = 60.0


def with_work(farm: Farm, **settings: float) -> Penstock:
    app = farm.bare(**settings)

    @app.job("work")
    async def work(ctx: JobContext, n: int = 0) -> int:
        return n

    return app


def assert_stopped(orchestrator: JobOrchestrator) -> None:
    assert not orchestrator.running
    assert orchestrator.dispatcher_task is not None
    assert orchestrator.dispatcher_task.done()
    assert list(orchestrator.workers) == []
    assert orchestrator.internal_queue.empty()


def test_what_others_look_at_is_there_before_the_start() -> None:
    async def work(ctx: JobContext) -> None:
        pass

    orchestrator = JobOrchestrator(Penstock("sqlite:///none.db").queue, {"work": work}, 7)
    assert orchestrator.dispatcher_task is None
    assert orchestrator.max_workers == 7
    assert (orchestrator.internal_queue.qsize(), orchestrator.internal_queue.maxsize) == (0, 100)
    assert not orchestrator.running


async def test_stopping_twice_and_at_once_is_one_stop(farm: Farm) -> None:
    app = with_work(farm)
    async with app:
        orchestrator = app.orchestrator()
        await orchestrator.stop()  # never started: nothing to do
        await orchestrator.start()
        async with asyncio.timeout(SOON):
            await asyncio.gather(*(orchestrator.stop() for _ in range(5)))
            assert_stopped(orchestrator)
            await orchestrator.stop()
        assert await app.processes() == []


async def test_a_stop_whose_caller_is_cancelled_goes_on(farm: Farm) -> None:
    app = farm.bare(grace_seconds=SOON)
    leave = asyncio.Event()
    entered = asyncio.Event()

    @app.job("long")
    async def long(ctx: JobContext) -> str:
        entered.set()
        await leave.wait()
        return "done"

    async with app:
        orchestrator = app.orchestrator()
        await orchestrator.start()
        job = await app.enqueue("long")
        await entered.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await orchestrator.stop()
        leave.set()
        async with asyncio.timeout(SOON):
            await orchestrator.stop()
        assert_stopped(orchestrator)
        assert (await app.get(job.id)).result == "done"


async def test_starting_again_after_a_stop_works(farm: Farm) -> None:
    app = with_work(farm)
    async with app:
        orchestrator = app.orchestrator()
        for n in range(3):
            await orchestrator.start()
            with pytest.raises(PenstockError):
                await orchestrator.start()
            job = await app.enqueue("work", {"n": n})
            assert (await app.wait(job.id, timeout=SOON)).result == n
            await orchestrator.stop()
            assert_stopped(orchestrator)
        assert len(await app.jobs(states=["completed"])) == 3


async def test_a_second_stop_without_grace_hastens_the_first(farm: Farm) -> None:
    app = farm.bare()
    entered = asyncio.Event()

    @app.job("long")
    async def long(ctx: JobContext) -> None:
        entered.set()
        await asyncio.sleep(60)

    async with app:
        orchestrator = app.orchestrator()
        await orchestrator.start()
        job = await app.enqueue("long")
        await entered.wait()
        patient = asyncio.create_task(orchestrator.stop(grace=60))
        await until(lambda: orchestrator.status["draining"], "the stop to begin")
        async with asyncio.timeout(SOON):
            await orchestrator.stop(grace=0)
            await patient
        row = await app.get(job.id)
        assert (row.state, row.attempts, row.history) == (JobState.QUEUED, 0, [])


async def test_a_handler_that_does_not_end_when_cancelled_does_not_keep_the_stop(
    farm: Farm,
) -> None:
    app = farm.bare()
    entered, over = asyncio.Event(), asyncio.Event()

    @app.job("ignores")
    async def ignores(ctx: JobContext) -> str:
        entered.set()
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    async with app:
        orchestrator = app.orchestrator()
        await orchestrator.start()
        job = await app.enqueue("ignores")
        await entered.wait()
        async with asyncio.timeout(SOON):
            await orchestrator.stop(grace=0.1)
        assert_stopped(orchestrator)
        row = await app.get(job.id)
        assert (row.state, row.attempts, row.history) == (JobState.QUEUED, 0, [])
        # What it says later does not count, and nothing of it is left behind.
        over.set()

        def orphans() -> bool:
            return any(t.get_name().startswith("penstock-worker") for t in asyncio.all_tasks())

        await until(lambda: not orphans(), "the old worker to end", SOON)
        assert await app.get(job.id) == row


async def test_many_orchestrators_in_one_process_share_the_work(farm: Farm) -> None:
    app = farm.bare(max_workers=2, lease_seconds=60.0)  # a pause costs none its jobs
    runs: list[str] = []

    @app.job("work")
    async def work(ctx: JobContext, n: int) -> int:
        runs.append(ctx.job.id)
        await asyncio.sleep(0.005)
        return n

    async with app:
        orchestrators = [app.orchestrator() for _ in range(10)]
        for orchestrator in orchestrators:
            await orchestrator.start()
        assert len(await app.processes()) == 10
        jobs = await app.enqueue_many("work", [{"n": n} for n in range(400)])
        await app.drain(timeout=PATIENCE)
        async with asyncio.timeout(SOON):
            await asyncio.gather(*(orchestrator.stop() for orchestrator in orchestrators))
        rows = await app.jobs(limit=500)
        assert await app.processes() == []
    assert {(job.state, job.attempts) for job in rows} == {(JobState.COMPLETED, 1)}
    assert sorted(runs) == sorted(job.id for job in jobs)


async def test_apps_on_different_files_in_one_process_do_not_mix(farm: Farm) -> None:
    farm_folder = farm.folder
    apps = []
    for n in range(3):
        farm.url = f"sqlite:///{farm_folder}/jobs-{n}.db"
        apps.append(with_work(farm))
    async with apps[0].running(), apps[1].running(), apps[2]:
        jobs = [await app.enqueue("work", {"n": n}) for n, app in enumerate(apps)]
        for n in range(2):
            assert (await apps[n].wait(jobs[n].id, timeout=SOON)).result == n
        assert (await apps[2].get(jobs[2].id)).state is JobState.QUEUED


async def test_by_hand_as_in_the_design(farm: Farm) -> None:
    app = with_work(farm)
    async with app:
        orchestrator = JobOrchestrator(app.queue, app.handlers, max_workers=3)
        await orchestrator.start()
        assert orchestrator.running
        assert len(orchestrator.workers) == 3
        assert orchestrator.internal_queue.maxsize == 100
        job = await app.enqueue("work", {"n": 3})
        assert (await app.wait(job.id, timeout=SOON)).result == 3
        await orchestrator.stop(grace=1)
        assert_stopped(orchestrator)


@pytest.mark.parametrize(("size", "early"), [(100, False), (500, True)])
async def test_a_large_claim_is_made_while_the_workers_have_jobs_at_hand(
    farm: Farm, monkeypatch: pytest.MonkeyPatch, size: int, early: bool
) -> None:
    """A small one waits until they have nearly none: a trip costs the same for few and many."""
    app = with_work(farm, internal_queue=size)
    claims: list[tuple[int, int]] = []
    exchange = SqliteMember.exchange

    async def seen(member: SqliteMember, *given: Any) -> Exchange:
        if (want := given[2]) is not None and want.limit:
            claims.append((orchestrator.internal_queue.qsize(), want.limit))
        return await exchange(member, *given)

    monkeypatch.setattr(SqliteMember, "exchange", seen)
    async with app:
        await app.enqueue_many("work", [{"n": n} for n in range(5_000)])
        orchestrator = app.orchestrator()
        await orchestrator.start()
        await app.drain(timeout=PATIENCE)
        await orchestrator.stop()
    at_hand = [waiting for waiting, limit in claims if limit >= 100]
    assert any(waiting > size // 10 for waiting in at_hand) is early, claims


async def test_starting_and_stopping_leaves_no_thread_task_or_file_behind(farm: Farm) -> None:
    app = with_work(farm)

    async def once() -> None:
        async with app, app.running():
            job = await app.enqueue("work")
            await app.wait(job.id, timeout=SOON)

    def left() -> tuple[int, set[str], int]:
        gc.collect()
        threads = {t.name for t in threading.enumerate() if t.name.startswith("penstock")}
        return psutil.Process().num_fds(), threads, len(asyncio.all_tasks())

    await once()
    before = left()
    for _ in range(5):
        await once()

    def no_more() -> bool:
        fds, threads, tasks = left()
        return fds <= before[0] and threads <= before[1] and tasks <= before[2]

    await until(no_more, f"what is left to be {before}")
    run_folder = farm.path.with_name("jobs.db-run")
    assert [path.name for path in run_folder.iterdir() if path.suffix == ".life"] == []


async def test_an_error_inside_the_block_stops_the_orchestrator_all_the_same(farm: Farm) -> None:
    app = with_work(farm)
    used: list[JobOrchestrator] = []

    async def fail_while_running() -> None:
        async with app.running() as orchestrator:
            used.append(orchestrator)
            job = await app.enqueue("work", {"n": 1})
            await app.wait(job.id, timeout=SOON)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_while_running()
    assert_stopped(used[0])


@pytest.mark.alone
async def test_an_idle_process_does_next_to_nothing(farm: Farm) -> None:
    farm.settings.update(upkeep_seconds=0.5, lease_seconds=15.0)  # as they are by default
    worker = await farm.start()
    async with farm.app() as app:
        await app.wait((await app.enqueue("work", {"n": 1})).id, timeout=SOON)
    assert await cpu_share(4.0, worker.pid) <= 0.005 * 5, "0.5 % of a core, five times over"
