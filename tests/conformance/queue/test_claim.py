"""Claiming: what may run now, each job once, first in line first."""

import asyncio
import time

import pytest

from penstock.model.job import JobState, Priority
from penstock.ports.queue import (
    UNKNOWN_LANE,
    Exchange,
    JobFilter,
    JobQueue,
    KindDefaults,
    Member,
    Topic,
    Want,
)
from tests.conformance.support import (
    SHORTLY,
    End,
    Ledger,
    add,
    add_one,
    claim,
    claim_one,
    clock_passes,
    exchange,
    get,
    handed_back,
    ids_of,
    released,
    retry,
    settle,
    want,
)
from tests.support.waiting import PATIENCE


async def test_claimed_job_is_leased_and_shown_as_running(queue: JobQueue, member: Member) -> None:
    job = await add_one(
        queue, tenant="t", priority=Priority.HIGH, log="paper", keys=["k"], parent_id="p"
    )
    before = time.time()
    lease = await claim_one(member)

    assert (lease.id, lease.kind, lease.tenant, lease.payload) == (job.id, "work", "t", '{"n":0}')
    assert (lease.priority, lease.key, lease.log, lease.parent_id) == (10, "k", "paper", "p")
    assert (lease.timeout, lease.max_retries, lease.deadline) == (30.0, 3, None)
    assert (lease.attempts, lease.crashes, lease.releases, lease.history) == (1, 0, 0, "[]")
    assert lease.enqueued_at == pytest.approx(job.enqueued_at, abs=1e-3)
    running = await get(queue, job.id)
    assert (running.state, running.attempts) == (JobState.RUNNING, 1)
    assert running.started_at is not None
    assert before - 0.1 <= running.started_at <= time.time() + 0.1


async def test_claim_takes_no_more_than_wanted(queue: JobQueue, member: Member) -> None:
    jobs = await add(queue, 10)

    assert ids_of(await claim(member, 3)) == ids_of(jobs[:3])
    assert ids_of(await claim(member, 100)) == ids_of(jobs[3:])
    assert await claim(member, 100) == []


async def test_only_wanted_kinds_are_claimed(queue: JobQueue, member: Member) -> None:
    await add(queue, 5, kind="other")
    mine = await add(queue, 2, kind="mine")

    assert ids_of(await claim(member, 10, "mine", "never.seen")) == ids_of(mine)
    assert await claim(member, 10, "mine") == []


async def test_two_members_claim_every_job_once(ledger: Ledger, queue: JobQueue) -> None:
    jobs = await add(queue, 200)
    members = [await ledger.join(await ledger.open()) for _ in range(3)]

    async def take_all(member: Member) -> list[str]:
        taken: list[str] = []
        while leases := await claim(member, 7):
            taken += ids_of(leases)
        return taken

    taken = await asyncio.gather(*(take_all(member) for member in members))

    assert sorted(job_id for some in taken for job_id in some) == sorted(ids_of(jobs))


async def test_higher_priority_is_claimed_first(queue: JobQueue, member: Member) -> None:
    low = await add(queue, 2, priority=Priority.LOW)
    medium = await add(queue, 2)
    high = await add(queue, 2, priority=Priority.HIGH)

    assert ids_of(await claim(member, 10)) == ids_of(high + medium + low)


async def test_kinds_are_claimed_in_one_common_order(queue: JobQueue, member: Member) -> None:
    kinds = ["c", "a", "b", "a", "c", "c", "b", "a", "b"]
    jobs = [await add_one(queue, kind=kind) for kind in kinds]

    assert ids_of(await claim(member, 4, "a", "b", "c")) == ids_of(jobs[:4])
    assert ids_of(await claim(member, 100, "c", "b", "a")) == ids_of(jobs[4:])


async def test_very_many_kinds_are_claimed_in_one_common_order(
    queue: JobQueue, member: Member
) -> None:
    kinds = [f"kind{n}" for n in range(260)]
    chosen = [kinds[n] for n in (250, 3, 120, 199, 7)]
    jobs = [await add_one(queue, kind=kind) for kind in chosen]

    assert ids_of(await claim(member, 3, *kinds)) == ids_of(jobs[:3])
    assert ids_of(await claim(member, 9, *kinds)) == ids_of(jobs[3:])


async def test_scheduled_job_is_claimed_when_due_and_not_before(
    queue: JobQueue, member: Member
) -> None:
    at = time.time() + SHORTLY
    job = await add_one(queue, run_at=at)
    due = await exchange(member, wanted=want())
    if not due.leases:  # else it is due already, as is looked at below
        assert due.next_at == pytest.approx(at, abs=1e-3)
        await clock_passes(at)
        due = await exchange(member, wanted=want())

    assert time.time() >= at - 0.1
    assert ids_of(due.leases) == [job.id]
    assert due.next_at is None


async def test_next_at_names_the_earliest_scheduled_job(queue: JobQueue, member: Member) -> None:
    at = time.time() + 100
    for later in (30, 10, 20):
        await add_one(queue, run_at=at + later)
    await add_one(queue)

    found = await exchange(member, wanted=want(2))
    assert len(found.leases) == 1
    assert found.next_at == pytest.approx(at + 10, abs=1e-3)


async def test_due_jobs_join_the_line_in_the_order_they_fell_due(
    queue: JobQueue, member: Member
) -> None:
    while True:
        start = time.time() + SHORTLY
        second = await add_one(queue, run_at=start + 0.02)
        first = await add_one(queue, run_at=start)
        if time.time() < start:
            break
        await queue.cancel(JobFilter())  # a busy machine: they were due when they came
    await clock_passes(start + 0.02)

    assert ids_of(await claim(member)) == [first.id, second.id]


async def test_job_of_a_kind_nobody_knew_is_filled_in_by_the_first_claimer(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue, lane=UNKNOWN_LANE, timeout=None, max_retries=None)
    assert (job.timeout, job.max_retries, job.lane) == (None, None, None)
    assert await claim(member, 10, "other") == []

    knowing = Want(10, {"work": KindDefaults(timeout=7.0, max_retries=2)}, True)
    (lease,) = (await exchange(member, wanted=knowing)).leases

    assert (lease.id, lease.timeout, lease.max_retries, lease.lane) == (job.id, 7.0, 2, "")
    filled = await get(queue, job.id)
    assert (filled.timeout, filled.max_retries) == (7.0, 2)


async def test_jobs_of_a_kind_nobody_knew_keep_their_order(queue: JobQueue, member: Member) -> None:
    unknown = {"lane": UNKNOWN_LANE, "timeout": None, "max_retries": None}
    low = await add(queue, 2, priority=Priority.LOW, **unknown)
    medium = await add(queue, 2, **unknown)

    assert ids_of(await claim(member)) == ids_of(medium + low)


async def test_scheduled_job_of_a_kind_nobody_knew_is_claimed_as_soon_as_due(
    queue: JobQueue, member: Member
) -> None:
    at = time.time() + 0.05
    job = await add_one(queue, lane=UNKNOWN_LANE, timeout=None, max_retries=None, run_at=at)
    await clock_passes(at)

    # In one trip: nothing would send for another.
    assert ids_of(await claim(member)) == [job.id]


async def test_queued_job_past_its_deadline_fails(queue: JobQueue, member: Member) -> None:
    now = time.time()
    late = await add_one(queue, deadline=now - 1, log="paper")
    waiting = await add_one(queue, deadline=now - 1, run_at=now + 100)
    fine = await add_one(queue, deadline=now + 100)
    finished = queue.listen(Topic.FINISHED)

    assert ids_of(await claim(member)) == [fine.id]

    for job in (late, waiting):
        failed = await get(queue, job.id)
        assert (failed.state, failed.attempts) == (JobState.FAILED, 0)
        assert failed.error is not None
        assert failed.error.type == "DeadlineExceeded"
        assert failed.error.retryable is False
        assert [record.outcome for record in failed.history] == ["failed"]
        assert failed.finished_at is not None
        assert failed.finished_at >= now - 0.1
    assert await finished.wait(PATIENCE)
    changes = await queue.changes("default", "paper", 0, 10)
    assert [change.what for change in changes] == ["queued", "failed"]


async def test_next_at_tells_of_the_next_deadline(queue: JobQueue, member: Member) -> None:
    deadline = time.time() + 100
    await add_one(queue, run_at=deadline + 50, deadline=deadline)

    assert (await exchange(member, wanted=want())).next_at == pytest.approx(deadline, abs=1e-3)


async def test_deadline_is_part_of_the_lease(queue: JobQueue, member: Member) -> None:
    deadline = time.time() + 100.123456
    await add_one(queue, deadline=deadline)

    assert (await claim_one(member)).deadline == pytest.approx(deadline, abs=1e-3)


async def test_job_handed_back_is_first_in_line_again(queue: JobQueue, member: Member) -> None:
    jobs = await add(queue, 5)
    first, second = await claim(member, 2)
    await settle(member, handed_back(second), handed_back(first))

    assert ids_of(await claim(member)) == ids_of(jobs)


@pytest.mark.parametrize("end", [retry, released])
async def test_job_that_runs_again_waits_behind_those_already_in_line(
    queue: JobQueue, member: Member, end: End
) -> None:
    jobs = await add(queue, 3)
    await settle(member, end(await claim_one(member)))

    assert ids_of(await claim(member)) == ids_of([jobs[1], jobs[2], jobs[0]])


async def test_settling_and_claiming_take_one_trip(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)

    again = await exchange(member, retry(lease), wanted=want())

    assert [(each.id, each.attempts) for each in again.leases] == [(job.id, 2)]
    assert again.leases[0].token > lease.token


async def test_nothing_is_claimed_without_being_asked(queue: JobQueue, member: Member) -> None:
    await add_one(queue)

    assert await exchange(member) == Exchange([], [], None, True)


async def test_membership_that_lapsed_claims_nothing_and_is_told(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    rival = await ledger.join(queue)
    ledger.lapse(member)
    await rival.upkeep()

    for wanted in (want(), None):
        answer = await exchange(member, wanted=wanted)
        assert (answer.leases, answer.member) == ([], False)
    assert (await get(queue, job.id)).state is JobState.QUEUED


async def test_membership_nobody_took_over_goes_on_however_late_its_renewal(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    ledger.lapse(member)

    answer = await exchange(member, wanted=want())

    assert ([lease.id for lease in answer.leases], answer.member) == ([job.id], True)
