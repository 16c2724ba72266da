"""A process that loses its membership: it stands back, joins again and goes on."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock import JobContext, JobOrchestrator, JobState, Penstock
from penstock.adapters.sqlite import SqliteQueue
from penstock.errors import QueueUnavailable
from penstock.model.tally import Tally
from tests.conformance.support import claim
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SOON = 60.0


async def work(ctx: JobContext) -> str:
    return "done"


@asynccontextmanager
async def two_members(
    farm: Farm, app: Penstock
) -> AsyncIterator[tuple[JobOrchestrator, Callable[[], Any]]]:
    """`app` running, and a second member that takes over from it when its lease is made to
    run out. Renewals are far apart, so that it happens when the test wants it to."""
    app.job("work")(work)
    other = farm.bare(lease_seconds=600.0)
    other.job("other")(work)
    async with app.running() as orchestrator, other.running():
        mine = next(p.id for p in await app.processes() if "work" in p.kinds)

        async def lapse() -> None:
            async def ended() -> bool:
                # Again and again: it may be renewed at any time, because its status has changed.
                farm.execute("UPDATE processes SET lease_until = 1 WHERE id = ?", mine)
                return mine not in {p.id for p in await app.processes()}

            await until(ended, "the membership to be ended by the other member")

        yield orchestrator, lapse


def completed(orchestrator: JobOrchestrator) -> int:
    return Tally.from_status(orchestrator.status).count("completed")


async def does_new_work(app: Penstock, orchestrator: JobOrchestrator) -> None:
    for _ in range(3):
        assert (await app.wait((await app.enqueue("work")).id, timeout=SOON)).result == "done"
    assert all(not worker.task.done() for worker in orchestrator.workers)
    assert len(await app.processes()) == 2


async def test_a_job_taken_back_while_its_old_run_still_cleans_up_is_recorded_once(
    farm: Farm,
) -> None:
    app = farm.bare(max_workers=3, lease_seconds=600.0)
    runs: list[int] = []
    leave, cleaned_up = asyncio.Event(), asyncio.Event()

    @app.job("slow_to_end")
    async def slow_to_end(ctx: JobContext) -> int:
        runs.append(ctx.attempt)
        try:
            await leave.wait()
        finally:
            if ctx.attempt == 1:
                await cleaned_up.wait()
        return ctx.attempt

    async with two_members(farm, app) as (orchestrator, lapse):
        job = await app.enqueue("slow_to_end")
        await until(lambda: runs == [1], "the first run")
        await lapse()
        await app.enqueue("work")  # a trip to the queue, from which it hears of its loss
        await until(lambda: runs == [1, 2], "the second run, beside the end of the first")
        cleaned_up.set()
        await until(lambda: orchestrator.status["busy"] == 1, "the first run to end")
        leave.set()
        done = await app.wait(job.id, timeout=SOON)
        assert (done.state, done.attempts, done.result) == (JobState.COMPLETED, 2, 2)
        await does_new_work(app, orchestrator)


async def test_counters_of_a_new_membership_start_again(farm: Farm) -> None:
    app = farm.bare(lease_seconds=600.0)
    async with two_members(farm, app) as (orchestrator, lapse):
        for _ in range(5):
            await app.wait((await app.enqueue("work")).id, timeout=SOON)
        await until(lambda: completed(orchestrator) == 5, "all to be counted")
        await lapse()
        await does_new_work(app, orchestrator)
        await until(lambda: completed(orchestrator) == 3, "what the new membership has done")


async def test_joining_again_outlasts_a_queue_that_cannot_be_reached(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = farm.bare(lease_seconds=600.0, reconnect_first_seconds=0.01)
    failures = 0
    async with two_members(farm, app) as (orchestrator, lapse):
        queue = app.queue
        assert isinstance(queue, SqliteQueue)
        reach = queue.change

        async def change(operation: Callable[[Any], Any], **options: Any) -> Any:
            # The membership's sign-off, and whatever follows it, fails a few times.
            nonlocal failures
            if getattr(operation, "__name__", "") == "_end" or failures:
                failures += 1
                if failures <= 4:
                    raise QueueUnavailable("gone for a moment")
            return await reach(operation, **options)

        monkeypatch.setattr(queue, "change", change)
        await lapse()
        await until(lambda: failures > 4, "the queue to be back")
        job = await app.enqueue("work")
        assert (await app.wait(job.id, timeout=SOON)).state is JobState.COMPLETED
        await does_new_work(app, orchestrator)


async def test_a_sign_off_that_fails_closes_no_file_twice_and_forgets_no_start(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with farm.bare() as app:
        queue = app.queue
        assert isinstance(queue, SqliteQueue)
        member = await queue.join(["work"], 1, 60.0)
        job = await app.enqueue("work")
        (lease,) = await claim(member, 1)
        member.mark_started(lease)

        async def write(operation: Callable[[Any], Any], **options: Any) -> Any:
            raise QueueUnavailable("gone for a moment")

        with monkeypatch.context() as patch:
            patch.setattr(queue, "write", write)
            with pytest.raises(QueueUnavailable):
                await member.leave()
        # Whoever opens a file now gets the number that the sign-off has given back.
        others = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
        try:
            await member.leave()
            for other in others:
                os.fstat(other)
        finally:
            for other in others:
                os.close(other)
        assert await app.processes() == []
        assert (await app.get(job.id)).attempts == 1


async def test_joining_again_outlasts_an_error_that_nobody_expected(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = farm.bare(lease_seconds=600.0, reconnect_first_seconds=0.01)
    failures = 0
    async with two_members(farm, app) as (orchestrator, lapse):
        queue = app.queue
        assert isinstance(queue, SqliteQueue)
        really_join = queue.join

        async def join(*arguments: Any) -> Any:
            nonlocal failures
            failures += 1
            if failures < 3:
                raise ZeroDivisionError("a bug, or a library's")
            return await really_join(*arguments)

        monkeypatch.setattr(queue, "join", join)
        await lapse()
        await app.enqueue("work")  # a trip to the queue, from which it hears of its loss
        await until(lambda: failures == 3, "the third try")
        await does_new_work(app, orchestrator)


async def test_an_answer_that_comes_when_the_process_has_joined_again_is_dropped(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = farm.bare(lease_seconds=600.0)
    leave, leased = asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    @app.job("once")
    async def once(ctx: JobContext) -> None:
        runs.append(ctx.attempt)

    async with two_members(farm, app) as (orchestrator, lapse):
        membership = orchestrator._engine.membership
        before = membership.member
        really_exchange, put = before.exchange, membership.claims.put

        async def late(*arguments: Any) -> Any:
            answer = await really_exchange(*arguments)
            if any(one.kind == "once" for one in answer.leases):
                leased.set()
                await leave.wait()
            return answer

        # Nothing is handed over: it is to be claimed.
        monkeypatch.setattr(before, "_stand", lambda *_: None)
        monkeypatch.setattr(before, "exchange", late)
        await app.enqueue("work")  # the trip after which nobody stands waiting
        job = await app.enqueue("once")
        async with asyncio.timeout(SOON):
            await leased.wait()
        await lapse()
        orchestrator._engine.events.lapsed.set()
        await until(lambda: membership.member is not before, "it to join again")
        taken: list[str] = []

        def noted(leases: Any) -> None:
            taken.extend(one.id for one in leases)
            put(leases)

        monkeypatch.setattr(membership.claims, "put", noted)
        leave.set()
        assert (await app.wait(job.id, timeout=SOON)).state is JobState.COMPLETED
        assert runs == [1], "only under the lease that it has"
        assert taken.count(job.id) == 1
        await does_new_work(app, orchestrator)


async def test_stopping_while_joining_again_ends_cleanly(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = farm.bare(lease_seconds=600.0)
    async with two_members(farm, app) as (orchestrator, lapse):
        queue = app.queue
        assert isinstance(queue, SqliteQueue)
        joining = asyncio.Event()

        async def join(*arguments: Any) -> Any:
            joining.set()
            raise QueueUnavailable("gone for a moment")

        monkeypatch.setattr(queue, "join", join)
        await lapse()
        async with asyncio.timeout(SOON):
            await joining.wait()
            job = await app.enqueue("work")
            await orchestrator.stop()
        assert not orchestrator.running
        assert (await app.get(job.id)).state is JobState.QUEUED
        monkeypatch.undo()
        await orchestrator.start()
        assert (await app.wait(job.id, timeout=SOON)).state is JobState.COMPLETED


async def test_a_process_does_not_take_its_own_jobs_for_lost(farm: Farm) -> None:
    # Its renewal is late (the machine slept, the file was locked), and nobody took over.
    app = farm.bare(lease_seconds=600.0)
    leave = asyncio.Event()
    runs: list[int] = []

    @app.job("long", max_retries=0)
    async def long(ctx: JobContext) -> str:
        runs.append(ctx.attempt)
        await leave.wait()
        return "done"

    app.job("work")(work)
    async with app, app.running():
        job = await app.enqueue("long")
        await until(lambda: runs, "the job to run")
        farm.execute("UPDATE processes SET lease_until = 1")
        for _ in range(3):
            assert (await app.wait((await app.enqueue("work")).id, timeout=SOON)).result == "done"
        leave.set()
        done = await app.wait(job.id, timeout=SOON)
        assert (done.state, done.attempts, done.result) == (JobState.COMPLETED, 1, "done")
        assert runs == [1]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
async def test_a_wakeup_that_cannot_be_sent_neither_fails_nor_repeats_what_was_stored(
    farm: Farm, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    app = farm.bare(poll_seconds=0.1)
    runs: list[str] = []
    broken = True
    pwrite = os.pwrite

    @app.job("work")
    async def counted(ctx: JobContext) -> None:
        runs.append(ctx.job.id)

    def failing_pwrite(fd: int, data: bytes, offset: int) -> int:
        if broken:
            raise OSError(code, os.strerror(code))
        return pwrite(fd, data, offset)

    async with app:
        async with app.running() as orchestrator:
            monkeypatch.setattr(os, "pwrite", failing_pwrite)
            async with asyncio.TaskGroup() as group:  # so that several share a transaction
                made = [group.create_task(app.enqueue("work")) for _ in range(20)]
            jobs = [task.result() for task in made]
            for job in jobs:
                assert (await app.wait(job.id, timeout=SOON)).state is JobState.COMPLETED
            assert orchestrator.degraded is None
            monkeypatch.undo()
        assert sorted(runs) == sorted(job.id for job in jobs)
        assert len(await app.jobs()) == 20
