"""Cancel: the row is the authority, the worker lives on."""

import asyncio
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.errors import JobNotFound
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

NEVER = 600.0
"""Seconds between two looks without a wake-up: nobody hears of a cancel by those."""


async def worker_lives_on(app: Penstock) -> None:
    job = await app.enqueue("work", {"n": 0})
    assert (await app.wait(job.id, timeout=PATIENCE)).state is JobState.COMPLETED


async def test_a_queued_job_is_cancelled_at_once_and_never_run(farm: Farm) -> None:
    app = farm.app()
    async with app:
        now = await app.enqueue("work", {"n": 1})
        later = await app.enqueue("work", {"n": 2}, delay=60)
        for job in (now, later):
            cancelled = await app.cancel(job.id)
            assert (cancelled.state, cancelled.attempts) == (JobState.CANCELLED, 0)
            assert (await app.wait(job.id, timeout=PATIENCE)).state is JobState.CANCELLED
        async with app.running():
            await worker_lives_on(app)
            await app.drain(timeout=PATIENCE)
    assert not farm.side.runs().keys() & {now.id, later.id}


@pytest.mark.parametrize("where", ["same process", "other process", "other process, polling"])
async def test_a_running_handler_is_interrupted_soon_and_its_worker_lives_on(
    farm: Farm, where: str
) -> None:
    settings: dict[str, Any] = {"max_workers": 1, "poll_seconds": NEVER}
    app = farm.app(**settings)
    async with app:
        orchestrator = app.orchestrator()
        if where == "same process":
            await orchestrator.start()
        else:
            polling = {"PENSTOCK_NO_INOTIFY": "1"} if "polling" in where else {}
            await farm.start(environment=polling, **settings)
        job = await app.enqueue("gated", {"gate": str(farm.gate)})
        await until(farm.side.notes, "the job to run")
        assert (await app.cancel(job.id)).state is JobState.CANCELLED
        # With one worker, the next job runs only once the cancelled one has ended.
        await worker_lives_on(app)
        await app.drain(timeout=PATIENCE)
        row = await app.get(job.id)
        assert (row.state, row.result, row.finished_at is not None) == (
            JobState.CANCELLED,
            None,
            True,
        )
        assert farm.side.runs("gated") == {job.id: 1}
        await orchestrator.stop()


@pytest.mark.parametrize("where", ["same process", "other process"])
async def test_a_prefetched_job_that_is_cancelled_is_not_run(farm: Farm, where: str) -> None:
    settings: dict[str, Any] = {"max_workers": 1, "prefetch_seconds": 60.0}
    app = farm.app(**settings)
    async with app:
        orchestrator = app.orchestrator()
        if where == "same process":
            await orchestrator.start()
        else:
            await farm.start(**settings)
        await app.enqueue_many("work", [{"n": n} for n in range(40)])
        await app.drain(timeout=PATIENCE)
        jobs = await app.enqueue_many("gated", [{"gate": str(farm.gate)}] * 5)

        async def claimed() -> bool:
            rows = [await app.get(job.id) for job in jobs]
            return all(row.state is JobState.RUNNING for row in rows)

        await until(claimed, "all to be claimed")
        await until(lambda: farm.side.notes(kind="gated"), "the first to run")
        for job in jobs[1:4]:
            assert (await app.cancel(job.id)).state is JobState.CANCELLED
        # Whoever sees this one cancelled has seen the others, too.
        await app.cancel(jobs[0].id)
        await until(lambda: len(farm.side.notes(kind="gated")) == 2, "the next to run")
        farm.gate.touch()
        assert (await app.wait(jobs[4].id, timeout=PATIENCE)).state is JobState.COMPLETED
        await app.drain(timeout=PATIENCE)
        assert farm.side.runs("gated") == {jobs[0].id: 1, jobs[4].id: 1}
        states = [(await app.get(job.id)).state for job in jobs]
        assert states == [JobState.CANCELLED] * 4 + [JobState.COMPLETED]
        await orchestrator.stop()


async def test_a_handler_that_swallows_its_cancellation_is_cancelled_all_the_same(
    farm: Farm,
) -> None:
    app = farm.bare(max_workers=1, poll_seconds=NEVER)
    entered, swallowed = asyncio.Event(), asyncio.Event()

    @app.job("stubborn")
    async def stubborn(ctx: JobContext) -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert ctx.cancelled
            swallowed.set()
        return "completed after all"

    @app.job("work")
    async def work(ctx: JobContext, n: int) -> int:
        return n

    async with app, app.running():
        job = await app.enqueue("stubborn")
        await entered.wait()
        await app.cancel(job.id)
        async with asyncio.timeout(PATIENCE):
            await swallowed.wait()
        await worker_lives_on(app)
        await app.drain(timeout=PATIENCE)
        row = await app.get(job.id)
    assert (row.state, row.result, row.error) == (JobState.CANCELLED, None, None)


@pytest.mark.parametrize("where", ["same process", "other process"])
async def test_cancel_against_complete_has_one_winner_and_the_row_says_which(
    farm: Farm, where: str
) -> None:
    app = farm.app()
    async with app:
        orchestrator = app.orchestrator()
        if where == "same process":
            await orchestrator.start()
        else:
            await farm.start()
        # Most end about when they are cancelled; a few go on until they are.
        seconds = [50.0 if n % 20 == 0 else 0.02 for n in range(200)]
        jobs = [await app.enqueue("work", {"n": n, "seconds": s}) for n, s in enumerate(seconds)]
        verdicts: dict[str, Job] = {}

        async def cancel(job_id: str) -> None:
            verdicts[job_id] = await app.cancel(job_id)

        async with asyncio.TaskGroup() as group:
            for job in jobs[1::2]:
                group.create_task(app.wait(job.id, timeout=PATIENCE))
            left = {job.id for job in jobs[::2]}

            def begun() -> bool:
                for job_id in left & farm.side.runs().keys():
                    left.remove(job_id)
                    group.create_task(cancel(job_id))
                return not left

            await until(begun, "every job to run")
        await app.drain(timeout=PATIENCE)
        rows = {job.id: await app.get(job.id) for job in jobs}
        await orchestrator.stop()

    for job in jobs[1::2]:
        assert rows[job.id].state is JobState.COMPLETED
    for job in jobs[::2]:
        row = rows[job.id]
        assert verdicts[job.id].state is row.state, "the verdict of a cancel is final"
        assert row.state in (JobState.COMPLETED, JobState.CANCELLED)
        assert (row.result is not None) == (row.state is JobState.COMPLETED)
        assert row.attempts == farm.side.runs()[job.id] == 1
    won = sum(rows[job.id].state is JobState.CANCELLED for job in jobs[::2])
    assert won > 0


async def test_cancelling_a_finished_or_unknown_job_changes_nothing(farm: Farm) -> None:
    app = farm.app()
    async with app, app.running():
        job = await app.enqueue("work", {"n": 1})
        done = await app.wait(job.id, timeout=PATIENCE)
        assert await app.cancel(job.id) == done
        with pytest.raises(JobNotFound):
            await app.cancel("0" * 32)


async def test_a_cancelled_job_whose_worker_is_killed_stays_cancelled(farm: Farm) -> None:
    async with farm.app() as app:
        worker = await farm.start()
        job = await app.enqueue("gated_thread", {"gate": str(farm.gate)})
        await until(farm.side.notes, "the job to run")
        await app.cancel(job.id)
        await worker.kill()
        farm.gate.touch()
        await farm.start()
        await worker_lives_on(app)
        await app.drain(timeout=PATIENCE)
        row = await app.get(job.id)
    assert (row.state, row.attempts) == (JobState.CANCELLED, 1)
    assert farm.side.runs("gated_thread") == {job.id: 1}
