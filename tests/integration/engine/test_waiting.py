"""Whoever waits is told: of success, failure and cancel, here and in other processes."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock import JobState, Penstock
from penstock.engine import waiters
from penstock.errors import JobNotFound, QueueError, WaitTimeout
from penstock.types import Change
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SOON = 60.0
"""Seconds in which a wake-up must arrive; far less than any of the polling set up here."""


@pytest.fixture(params=["inotify", "polling"])
def wakeups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How processes hear of each other. A look without a wake-up would come too late to help."""
    if request.param == "polling":
        monkeypatch.setenv("PENSTOCK_NO_INOTIFY", "1")
    monkeypatch.setattr(waiters, "LOST_WAKEUP_SECONDS", 600.0)
    return str(request.param)


@pytest.fixture(params=["same process", "other process"])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def worker(farm: Farm, where: str) -> AsyncIterator[Penstock]:
    """An app, and a worker for it here or in another process."""
    farm.settings["poll_seconds"] = 600.0
    app = farm.app("endings")
    async with app:
        if where == "same process":
            async with app.running():
                yield app
        else:
            await farm.start("endings")
            yield app


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
async def test_two_hundred_waiters_on_one_job_are_all_told(
    farm: Farm, where: str, wakeups: str, ending: str
) -> None:
    async with worker(farm, where) as app:
        job = await app.enqueue("ends", {"gate": str(farm.gate), "ending": ending})
        waiting = [asyncio.create_task(app.wait(job.id, timeout=60)) for _ in range(200)]
        await until(farm.side.notes, "the job to run")
        assert not any(task.done() for task in waiting)
        if ending == "cancelled":
            await app.cancel(job.id)
        else:
            farm.gate.touch()
        async with asyncio.timeout(SOON):
            told = await asyncio.gather(*waiting)
        assert {job.state.value for job in told} == {ending}
        assert told == [await app.get(job.id)] * 200


async def test_waiters_in_other_processes_than_the_worker_and_the_canceller_are_told(
    farm: Farm, wakeups: str
) -> None:
    farm.settings["poll_seconds"] = 600.0
    async with farm.app("endings") as waiter, farm.app("endings") as canceller:
        await farm.start("endings")
        job = await canceller.enqueue("ends", {"gate": str(farm.gate), "ending": "completed"})
        await until(farm.side.notes, "the job to run")
        waiting = asyncio.create_task(waiter.wait(job.id, timeout=60))
        await asyncio.sleep(0)
        await canceller.cancel(job.id)
        async with asyncio.timeout(SOON):
            assert (await waiting).state is JobState.CANCELLED


async def test_each_of_many_jobs_wakes_its_own_waiters(farm: Farm, where: str) -> None:
    async with worker(farm, where) as app:
        endings = ["completed", "failed"] * 50
        jobs = [await app.enqueue("ends_now", {"ending": ending}) for ending in endings]
        async with asyncio.timeout(60):
            told = await asyncio.gather(
                *(app.wait(job.id) for job in jobs), *(app.wait(job.id) for job in jobs)
            )
    assert [job.id for job in told] == [job.id for job in jobs] * 2
    assert [job.state.value for job in told] == endings * 2


async def test_a_job_buried_by_a_crash_wakes_its_waiters(farm: Farm, wakeups: str) -> None:
    farm.settings.update(poll_seconds=600.0, lease_seconds=600.0)
    async with farm.app("endings") as app:
        job = await app.enqueue("once", {"gate": str(farm.gate)})
        victim = await farm.start("endings")
        await until(farm.side.notes, "the job to run")
        await farm.start("endings")
        waiting = asyncio.create_task(app.wait(job.id, timeout=60))
        await victim.kill()
        async with asyncio.timeout(SOON):
            done = await waiting
        assert (done.state, done.attempts) == (JobState.FAILED, 1)
        assert done.error is not None
        assert done.error.type == "WorkerLost"


async def test_a_job_whose_deadline_passes_in_the_queue_wakes_its_waiters(farm: Farm) -> None:
    async with farm.app("endings") as app:
        await farm.start("endings", kinds=["once"])
        job = await app.enqueue("ends_now", {"ending": "completed"}, deadline=time.time() + 0.3)
        done = await app.wait(job.id, timeout=SOON)
        assert (done.state, done.attempts) == (JobState.FAILED, 0)
        assert done.error is not None
        assert done.error.type == "DeadlineExceeded"


async def test_an_unknown_job_is_not_found_at_once(farm: Farm) -> None:
    async with farm.app("endings") as app:
        async with asyncio.timeout(SOON):
            with pytest.raises(JobNotFound):
                await app.wait("0" * 32, timeout=300)
            with pytest.raises(JobNotFound):
                await app.wait("no such id", timeout=None)


async def test_a_job_that_has_ended_is_returned_at_once(farm: Farm) -> None:
    async with worker(farm, "same process") as app:
        job = await app.enqueue("ends_now", {"ending": "completed"})
        await app.wait(job.id, timeout=SOON)
        async with asyncio.timeout(SOON):
            for _ in range(20):
                assert (await app.wait(job.id, timeout=300)).state is JobState.COMPLETED


async def test_a_wait_that_times_out_leaves_job_and_other_waiters_alone(farm: Farm) -> None:
    async with worker(farm, "same process") as app:
        job = await app.enqueue("ends", {"gate": str(farm.gate), "ending": "completed"})
        patient = asyncio.create_task(app.wait(job.id, timeout=60))
        with pytest.raises(WaitTimeout):
            await app.wait(job.id, timeout=0.05)
        gone = asyncio.create_task(app.wait(job.id, timeout=60))
        await asyncio.sleep(0)
        gone.cancel()
        farm.gate.touch()
        async with asyncio.timeout(SOON):
            assert (await patient).state is JobState.COMPLETED


async def test_a_waiter_that_comes_as_the_last_one_leaves_is_served(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The loop that serves waiters ends with the last of them. Come at every step of its end.
    monkeypatch.setattr(waiters, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(waiters, "PAUSE_PER_WAITER", 0.0)
    async with worker(farm, "same process") as app:
        job = await app.enqueue("ends_now", {"ending": "completed"})
        for steps in range(20):
            await app.wait(job.id, timeout=SOON)
            for _ in range(steps):
                await asyncio.sleep(0)
            done = await app.wait(job.id, timeout=SOON)
            assert done.state is JobState.COMPLETED, f"{steps} steps after the last one"


async def test_waiting_goes_on_when_the_app_is_closed_and_opened_again(farm: Farm) -> None:
    app = farm.app("endings")
    for _ in range(2):
        async with app, app.running():
            job = await app.enqueue("ends_now", {"ending": "completed"})
            assert (await app.wait(job.id, timeout=SOON)).state is JobState.COMPLETED


async def test_a_log_is_followed_from_another_process_without_a_gap(
    farm: Farm, where: str, wakeups: str
) -> None:
    async with worker(farm, where) as app:
        seen: list[Change] = []

        async def follow() -> None:
            while sum(change.what in ("completed", "failed") for change in seen) < 30:
                since = seen[-1].version if seen else 0
                seen.extend(await app.changes("log-1", since, wait=60))

        following = asyncio.create_task(follow())
        jobs = [
            await app.enqueue("ends_now", {"ending": ["completed", "failed"][n % 2]}, log="log-1")
            for n in range(30)
        ]
        async with asyncio.timeout(60):
            await following
    assert [change.version for change in seen] == list(range(1, len(seen) + 1))
    for n, job in enumerate(jobs):
        whats = [change.what for change in seen if change.job_id == job.id]
        assert whats == ["queued", ["completed", "failed"][n % 2]]


async def test_waiting_for_a_quiet_log_ends_in_time_with_nothing(farm: Farm) -> None:
    async with farm.app("endings") as app:
        assert await app.changes("quiet", 0, wait=0.1) == []
        await app.enqueue("ends_now", {"ending": "completed"}, log="loud")
        (change,) = await app.changes("loud", 0, wait=60)
        assert (change.what, change.version) == ("queued", 1)
        assert await app.changes("loud", 1, wait=0.1) == []


async def test_drain_returns_when_another_process_has_done_the_last_job(
    farm: Farm, wakeups: str
) -> None:
    async with worker(farm, "other process") as app:
        job = await app.enqueue("ends", {"gate": str(farm.gate), "ending": "completed"})
        await until(farm.side.notes, "the job to run")
        draining = asyncio.create_task(app.drain(timeout=SOON))
        with pytest.raises(WaitTimeout):
            await app.drain(timeout=0.1)
        farm.gate.touch()
        async with asyncio.timeout(SOON):
            await draining
        assert (await app.get(job.id)).state is JobState.COMPLETED


async def test_queue_is_closed_though_those_who_wait_cannot_be_told(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = farm.bare()

    async def close() -> None:
        raise RuntimeError("as nobody expects")

    with pytest.raises(RuntimeError):
        async with app:
            monkeypatch.setattr(app._waiters, "close", close)
    with pytest.raises(QueueError, match="not open"):
        await app.queue.counts()
