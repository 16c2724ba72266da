"""SIGKILL with jobs queued, prefetched and running."""

import signal
from collections import Counter

from penstock import Job, JobState, Penstock
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm, Held, WorkerProcess

JOBS = 2000
KILLS = 4


async def count(app: Penstock, state: JobState) -> int:
    return sum(kind.states.get(state, 0) for kind in await app.counts())


async def enqueue(app: Penstock, count: int) -> list[Job]:
    return await app.enqueue_many("work", [{"n": n, "seconds": 0.01} for n in range(count)])


async def freeze_while_prefetching(
    farm: Farm, app: Penstock, worker: WorkerProcess, jobs: list[Job]
) -> Held:
    """Stop `worker` at a moment when it runs jobs and holds others it claimed ahead, and more are
    queued. Those who work on may have done all by then: there are more for the next try."""

    async def caught() -> Held | None:
        await farm.freeze(worker)
        held = farm.held(worker)
        left = await count(app, JobState.QUEUED)
        if held.started and held.waiting and left:
            return held
        worker.send(signal.SIGCONT)
        if left < JOBS / 10:
            jobs.extend(await enqueue(app, JOBS // 2))
        return None

    return await until(caught, "jobs that run and jobs claimed ahead")


async def test_every_job_is_recorded_once_though_a_worker_is_killed_again_and_again(
    farm: Farm,
) -> None:
    farm.settings["lease_seconds"] = (
        600.0  # who is frozen, or stands still by itself, keeps its jobs
    )
    crashes: Counter[str] = Counter()
    only_prefetched: set[str] = set()
    async with farm.app() as app:
        jobs = await enqueue(app, JOBS)
        victim = await farm.start()
        await farm.start()
        for kill in range(1, KILLS + 1):
            done = kill * JOBS // (KILLS + 2)

            async def enough(done: int = done) -> bool:
                return await count(app, JobState.COMPLETED) >= done

            await until(enough, f"{done} jobs to be done")
            held = await freeze_while_prefetching(farm, app, victim, jobs)
            crashes.update(held.started)
            only_prefetched |= held.waiting
            await victim.kill()
            victim = await farm.start()
        await app.drain(timeout=PATIENCE)
        rows = await app.jobs(limit=len(jobs) + 1)

    assert {job.id for job in rows} == {job.id for job in jobs}
    assert {job.state for job in rows} == {JobState.COMPLETED}
    only_prefetched -= crashes.keys()
    assert len(crashes) >= KILLS
    assert len(only_prefetched) >= KILLS
    runs = farm.side.runs()
    for job in rows:
        lost = crashes[job.id]
        assert job.attempts == 1 + lost <= 6
        assert job.result["attempt"] == job.attempts
        assert [record.outcome for record in job.history] == ["lost"] * lost
        assert [record.error.type for record in job.history] == ["WorkerLost"] * lost
        # A handler that was frozen in its very first step has spent its attempt unseen.
        assert 1 <= runs[job.id] <= job.attempts
    assert all(runs[job_id] == 1 for job_id in only_prefetched)


async def test_what_a_killed_worker_held_is_taken_over_long_before_its_lease_ends(
    farm: Farm,
) -> None:
    farm.settings["lease_seconds"] = 600.0
    gate = farm.folder / "gate"
    async with farm.app() as app:
        jobs = await app.enqueue_many("gated", [{"gate": str(gate)}] * 4)
        victim = await farm.start()
        await until(lambda: len(farm.side.notes()) == 4, "four jobs to run")
        await victim.kill()
        gate.touch()
        await farm.start()
        await app.drain(timeout=PATIENCE)
        rows = [await app.get(job.id) for job in jobs]
    assert [job.attempts for job in rows] == [2] * 4
    assert farm.side.runs() == {job.id: 2 for job in jobs}


async def test_a_killed_enqueuer_loses_no_batch_it_was_told_of_and_leaves_no_half_one(
    farm: Farm,
) -> None:
    options = {"url": farm.url, "acknowledged": str(farm.folder / "acknowledged"), "size": 500}
    acknowledged = farm.folder / "acknowledged"
    for kill in range(1, 4):
        enqueuer = await farm.run("tests.support.enqueuer", options)

        def told(batches: int = 5 * kill) -> bool:
            return acknowledged.exists() and len(acknowledged.read_text().split()) >= batches

        await until(told, "some batches to be accepted")
        await enqueuer.kill()
    stored = Counter(log for (log,) in farm.query("SELECT log FROM jobs"))
    assert set(acknowledged.read_text().split()) <= stored.keys()
    assert set(stored.values()) == {500}


async def test_jobs_with_a_crash_on_their_record_follow_each_other_without_a_pause(
    farm: Farm,
) -> None:
    # No look at the queue without a reason: the next one must be taken when the last one ends.
    farm.settings.update(poll_seconds=600.0, lease_seconds=600.0)
    gate = farm.folder / "gate"
    async with farm.app() as app:
        jobs = await app.enqueue_many("gated", [{"gate": str(gate)}] * 4)
        victim = await farm.start()
        await until(lambda: len(farm.side.notes()) == 4, "four jobs to run")
        await victim.kill()
        gate.touch()
        await farm.start()
        for job in jobs:
            done = await app.wait(job.id, timeout=PATIENCE)
            assert (done.state, done.attempts) == (JobState.COMPLETED, 2)
