"""The queue has forgotten a claim (its server crashed, or a replica took over that lagged) and
leases the job to the same process once more."""

import asyncio

from penstock import JobContext, JobState
from tests.support.waiting import until
from tests.support.worker_processes import Farm

FORGET = (
    "UPDATE jobs SET state = 'queued', ready = 1, token = token - 1, attempts = attempts - 1,"
    " holder = NULL, started_at = NULL"
)


async def test_run_is_good_for_both_claims(farm: Farm) -> None:
    app, gate, runs = farm.bare(lease_seconds=60.0), asyncio.Event(), []

    @app.job("work")
    async def work(ctx: JobContext) -> str:
        runs.append(ctx.job.id)
        await gate.wait()
        return "done"

    async with app.running():
        job = await app.enqueue("work")
        await until(lambda: runs, "the job to run")
        farm.execute(FORGET)
        await until(lambda: _is_running(farm), "the job to be leased again")
        gate.set()
        done = await app.wait(job.id, timeout=60.0)

    assert (done.state, done.result, done.attempts) == (JobState.COMPLETED, "done", 1)
    assert runs == [job.id], "it was here already"


async def test_job_enqueued_anew_with_the_same_id_gets_its_own_result(farm: Farm) -> None:
    """Ids made of keys, parents and ticks come back, and with them all that tells a lease."""
    app, gate, runs = farm.bare(lease_seconds=60.0), asyncio.Event(), []

    @app.job("work")
    async def work(ctx: JobContext, name: str) -> str:
        runs.append(name)
        if name == "lost":
            await gate.wait()
        return name

    async with app.running():
        job = await app.enqueue("work", {"name": "lost"})
        await until(lambda: runs, "the job to run")
        farm.execute(FORGET + """, payload = '{"name":"new"}', enqueued_at = enqueued_at + 1""")
        done = await app.wait(job.id, timeout=60.0)
        gate.set()

    assert (done.state, done.result) == (JobState.COMPLETED, "new")


def _is_running(farm: Farm) -> bool:
    return farm.query("SELECT state FROM jobs") == [("running",)]
