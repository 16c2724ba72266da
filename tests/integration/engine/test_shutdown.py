"""SIGTERM: running jobs finish, prefetched ones go back, nothing is lost or charged."""

import asyncio
import signal
import time

import pytest

from penstock import Job, JobState, Penstock
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

QUICK = 40
GATED = 30


async def states(app: Penstock, jobs: list[Job]) -> list[JobState]:
    return [(await app.get(job.id)).state for job in jobs]


async def prefetch_gated(farm: Farm, app: Penstock, gate: str) -> list[Job]:
    """A worker process that runs four gated jobs and holds the others it claimed ahead."""
    # Prefetching grows while jobs are short.
    await app.enqueue_many("work", [{"n": n} for n in range(QUICK)])
    await app.drain(timeout=PATIENCE)
    jobs = await app.enqueue_many("gated", [{"gate": gate}] * GATED)

    async def held() -> bool:
        return (await states(app, jobs)).count(JobState.RUNNING) > 4

    await until(held, "jobs to be claimed ahead")
    await until(lambda: len(farm.side.notes(kind="gated")) == 4, "four jobs to run")
    return jobs


async def test_sigterm_lets_running_jobs_finish_and_hands_back_the_rest(farm: Farm) -> None:
    gate = farm.folder / "gate"
    async with farm.app() as app:
        worker = await farm.start(grace_seconds=600, prefetch_seconds=600)
        jobs = await prefetch_gated(farm, app, str(gate))
        worker.send(signal.SIGTERM)

        async def handed_back() -> bool:
            return (await states(app, jobs)).count(JobState.QUEUED) == GATED - 4

        await until(handed_back, "prefetched jobs to go back while others still run")
        assert (await states(app, jobs)).count(JobState.RUNNING) == 4
        gate.touch()
        assert await worker.exit() == 0

        rows = [await app.get(job.id) for job in jobs]
        finished = [job for job in rows if job.state is JobState.COMPLETED]
        waiting = [job for job in rows if job.state is JobState.QUEUED]
        assert (len(finished), len(waiting)) == (4, GATED - 4)
        assert {(job.attempts, len(job.history)) for job in finished} == {(1, 0)}
        assert {(job.attempts, len(job.history)) for job in waiting} == {(0, 0)}
        assert farm.side.runs("gated") == {job.id: 1 for job in finished}
        assert await app.processes() == []

        # What went back keeps its place in line: a new worker runs it in the old order.
        await farm.start(max_workers=1)
        await app.drain(timeout=PATIENCE)
        order = [note.job for note in farm.side.notes(kind="gated")][4:]
        assert order == [job.id for job in waiting]


@pytest.mark.parametrize("kind", ["gated", "gated_thread"])
async def test_past_the_grace_a_running_job_is_handed_back_with_its_attempt(
    farm: Farm, kind: str
) -> None:
    gate = farm.folder / "gate"
    async with farm.app() as app:
        job = await app.enqueue(kind, {"gate": str(gate)})
        worker = await farm.start(grace_seconds=0.3)
        await until(farm.side.notes, "the job to run")
        worker.send(signal.SIGTERM)
        assert await worker.exit() == 0
        row = await app.get(job.id)
        assert (row.state, row.attempts, row.history) == (JobState.QUEUED, 0, [])
        gate.touch()
        other = await farm.start()
        done = await app.wait(job.id, timeout=60)
        assert done.result == {"attempt": 1, "pid": other.pid}
        assert farm.side.runs() == {job.id: 2}


async def test_leases_are_renewed_for_as_long_as_the_grace_lasts(farm: Farm) -> None:
    lease = 5.0
    farm.settings |= {"lease_seconds": lease, "grace_seconds": 600}
    gate = farm.folder / "gate"
    async with farm.app() as app:
        job = await app.enqueue("gated", {"gate": str(gate)})
        stopping = await farm.start()
        await until(farm.side.notes, "the job to run")
        await farm.start()
        stopping.send(signal.SIGTERM)
        asked = time.time()

        async def a_lease_later() -> bool:
            lease_until = [p.lease_until for p in await app.processes() if p.pid == stopping.pid]
            assert lease_until, "the stopping process lost its membership"
            return lease_until[0] > asked + 2 * lease

        await until(a_lease_later, "renewals during the grace")
        gate.touch()
        done = await app.wait(job.id, timeout=60)
        assert done.result == {"attempt": 1, "pid": stopping.pid}
        assert (done.attempts, done.history) == (1, [])
        assert await stopping.exit() == 0
        assert farm.side.runs() == {job.id: 1}


async def test_a_second_sigterm_ends_the_grace(farm: Farm) -> None:
    gate = farm.folder / "gate"
    async with farm.app() as app:
        jobs = await app.enqueue_many("gated", [{"gate": str(gate)}] * 3)
        # A heartbeat every 2 s tells that it stops.
        worker = await farm.start(grace_seconds=600, lease_seconds=6.0)
        await until(lambda: len(farm.side.notes()) == 3, "the jobs to run")
        worker.send(signal.SIGTERM)

        async def draining() -> bool:
            return [p.status.get("draining") for p in await app.processes()] == [True]

        await until(draining, "the stop to begin")
        assert worker.returncode is None
        worker.send(signal.SIGTERM)
        assert await worker.exit() == 0
        rows = [await app.get(job.id) for job in jobs]
        assert {(job.state, job.attempts) for job in rows} == {(JobState.QUEUED, 0)}


async def test_stopping_under_load_again_and_again_loses_and_charges_nothing(farm: Farm) -> None:
    async with farm.app() as app:
        jobs = await app.enqueue_many("work", [{"n": n, "seconds": 0.01} for n in range(1000)])
        for stop in range(1, 4):
            worker = await farm.start(grace_seconds=600)

            def enough(runs: int = stop * 250) -> bool:
                return len(farm.side.notes()) >= runs

            await until(enough, "some jobs to run")
            worker.send(signal.SIGTERM)
            assert await worker.exit() == 0
            rows = await app.jobs(limit=1001)
            assert {job.state for job in rows} <= {JobState.QUEUED, JobState.COMPLETED}
            assert all(job.attempts == (job.state is JobState.COMPLETED) for job in rows)
        await farm.start()
        await app.drain(timeout=PATIENCE)
        rows = await app.jobs(limit=1001)
    assert {(job.state, job.attempts, len(job.history)) for job in rows} == {
        (JobState.COMPLETED, 1, 0)
    }
    assert farm.side.runs() == {job.id: 1 for job in jobs}


async def test_stop_in_the_middle_of_enqueueing_loses_nothing(farm: Farm) -> None:
    app = farm.app()
    accepted: list[Job] = []
    async with app, app.running() as orchestrator:

        async def enqueue() -> None:
            for n in range(200):
                job = await app.enqueue("work", {"n": n})
                accepted.append(job)

        enqueuing = asyncio.create_task(enqueue())
        await until(lambda: len(accepted) > 20, "some jobs")
        await orchestrator.stop()
        await enqueuing
        rows = await app.jobs(limit=300)
    assert {job.id for job in rows} == {job.id for job in accepted}
    assert len(rows) == 200
    assert {job.state for job in rows} <= {JobState.QUEUED, JobState.COMPLETED}
    assert all(job.attempts == (job.state is JobState.COMPLETED) for job in rows)
    assert set(farm.side.runs().values()) <= {1}
