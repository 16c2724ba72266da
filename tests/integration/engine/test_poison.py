"""A job that kills its process buries itself and nobody else."""

import asyncio
import signal

import pytest

from penstock import JobState
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

HARMLESS = 200


@pytest.mark.parametrize(
    ("kind", "ending"),
    [("killed", -signal.SIGKILL), ("exits", 3), ("segfaults", -signal.SIGSEGV)],
)
async def test_a_job_that_kills_its_process_is_the_only_dead_letter(
    farm: Farm, kind: str, ending: int
) -> None:
    endings: list[int] = []
    async with farm.app("deadly") as app:
        harmless = [{"n": n} for n in range(HARMLESS // 2)]
        await app.enqueue_many("harmless", harmless)
        deadly = await app.enqueue(kind)
        await app.enqueue_many("harmless", harmless)

        async def keep_a_worker_running() -> None:
            while True:
                worker = await farm.start("deadly")
                endings.append(await worker.exit(timeout=60))

        supervisor = asyncio.create_task(keep_a_worker_running())
        try:
            await app.drain(timeout=PATIENCE)
        finally:
            supervisor.cancel()
            await asyncio.gather(supervisor, return_exceptions=True)
        rows = await app.jobs(kind="harmless", limit=HARMLESS + 1)
        letters = await app.dead_letters()

    assert endings == [ending] * 4
    assert [letter.id for letter in letters] == [deadly.id]
    (letter,) = letters
    assert letter.attempts == 4
    assert [record.outcome for record in letter.history] == ["lost", "lost", "lost", "failed"]
    assert letter.error is not None
    assert letter.error.type == "WorkerLost"
    assert farm.side.runs(kind) == {deadly.id: 4}

    assert len(rows) == HARMLESS
    assert {job.state for job in rows} == {JobState.COMPLETED}
    # Whoever ran beside it once has a crash on its record too, and is kept apart from then on.
    assert max(job.attempts for job in rows) <= 2
    runs = farm.side.runs("harmless")
    assert all(1 <= runs[job.id] <= job.attempts for job in rows)


async def test_a_job_that_kills_two_workers_in_turn_is_still_counted_exactly(farm: Farm) -> None:
    async with farm.app("deadly") as app:
        deadly = await app.enqueue("killed")
        workers = [await farm.start("deadly", kinds=["harmless"]) for _ in range(2)]
        for _ in range(4):
            worker = await farm.start("deadly")
            assert await worker.exit() == -signal.SIGKILL
        await until(lambda: len(farm.side.notes()) == 4, "four runs")
        done = await app.wait(deadly.id, timeout=60)
        assert (done.state, done.attempts) == (JobState.FAILED, 4)
        assert all(worker.returncode is None for worker in workers)
