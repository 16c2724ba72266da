"""Fencing: whoever lost a lease can settle nothing with it, and settling twice is harmless."""

import asyncio
import time

import pytest

from penstock.model.job import JobState
from penstock.ports.queue import JobFilter, JobQueue, Lease, Member
from tests.conformance.support import (
    End,
    Ledger,
    add,
    add_one,
    claim,
    claim_one,
    completed,
    failed,
    get,
    handed_back,
    one,
    released,
    report,
    retry,
    settle,
    until,
)

ENDINGS = [completed, failed, retry, released, handed_back]


async def test_progress_of_a_lost_lease_is_ignored(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    await settle(member, handed_back(lease))
    other = await ledger.join(queue)
    await claim_one(other)
    await report(member, lease, 0.9, "ghost")

    running = await get(queue, job.id)
    assert (running.progress, running.message) == (0.0, "")


async def lose_lease(
    ledger: Ledger, queue: JobQueue, member: Member
) -> tuple[Lease, Lease, Member]:
    """A job claimed by `member`, whose membership lapses, and then by another."""
    other = await ledger.join(queue)
    await add_one(queue, log="paper")
    old = await claim_one(member)
    ledger.lapse(member)
    await other.upkeep()
    new = await claim_one(other)
    assert (new.id, new.token > old.token) == (old.id, True)
    return old, new, other


@pytest.mark.parametrize("end", ENDINGS)
async def test_late_settle_is_rejected_and_changes_nothing(
    ledger: Ledger, queue: JobQueue, member: Member, end: End
) -> None:
    old, *_ = await lose_lease(ledger, queue, member)
    before = await get(queue, old.id)
    version = await queue.versions([("default", "paper")])
    late = end(old)

    assert await settle(member, late) == [late]
    assert await get(queue, old.id) == before
    assert await queue.versions([("default", "paper")]) == version


@pytest.mark.parametrize("end", ENDINGS)
async def test_late_settle_is_rejected_after_the_new_holder_has_settled(
    ledger: Ledger, queue: JobQueue, member: Member, end: End
) -> None:
    old, new, other = await lose_lease(ledger, queue, member)
    await settle(other, completed(new, '"new"'))
    done = await get(queue, old.id)
    late = end(old)

    assert await settle(member, late) == [late]
    assert await get(queue, old.id) == done


async def test_lease_that_is_not_renewed_runs_out(ledger: Ledger, queue: JobQueue) -> None:
    """The one test that waits for real; the others let the backend shorten the lease."""
    await add_one(queue)
    frozen = await ledger.join(queue, lease_seconds=1.0)
    old = await claim_one(frozen)
    other = await ledger.join(queue)
    before = time.monotonic()

    async def taken_over() -> list[Lease]:
        await other.upkeep()
        return await claim(other)

    (new,) = await until(taken_over, "the lease to run out")

    assert time.monotonic() - before >= 1.0, "and not before"
    assert (new.id, new.token > old.token) == (old.id, True)
    assert frozen.renew({}, []) is False
    late = completed(old)
    assert await settle(frozen, late) == [late]


async def test_renewed_lease_does_not_run_out(ledger: Ledger, queue: JobQueue) -> None:
    frozen, other = await ledger.join(queue), await ledger.join(queue)
    await add_one(queue)
    lease = await claim_one(frozen)

    for _ in range(3):
        ledger.lapse(frozen)  # in time all the same: nobody has noticed
        assert await asyncio.to_thread(frozen.renew, {"busy": 1}, [])
        assert await claim(other) == []
        await other.upkeep()

    assert await settle(frozen, completed(lease)) == []


async def test_settle_in_time_stands_even_if_the_lease_has_run_out_unnoticed(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    ledger.lapse(member)

    assert await settle(member, completed(lease, "1")) == []
    assert (await get(queue, job.id)).result == 1


async def test_late_settle_never_touches_a_newer_job(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    """A deleted job's place in the store may be used again; its leases must not be."""
    other = await ledger.join(queue)
    old = await add_one(queue, max_retries=0)
    lease = await claim_one(member)
    member.mark_started(lease)
    ledger.lapse(member)
    await other.upkeep()
    assert await queue.discard(one(old)) == [old.id]
    new = await add_one(queue)
    running = await claim_one(other)
    late = completed(lease, '"of the old job"')

    assert await settle(member, late) == [late]
    untouched = await get(queue, new.id)
    assert (untouched.state, untouched.result) == (JobState.RUNNING, None)
    assert await settle(other, completed(running, '"its own"')) == []
    assert (await get(queue, new.id)).result == "its own"


@pytest.mark.parametrize("end", ENDINGS)
async def test_settling_twice_is_a_no_op(queue: JobQueue, member: Member, end: End) -> None:
    await add_one(queue, log="paper")
    settlement = end(await claim_one(member))
    assert await settle(member, settlement) == []
    before = await get(queue, settlement.lease.id)
    version = await queue.versions([("default", "paper")])

    assert await settle(member, settlement) == [], "not stale: it is stored"
    assert await settle(member, settlement, settlement) == []
    assert await get(queue, settlement.lease.id) == before
    assert await queue.versions([("default", "paper")]) == version


async def test_batch_of_settlements_refuses_only_the_stale_ones(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    old, *_ = await lose_lease(ledger, queue, member)
    again = await ledger.join(queue)
    await add(queue, 6)
    a, b, c, d, e, f = await claim(again, 6)
    late = completed(old)

    stale = await settle(
        again, completed(a), failed(b), late, retry(c), released(d), handed_back(e), completed(f)
    )

    assert stale == [late]
    states = [(await get(queue, lease.id)).state for lease in (a, b, c, d, e, f)]
    assert states == ["completed", "failed", "queued", "queued", "queued", "completed"]


async def test_settlement_of_a_job_that_is_gone_is_stale(queue: JobQueue, member: Member) -> None:
    await add_one(queue)
    lease = await claim_one(member)
    await settle(member, failed(lease))
    await queue.discard(JobFilter())
    late = completed(lease)

    assert await settle(member, late) == [late]
