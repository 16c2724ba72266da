"""Long polls on research tasks: every change is told, to everybody, and nobody waits in vain."""

from __future__ import annotations

import asyncio
import time

import pytest

from penstock import Penstock
from penstock.errors import TaskNotFound
from penstock.research.job_ids import SEARCH, log_of
from tests.support.counting_server import Answer
from tests.support.provider_server import PATHS
from tests.support.research import SOON, Bureau, asked, finished
from tests.support.waiting import until

AT_ONCE = 30.0
"""Far less than the waits asked for."""


def polls(app: Penstock) -> int:
    """How many wait for a change now."""
    return sum(map(len, app.research._snapshots._waiting.values()))


async def test_unknown_and_finished_tasks_are_answered_at_once(bureau: Bureau) -> None:
    async with bureau.running() as app, asyncio.timeout(SOON):
        with pytest.raises(TaskNotFound):
            await app.research.status("0" * 32, wait=300.0)
        task = await asked(app, "water wheels")
        done = await finished(app, task)
        view = await app.research.status(task, wait=300.0, since=done.version)
        assert (view.status, view.next_poll) == ("completed", None)


async def test_wait_ends_with_the_first_change(bureau: Bureau) -> None:
    async with bureau.idle() as app, asyncio.timeout(SOON):
        task = await asked(app)
        waiting = asyncio.create_task(app.research.status(task, wait=300.0))
        await until(lambda: polls(app) == 1, "it waits")
        await app.research.queue_searches(task, ["water wheels"])
        view = await waiting
        assert view.progress == "0/1"
        assert view.waiting_for == (f"a worker process that handles kind {SEARCH!r}",)
        # What changed before the call is told at once.
        again = await app.research.status(task, wait=300.0, since=0)
        assert again.version == view.version


async def test_wait_without_a_change_ends_in_time(bureau: Bureau) -> None:
    async with bureau.idle() as app:
        task = await asked(app, "water wheels")
        view = await app.research.status(task)
        begun = time.monotonic()
        same = await app.research.status(task, wait=0.3, since=view.version)
        assert 0.3 <= time.monotonic() - begun < AT_ONCE
        assert same.version == view.version


async def test_failure_stop_resume_and_cancel_all_wake(bureau: Bureau) -> None:
    for name in PATHS:
        bureau.site.faults[name] = Answer(400)
    async with bureau.idle() as app, asyncio.timeout(SOON):
        task = await asked(app, "water wheels")

        async def change(doing: object) -> str:
            since = (await app.research.status(task)).version
            waiting = asyncio.create_task(app.research.status(task, wait=300.0, since=since))
            await until(lambda: polls(app) == 1, "it waits")
            await doing  # type: ignore[misc]
            view = await waiting
            assert view.version > since
            return view.status

        assert await change(app.research.stop(task)) == "paused"
        assert await change(app.research.resume(task)) == "running"
        (job,) = await app.jobs(log=log_of(task), states=["queued"])
        assert await change(app.cancel(job.id)) == "running"
    async with bureau.running() as app:
        failed = await finished(app, await asked(app, "mills"))
        assert failed.status == "failed"
        # The reconciler notices that nobody works on the other one.
        mended = await finished(app, task)
        assert mended.status == "failed"
        assert "cancelled" in str(mended.searches[0].reason)


async def test_two_clients_miss_no_change(bureau: Bureau) -> None:
    """Each follows by `since` alone while the log moves on as fast as it can: both see its end,
    neither sees a version twice or one that is older."""
    async with bureau.idle() as app:
        task = await asked(app)
        end = 300

        async def follow() -> list[int]:
            seen = [0]
            while seen[-1] < end:
                view = await app.research.status(task, wait=60.0, since=seen[-1])
                seen.append(view.version)
            return seen

        async def move() -> None:
            for number in range(end):
                await app.queue.note("default", log_of(task), "test", {"number": number})
                if number % 7 == 0:
                    await asyncio.sleep(0.005)

        async with asyncio.timeout(SOON):
            first, second, _ = await asyncio.gather(follow(), follow(), move())
        for seen in (first, second):
            assert seen == sorted(set(seen))
            assert seen[-1] == end


async def test_change_made_by_another_process_is_told(bureau: Bureau) -> None:
    async with bureau.idle() as app:
        task = await asked(app, "water wheels")
        await bureau.farm.start("researching")
        view = await finished(app, task)
        assert (view.status, view.errors) == ("completed", ())


async def test_whoever_leaves_a_wait_cancels_nothing(bureau: Bureau) -> None:
    async with bureau.idle() as app:
        task = await asked(app, "water wheels")
        waits = [asyncio.create_task(app.research.status(task, wait=300.0)) for _ in range(20)]
        await until(lambda: polls(app) == 20, "all wait")
        for one in waits[:10]:
            one.cancel()
        await bureau.farm.start("researching")
        left = await asyncio.gather(*waits[10:])
        assert {view.task_id for view in left} == {task}
        assert (await finished(app, task)).status == "completed"


async def test_many_waiters_share_one_read(bureau: Bureau) -> None:
    async with bureau.idle() as app, asyncio.timeout(SOON):
        task = await asked(app, "water wheels")
        since = (await app.research.status(task)).version
        reads = 0
        store = app.research._tools.store
        record = store.record

        async def counted(*names: str) -> object:
            nonlocal reads
            reads += 1
            return await record(*names)

        store.record = counted  # type: ignore[assignment,method-assign]
        waits = [
            asyncio.create_task(app.research.status(task, wait=60.0, since=since))
            for _ in range(500)
        ]
        await until(lambda: polls(app) == 500, "all wait")
        before = reads
        await app.queue.note("default", log_of(task), "test", {})
        views = await asyncio.gather(*waits)
        assert {view.version for view in views} == {since + 1}
        assert reads - before <= 3
