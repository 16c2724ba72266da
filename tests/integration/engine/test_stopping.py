"""Families of jobs in real processes: killed, told to go, and stopped as a log."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.engine.listeners import CancelListener
from tests.conformance.support import BACKENDS
from tests.support.waiting import PATIENCE, look_on, until
from tests.support.worker_processes import Farm, WorkerProcess

LANES = {"mothers": {"min_interval_seconds": 0, "max_parallel": 2}}


@pytest.fixture(params=["sqlite", "postgres", "redis"])
async def home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Farm]:
    """A queue of each kind, and worker processes ended with the test."""
    farm = Farm(
        tmp_path, url=BACKENDS[request.param].url(tmp_path), lanes=LANES, lease_seconds=600.0
    )
    yield farm
    await farm.close()


async def all_parked(app: Penstock, worker: WorkerProcess, count: int) -> None:
    async def told() -> bool:
        mine = [process for process in await app.processes() if process.pid == worker.pid]
        return bool(mine) and mine[0].status.get("parked") == count

    await until(told, f"{count} to be parked")


async def sons(app: Penstock) -> list[Job]:
    return await app.jobs(kind="son", limit=1_000_000)


async def test_job_that_is_killed_while_it_waits_makes_no_second_children(home: Farm) -> None:
    """With one worker: the son has a crash on record, the mother, who only waited, has none."""
    async with home.app("family") as app:
        victim = await home.start("family", max_workers=1)
        mother = await app.enqueue("mother", {"gate": str(home.gate)})
        await until(lambda: home.side.notes(kind="son"), "a son to run in its place")
        before = {job.id for job in await sons(app)}
        await victim.kill()
        await home.start("family", max_workers=1)
        home.gate.touch()
        done = await app.wait(mother.id, timeout=60)
        assert (done.state, done.result, done.attempts) == (JobState.COMPLETED, [0, 1, 2], 1)
        assert {job.id for job in await sons(app)} == before
        assert sorted(home.side.runs("son").values()) == [1, 1, 2]


async def test_sigterm_does_not_wait_for_jobs_that_wait(home: Farm) -> None:
    async with home.app("family") as app:
        # What it says of itself goes with its lease.
        options: dict[str, Any] = {"grace_seconds": 600, "lease_seconds": 6.0}
        worker = await home.start("family", kinds=["mother"], **options)
        mothers = [await app.enqueue("mother", {"gate": str(home.gate)}) for _ in range(2)]
        await all_parked(app, worker, 2)
        worker.send(signal.SIGTERM)
        assert await worker.exit(PATIENCE) == 0
        for mother in mothers:
            row = await app.get(mother.id)
            assert (row.state, row.attempts, row.history) == (JobState.QUEUED, 0, [])

        home.gate.touch()
        await home.start("family")
        for mother in mothers:
            assert (await app.wait(mother.id, timeout=60)).result == [0, 1, 2]
        assert len(await sons(app)) == 6


async def test_lane_of_jobs_that_wait_holds_over_all_processes(home: Farm) -> None:
    async with home.app("family") as app:
        workers = [await home.start("family") for _ in range(2)]
        mothers = [await app.enqueue("mother", {"gate": str(home.gate)}) for _ in range(5)]
        await until(lambda: len(home.side.notes(kind="mother")) == 2, "two to begin")
        await look_on(0.5)
        assert len(home.side.notes(kind="mother")) == 2
        home.gate.touch()
        for mother in mothers:
            assert (await app.wait(mother.id, timeout=60)).result == [0, 1, 2]
        assert len(workers) == 2


async def begin(home: Farm, app: Penstock) -> tuple[list[Job], Job]:
    """Jobs of the log "paper", half of them running, and one of another log."""
    await home.start("family", max_workers=3)
    jobs = await app.enqueue_many("son", [_son(home, n) for n in range(2)], log="paper")
    other = await app.enqueue("son", _son(home, 9), log="other")
    await until(lambda: len(home.side.notes()) == 3, "them to run")
    return jobs + await app.enqueue_many("son", [_son(home, 5)] * 3, log="paper"), other


def _son(home: Farm, n: int) -> dict[str, Any]:
    return {"n": n, "gate": str(home.gate)}


async def states(app: Penstock, jobs: list[Job]) -> list[JobState]:
    return [(await app.get(job.id)).state for job in jobs]


async def test_graceful_stop_lets_running_jobs_store_their_results(home: Farm) -> None:
    async with home.app("family") as app:
        jobs, other = await begin(home, app)

        assert await app.stop_log("paper") == (3, 2)
        assert await states(app, jobs) == [JobState.RUNNING] * 2 + [JobState.CANCELLED] * 3

        home.gate.touch()
        assert [(await app.wait(job.id, timeout=60)).result for job in jobs[:2]] == [0, 1]
        assert (await app.wait(other.id, timeout=60)).result == 9
        await app.drain(timeout=PATIENCE)
        await app.reopen_log("paper")
        more = await app.enqueue("son", _son(home, 7), log="paper")
        assert (await app.wait(more.id, timeout=60)).result == 7


async def test_whole_stop_lets_a_job_finish_with_its_children(home: Farm) -> None:
    async with home.app("family") as app:
        await home.start("family", max_workers=2)
        mother = await app.enqueue("mother", {"gate": str(home.gate)}, log="paper")
        await until(lambda: len(home.side.notes(kind="son")) == 2, "two sons to run")
        others = await app.enqueue_many("son", [_son(home, 5)] * 2, log="paper")

        assert await app.stop_log("paper", whole=True) == (2, 4)

        home.gate.touch()
        assert (await app.wait(mother.id, timeout=60)).result == [0, 1, 2]
        assert await states(app, others) == [JobState.CANCELLED] * 2
        await app.drain(timeout=PATIENCE)


async def test_immediate_stop_ends_running_jobs_at_once_and_workers_go_on(home: Farm) -> None:
    async with home.app("family") as app:
        jobs, other = await begin(home, app)

        assert await app.stop_log("paper", running=True) == (5, 0)

        assert await states(app, jobs) == [JobState.CANCELLED] * 5
        assert (await app.get(other.id)).state is JobState.RUNNING
        # The gate is closed: only workers that were interrupted are free to run these.
        more = [await app.enqueue("child", {"n": n}, log="other") for n in range(3)]
        assert [(await app.wait(job.id, timeout=60)).result for job in more] == [0, 1, 2]
        home.gate.touch()
        assert (await app.wait(other.id, timeout=60)).result == 9
        await app.drain(timeout=PATIENCE)
        assert {(await app.get(job.id)).result for job in jobs} == {None}


async def test_jobs_that_fan_out_are_stopped_in_the_middle_of_it(home: Farm) -> None:
    """The stop is graceful; what they enqueue next is refused, and they are not tried again."""
    async with home.app("family") as app:
        await home.start("family", kinds=["fertile"])
        await home.start("family", kinds=["fertile"])
        parents = await app.enqueue_many("fertile", [{"gate": str(home.gate)}] * 4, log="paper")

        async def fruitful() -> bool:
            return len(await sons(app)) >= 50

        await until(lambda: len(home.side.notes(kind="fertile")) == 4, "all to begin")
        await until(fruitful, "fifty sons")
        outcome = await app.stop_log("paper")
        assert outcome.running == 4
        for parent in parents:
            ended = await app.wait(parent.id, timeout=60)
            assert ended.state is JobState.CANCELLED
            assert ended.error is not None
            assert ended.error.type == "LogStopped"
        found = await sons(app)
        assert len(found) == outcome.cancelled
        assert {job.state for job in found} == {JobState.CANCELLED}
        assert home.side.runs("fertile") == {parent.id: 1 for parent in parents}
        await app.drain(timeout=PATIENCE)


async def test_job_that_fails_after_a_graceful_stop_is_not_tried_again(home: Farm) -> None:
    async with home.app("family") as app:
        await home.start("family")
        flawed = await app.enqueue("flawed", {"gate": str(home.gate)}, log="paper")
        other = await app.enqueue("flawed", {"gate": str(home.gate)}, log="other")
        await until(lambda: len(home.side.notes()) == 2, "them to run")
        await app.stop_log("paper")
        home.gate.touch()
        assert (await app.wait(flawed.id, timeout=60)).state is JobState.CANCELLED
        assert (await app.wait(other.id, timeout=60)).state is JobState.FAILED
        assert home.side.runs() == {flawed.id: 1, other.id: 6}


async def test_whoever_follows_a_task_hears_of_its_stop(home: Farm) -> None:
    async with home.app("family") as app, home.app("family") as elsewhere:
        await app.enqueue("son", _son(home, 1), log="paper")
        waiting = asyncio.create_task(elsewhere.changes("paper", since=1, wait=PATIENCE))
        feeding = asyncio.create_task(
            elsewhere.feed(wait=PATIENCE, after=(await app.feed())[-1].position)
        )
        await asyncio.sleep(0)
        await app.stop_log("paper")
        assert [change.what for change in await waiting] == ["cancelled", "stopped"]
        assert (await feeding)[0].change.what == "cancelled"


@pytest.mark.parametrize("fails", [False, True])
async def test_cancelling_what_runs_is_no_warning(
    farm: Farm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    """Also where a run ends before it hears of it, so that its outcome is refused."""
    caplog.set_level(logging.INFO, "penstock")

    async def deaf(self: CancelListener) -> None:
        return None

    monkeypatch.setattr(CancelListener, "_look", deaf)
    app = farm.bare()

    @app.job("work", max_retries=0)
    async def work(ctx: JobContext) -> int:
        await app.stop_log("paper", running=True)
        if fails:
            raise ValueError("too late to matter")
        return 1

    async with app, app.running():
        job = await app.enqueue("work", log="paper")
        assert (await app.wait(job.id, timeout=60)).state is JobState.CANCELLED
        await until(lambda: "cancelled while its run ended" in caplog.text, "the end of the run")
    told = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    # A machine that stands still for a while is said to have blocked it.
    assert [text for text in told if "the event loop" not in text] == []
