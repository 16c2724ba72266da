"""Cancelling: the row is the authority, and exactly one ending wins."""

import asyncio
import time

import pytest

from penstock.model.job import JobState
from penstock.ports.queue import JobFilter, JobQueue, Member
from tests.conformance.support import (
    End,
    Ledger,
    add,
    add_one,
    cancel_seen,
    claim,
    claim_one,
    completed,
    failed,
    finish_as,
    get,
    handed_back,
    ids_of,
    one,
    released,
    retry,
    settle,
)


async def test_queued_job_is_cancelled_at_once(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    before = time.time()

    assert await queue.cancel(one(job)) == [job.id]

    cancelled = await get(queue, job.id)
    assert (cancelled.state, cancelled.attempts) == (JobState.CANCELLED, 0)
    assert cancelled.finished_at is not None
    assert cancelled.finished_at >= before - 0.1
    assert await claim(member) == []
    assert await queue.finished([job.id]) == [job.id]
    assert not await queue.work_left(None)


async def test_scheduled_job_is_cancelled_at_once(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue, run_at=time.time() + 100)

    assert await queue.cancel(one(job)) == [job.id]
    assert not await queue.work_left(None)


async def test_running_job_is_cancelled_at_once_and_its_holder_can_tell(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    jobs = await add(queue, 3)
    leases = await claim(member)
    bystander = await ledger.join(queue)

    assert await queue.cancel(one(jobs[1])) == [jobs[1].id]

    assert (await get(queue, jobs[1].id)).state is JobState.CANCELLED
    assert await member.cancelled() == [leases[1].seq]
    assert await bystander.cancelled() == []
    assert (await get(queue, jobs[0].id)).state is JobState.RUNNING


@pytest.mark.parametrize("end", [completed, failed, retry, released, handed_back])
async def test_no_ending_overwrites_a_cancel(queue: JobQueue, member: Member, end: End) -> None:
    job = await add_one(queue, log="paper")
    settlement = end(await claim_one(member))
    await queue.cancel(one(job))
    cancelled = await get(queue, job.id)
    version = await queue.versions([("default", "paper")])

    assert await settle(member, settlement) == [settlement]
    assert await get(queue, job.id) == cancelled
    assert await queue.versions([("default", "paper")]) == version
    assert await claim(member) == []


async def test_cancelled_run_is_work_left_until_its_end_is_seen(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    await queue.cancel(one(job))
    assert await queue.work_left(None)

    assert await settle(member, cancel_seen(lease)) == []

    assert not await queue.work_left(None)
    assert await member.cancelled() == []
    assert (await get(queue, job.id)).state is JobState.CANCELLED
    assert await settle(member, cancel_seen(lease)) == [], "seeing it twice is a no-op"


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
async def test_finished_job_cannot_be_cancelled(
    queue: JobQueue, member: Member, state: str
) -> None:
    job = await finish_as(queue, member, state)

    assert await queue.cancel(one(job)) == []
    assert await get(queue, job.id) == job


async def test_cancel_against_complete_has_exactly_one_winner(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    other = await ledger.open()
    jobs = await add(queue, 40)
    leases = await claim(member, 40)

    for n, (job, lease) in enumerate(zip(jobs, leases, strict=True)):
        settling = asyncio.ensure_future(settle(member, completed(lease)))
        if n % 2:
            await asyncio.sleep(0)  # let it go first
        cancelled = await other.cancel(one(lease))
        was_completed, was_cancelled = await settling == [], cancelled == [lease.id]
        assert was_completed != was_cancelled
        state = (await get(queue, job.id)).state
        assert state is (JobState.COMPLETED if was_completed else JobState.CANCELLED)


async def test_cancel_takes_all_that_match_and_nothing_else(
    queue: JobQueue, member: Member
) -> None:
    mine = await add(queue, 3, tenant="a", kind="x")
    other_kind = await add(queue, 2, tenant="a", kind="y")
    other_tenant = await add(queue, 2, tenant="b", kind="x")

    assert await queue.cancel(JobFilter(tenant="a", kind="x")) == ids_of(mine)
    assert sorted(ids_of(await claim(member, 100, "x", "y"))) == sorted(
        ids_of(other_kind + other_tenant)
    )


async def test_cancel_of_very_many_jobs_takes_them_all(queue: JobQueue, member: Member) -> None:
    await add(queue, 2500)

    assert len(await queue.cancel(JobFilter(kind="work"))) == 2500
    assert not await queue.work_left(None)
    assert await claim(member) == []


async def test_cancelled_job_is_not_redriven(queue: JobQueue, member: Member) -> None:
    job = await finish_as(queue, member, "cancelled")

    assert await queue.redrive(one(job)) == []
    assert (await get(queue, job.id)).state is JobState.CANCELLED


async def test_cancelled_job_of_a_lapsed_member_is_freed_and_stays_cancelled(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    other = await ledger.join(queue)
    job = await add_one(queue)
    lease = await claim_one(member)
    member.mark_started(lease)
    await queue.cancel(one(job))
    ledger.lapse(member)
    await other.upkeep()

    assert await claim(other) == []
    assert (await get(queue, job.id)).state is JobState.CANCELLED
    assert not await queue.work_left(None)
