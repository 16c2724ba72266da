"""Take-over: what a dead or lapsed process held goes back, and who pays for it."""

import logging

import pytest

from penstock.model.job import Job, JobState
from penstock.ports.queue import JobQueue, Member, Topic
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    claim,
    claim_one,
    completed,
    dies,
    doomed,
    get,
    handed_back,
    ids_of,
    one,
    retry,
    settle,
)
from tests.support.waiting import PATIENCE


async def all_of(queue: JobQueue, jobs: list[Job]) -> list[Job]:
    found = await queue.get(ids_of(jobs))
    return [found[job.id] for job in jobs]


async def crash(ledger: Ledger, member: Member) -> None:
    """What `member` has started is lost with it; what it only holds is not."""
    ledger.lapse(member)
    helper = await ledger.join(await ledger.open())
    await helper.upkeep()
    await ledger.leave(helper)


async def test_jobs_of_a_killed_process_are_taken_back_at_once(
    ledger: Ledger, queue: JobQueue, member: Member, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "penstock")
    jobs = await add(queue, 5, log="paper")
    await dies(ledger, claims=5, starts=2)
    assert await claim(member) == []
    ready = queue.listen(Topic.READY)

    await member.upkeep()

    (said,) = [one.getMessage() for one in caplog.records if "is gone" in one.getMessage()]
    assert "is gone (its process died); took back 5 jobs: " in said
    assert all(f"{job.id} ({job.kind})" in said for job in jobs)

    assert await ready.wait(PATIENCE)
    started, waiting = jobs[:2], jobs[2:]
    for job in await all_of(queue, started):
        assert (job.state, job.attempts) == (JobState.QUEUED, 1), "its attempt is spent"
        assert job.error is not None
        assert (job.error.type, job.error.retryable) == ("WorkerLost", True)
        assert [(r.attempt, r.outcome, r.error.type) for r in job.history] == [
            (1, "lost", "WorkerLost")
        ]
    for job in await all_of(queue, waiting):
        assert (job.state, job.attempts) == (JobState.QUEUED, 0), "it had not been started"
        assert (job.error, job.history, job.started_at) == (None, [], None)
    assert [info.id for info in await queue.processes()] == [member.id]
    leases = await claim(member, 10, crashed=False)
    assert ids_of(leases) == ids_of(waiting), "first in line again, in order"
    assert {lease.attempts for lease in leases} == {1}
    whats = [change.what for change in await queue.changes("default", "paper", 5, 10)]
    assert whats == ["retry", "retry"]


async def test_job_whose_attempts_are_spent_is_buried_when_its_process_dies(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    killer, neighbour = await add(queue, 2, max_retries=0, log="paper")
    finished = queue.listen(Topic.FINISHED)
    await dies(ledger, claims=2, starts=1)
    while await finished.wait(0.05):
        pass
    await member.upkeep()

    dead, unharmed = await all_of(queue, [killer, neighbour])
    assert (dead.state, dead.attempts) == (JobState.FAILED, 1)
    assert dead.error is not None
    assert (dead.error.type, dead.error.retryable) == ("WorkerLost", False)
    assert [(r.attempt, r.outcome) for r in dead.history] == [(1, "failed")]
    assert dead.finished_at is not None
    assert (unharmed.state, unharmed.attempts, unharmed.history) == (JobState.QUEUED, 0, [])
    assert await finished.wait(PATIENCE), "who waits for it is told"
    changes = await queue.changes("default", "paper", 2, 10)
    assert [(change.what, change.job_id) for change in changes] == [("failed", killer.id)]


async def test_process_that_lives_is_left_alone(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    jobs = await add(queue, 3)
    other = await doomed(ledger, claims=2, starts=1)

    await member.upkeep()

    assert {info.id for info in await queue.processes()} == {member.id, other.member}
    assert [job.state for job in await all_of(queue, jobs)] == ["running", "running", "queued"]
    await other.kill()
    await member.upkeep()
    assert [info.id for info in await queue.processes()] == [member.id]
    assert [job.attempts for job in await all_of(queue, jobs)] == [1, 0, 0]


async def test_two_members_in_one_process_leave_each_other_alone(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    other = await ledger.join(queue)
    job = await add_one(queue)
    lease = await claim_one(member)
    await other.upkeep()
    await member.upkeep()

    assert len(await queue.processes()) == 2
    assert await settle(member, completed(lease)) == []
    assert (await get(queue, job.id)).state is JobState.COMPLETED


async def test_cancelled_job_of_a_killed_process_stays_cancelled(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    other = await doomed(ledger, starts=1)
    await queue.cancel(one(job))
    await other.kill()
    assert await queue.work_left(None)

    await member.upkeep()

    assert (await get(queue, job.id)).state is JobState.CANCELLED
    assert not await queue.work_left(None)


async def test_lapsed_member_pays_only_for_what_it_had_started(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    jobs = await add(queue, 3)
    leases = await claim(member)
    slot = member.mark_started(leases[0])
    member.mark_started(leases[1])
    member.clear_started(slot)  # as if it had been settled: it is not blamed

    await crash(ledger, member)

    assert [job.attempts for job in await all_of(queue, jobs)] == [0, 1, 0]
    assert not member.renew({}, [])


async def test_killer_is_buried_after_its_retries_and_harms_nobody_else(
    ledger: Ledger, queue: JobQueue
) -> None:
    killer = await add_one(queue, max_retries=2)
    others = await add(queue, 3)

    for crashes in range(3):
        member = await ledger.join(await ledger.open())
        (lease,) = [lease for lease in await claim(member) if lease.id == killer.id]
        assert (lease.attempts, lease.crashes) == (crashes + 1, crashes)
        member.mark_started(lease)
        await crash(ledger, member)

    dead = await get(queue, killer.id)
    assert (dead.state, dead.attempts) == (JobState.FAILED, 3)
    assert [record.outcome for record in dead.history] == ["lost", "lost", "failed"]
    assert [job.attempts for job in await all_of(queue, others)] == [0, 0, 0]
    last = await ledger.join(queue)
    assert ids_of(await claim(last)) == ids_of(others)


async def crashed_jobs(ledger: Ledger, queue: JobQueue, count: int) -> list[Job]:
    """Jobs that were running when their process was lost."""
    member = await ledger.join(queue)
    jobs = await add(queue, count)
    for lease in await claim(member, count):
        member.mark_started(lease)
    await crash(ledger, member)
    return jobs


async def test_jobs_with_a_crash_on_record_are_claimed_one_at_a_time(
    ledger: Ledger, queue: JobQueue
) -> None:
    suspects = await crashed_jobs(ledger, queue, 3)
    member = await ledger.join(queue)
    harmless = await add(queue, 4)

    first = await claim(member, 10, crashed=True)
    assert [lease.id for lease in first if lease.crashes] == [suspects[0].id]
    assert [lease.id for lease in first if not lease.crashes] == ids_of(harmless)
    assert await claim(member, 10, crashed=False) == []

    second = await claim(member, 10, crashed=True)
    assert [(lease.id, lease.crashes) for lease in second] == [(suspects[1].id, 1)]


async def test_claim_of_one_may_be_a_job_with_a_crash_on_record(
    ledger: Ledger, queue: JobQueue
) -> None:
    (suspect,) = await crashed_jobs(ledger, queue, 1)
    member = await ledger.join(queue)
    await add(queue, 2)

    assert ids_of(await claim(member, 1, crashed=True)) == [suspect.id]


async def test_crashed_job_handed_back_still_runs_alone(ledger: Ledger, queue: JobQueue) -> None:
    suspects = await crashed_jobs(ledger, queue, 2)
    member = await ledger.join(queue)
    await settle(member, handed_back(await claim_one(member)))

    assert await claim(member, 10, crashed=False) == []
    assert ids_of(await claim(member, 10, crashed=True)) == [suspects[0].id]


async def test_crashed_job_is_retried_as_soon_as_it_is_due(ledger: Ledger, queue: JobQueue) -> None:
    (suspect,) = await crashed_jobs(ledger, queue, 1)
    member = await ledger.join(queue)
    await settle(member, retry(await claim_one(member)))

    # In one trip: nothing would send for another.
    assert ids_of(await claim(member, 10, crashed=True)) == [suspect.id]


async def test_redriven_job_has_a_clean_record(ledger: Ledger, queue: JobQueue) -> None:
    member = await ledger.join(queue)
    job = await add_one(queue, max_retries=0)
    member.mark_started(await claim_one(member))
    await crash(ledger, member)
    assert await queue.redrive(one(job)) == [job.id]
    fresh = await ledger.join(queue)

    (lease,) = await claim(fresh, 10, crashed=False)
    assert (lease.id, lease.attempts, lease.crashes) == (job.id, 1, 0)


async def test_jobs_of_a_member_that_leaves_go_back_unspent_and_in_order(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    jobs = await add(queue, 5)
    leases = await claim(member, 3)
    assert len(leases) == 3
    await ledger.leave(member)

    assert await queue.processes() == []
    for job in await all_of(queue, jobs):
        assert (job.state, job.attempts, job.history) == (JobState.QUEUED, 0, [])
    other = await ledger.join(queue)
    assert ids_of(await claim(other)) == ids_of(jobs)
    late = completed(leases[0])
    assert await settle(other, late) == [late]


async def test_leaving_twice_is_harmless(ledger: Ledger, queue: JobQueue) -> None:
    """As a process does that lapsed and cannot join again at the first try."""
    member = await ledger.join(queue)
    await ledger.leave(member)
    await member.leave()

    assert await queue.processes() == []


async def test_held_job_waits_for_the_thread_that_still_runs_it(
    ledger: Ledger, queue: JobQueue
) -> None:
    member = await ledger.join(queue)
    job = await add_one(queue)
    lease = await claim_one(member)
    await settle(member, retry(lease))

    assert member.renew({"stuck": 1}, [lease])
    other = await ledger.join(queue)
    assert await claim(other) == []
    held = await get(queue, job.id)
    assert (held.state, held.attempts) == (JobState.QUEUED, 1)
