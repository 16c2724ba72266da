"""Retention: what has ended well is forgotten in time, dead letters are not."""

import time

from penstock.model.job import JobState
from penstock.ports.queue import JobFilter
from tests.conformance.support import (
    Ledger,
    add_keyed,
    add_one,
    cancel_seen,
    claim_one,
    finish_as,
    ids_of,
    one,
    settle,
    until,
)


async def test_completed_and_cancelled_jobs_are_forgotten_and_nothing_else(
    ledger: Ledger,
) -> None:
    queue = await ledger.open(retention_seconds=0.0)
    member = await ledger.join(queue)
    dead = await finish_as(queue, member, "failed")
    gone = [await finish_as(queue, member, state) for state in ("completed", "cancelled")]
    running = await add_one(queue)
    await claim_one(member)
    scheduled = await add_one(queue, run_at=time.time() + 100)
    queued = await add_one(queue)

    await (await ledger.join(queue)).upkeep()

    left = ids_of(await queue.find(JobFilter(), 100))
    assert left == ids_of([queued, scheduled, running, dead])
    assert await queue.finished(ids_of(gone)) == ids_of(gone)


async def test_finished_jobs_are_kept_for_the_retention_time(ledger: Ledger) -> None:
    queue = await ledger.open(retention_seconds=3600.0)
    member = await ledger.join(queue)
    states = ("completed", "cancelled", "failed")
    jobs = [await finish_as(queue, member, state) for state in states]

    await (await ledger.join(queue)).upkeep()

    assert await queue.get(ids_of(jobs)) == {job.id: job for job in jobs}


async def test_cancelled_job_is_kept_until_its_run_has_ended(ledger: Ledger) -> None:
    queue = await ledger.open(retention_seconds=0.0)
    member = await ledger.join(queue)
    job = await add_one(queue)
    lease = await claim_one(member)
    await queue.cancel(one(job))
    await (await ledger.join(queue)).upkeep()
    assert list(await queue.get([job.id])) == [job.id]
    assert await member.cancelled() == [lease.seq]

    await settle(member, cancel_seen(lease))
    await (await ledger.join(queue)).upkeep()
    assert await queue.get([job.id]) == {}


async def test_key_of_a_forgotten_job_is_free(ledger: Ledger) -> None:
    queue = await ledger.open(retention_seconds=0.0)
    member = await ledger.join(queue)
    old = await finish_as(queue, member, "completed", payloads=["{}"], keys=["k"])
    await (await ledger.join(queue)).upkeep()

    new = await add_keyed(queue, "k", '{"other":1}')
    assert (new.id != old.id, new.state) == (True, JobState.QUEUED)


async def test_retention_time_is_waited_for(ledger: Ledger) -> None:
    queue = await ledger.open(retention_seconds=0.3)
    member = await ledger.join(queue)
    job = await finish_as(queue, member, "completed")

    async def forgotten() -> bool:
        keeper = await ledger.join(queue)
        await keeper.upkeep()
        await ledger.leave(keeper)
        return not await queue.get([job.id])

    await until(forgotten, "the job to be forgotten")
    assert job.finished_at is not None
    assert time.time() >= job.finished_at + 0.2, "and not with the first upkeep"


async def test_log_of_a_task_is_kept_while_any_of_its_jobs_is(ledger: Ledger) -> None:
    queue = await ledger.open(retention_seconds=0.0)
    member = await ledger.join(queue)
    await finish_as(queue, member, "completed", log="paper")
    waiting = await add_one(queue, log="paper", run_at=time.time() + 100)
    await (await ledger.join(queue)).upkeep()
    assert [c.version for c in await queue.changes("default", "paper", 0, 10)] == [1, 2, 3]

    await queue.cancel(one(waiting))
    assert await queue.versions([("default", "paper")]) == [4], "versions go on counting"
