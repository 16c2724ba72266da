"""Dead letters: kept with their history until redriven or discarded."""

import time

import pytest

from penstock.model.job import JobState
from penstock.ports.queue import JobFilter, JobQueue, Member
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    claim,
    claim_one,
    completed,
    failed,
    finish_as,
    get,
    ids_of,
    one,
    retry,
    settle,
)


async def test_redriven_job_has_fresh_attempts_and_its_history(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue, max_retries=1)
    await settle(member, retry(await claim_one(member)))
    await settle(member, failed(await claim_one(member)))

    assert await queue.redrive(one(job)) == [job.id]

    again = await get(queue, job.id)
    assert (again.state, again.attempts, again.releases) == (JobState.QUEUED, 0, 0)
    assert (again.started_at, again.finished_at, again.progress) == (None, None, 0.0)
    assert [record.outcome for record in again.history] == ["retry", "failed", "redriven"]
    lease = await claim_one(member)
    assert (lease.id, lease.attempts, lease.max_retries) == (job.id, 1, 1)
    await settle(member, completed(lease, "1"))
    done = await get(queue, job.id)
    assert (done.state, done.result, done.error) == (JobState.COMPLETED, 1, None)


async def test_redrive_takes_all_that_match_and_nothing_else(
    queue: JobQueue, member: Member
) -> None:
    jobs = await add(queue, 6)
    leases = await claim(member)
    await settle(
        member,
        *(failed(lease, "Boom" if n % 2 else "Bang") for n, lease in enumerate(leases)),
    )

    assert await queue.redrive(JobFilter(error_type="Bang")) == ids_of(jobs[::2])
    assert ids_of(await claim(member)) == ids_of(jobs[::2])


@pytest.mark.parametrize("state", ["queued", "running", "completed", "cancelled"])
async def test_only_dead_letters_are_redriven_or_discarded(
    queue: JobQueue, member: Member, state: str
) -> None:
    if state in ("queued", "running"):
        job = await add_one(queue)
        if state == "running":
            await claim_one(member)
        job = await get(queue, job.id)
    else:
        job = await finish_as(queue, member, state)

    assert await queue.redrive(JobFilter()) == []
    assert await queue.discard(JobFilter()) == []
    assert await get(queue, job.id) == job


async def test_redriving_twice_is_once(queue: JobQueue, member: Member) -> None:
    job = await finish_as(queue, member, "failed")

    assert await queue.redrive(one(job)) == [job.id]
    assert await queue.redrive(one(job)) == []
    assert len(await claim(member)) == 1


async def test_redriven_job_forgets_a_deadline_that_has_passed(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue, deadline=time.time() - 1)
    assert await claim(member) == []
    assert (await get(queue, job.id)).state is JobState.FAILED
    await queue.redrive(one(job))

    assert (await claim_one(member)).deadline is None


async def test_redriven_job_keeps_a_deadline_that_has_not_passed(
    queue: JobQueue, member: Member
) -> None:
    deadline = time.time() + 100
    job = await add_one(queue, deadline=deadline)
    await settle(member, failed(await claim_one(member)))
    await queue.redrive(one(job))

    assert (await get(queue, job.id)).deadline == deadline


async def test_lease_from_before_a_redrive_is_void(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    other = await ledger.join(queue)
    job = await add_one(queue, max_retries=0)
    lease = await claim_one(member)
    member.mark_started(lease)
    ledger.lapse(member)
    await other.upkeep()
    assert (await get(queue, job.id)).state is JobState.FAILED
    await queue.redrive(one(job))
    late = completed(lease)

    assert await settle(member, late) == [late]
    assert (await get(queue, job.id)).state is JobState.QUEUED


async def test_discarded_job_is_gone(queue: JobQueue, member: Member) -> None:
    job = await finish_as(queue, member, "failed")
    kept = await finish_as(queue, member, "failed", kind="other")

    assert await queue.discard(JobFilter(kind="work")) == [job.id]

    assert await queue.get([job.id, kept.id]) == {kept.id: kept}
    assert await queue.finished([job.id]) == [job.id], "who waits for it need not wait any longer"
    assert await queue.discard(one(job)) == []


async def test_dead_letters_are_grouped_by_kind_and_error(queue: JobQueue, member: Member) -> None:
    jobs = await add(queue, 5, tenant="a") + await add(queue, 2, tenant="b")
    other = await add_one(queue, kind="other", tenant="b")
    leases = {lease.id: lease for lease in await claim(member, 10, "work", "other")}
    for n, job in enumerate(jobs):
        await settle(member, failed(leases[job.id], "Boom" if n != 1 else "Bang"))
    await settle(member, failed(leases[other.id], "Boom"))

    boom, *rest = groups = await queue.dead_groups()
    assert [(g.kind, g.error_type, g.count) for g in groups] == [
        ("work", "Boom", 6),
        ("other", "Boom", 1),
        ("work", "Bang", 1),
    ]
    newest = await get(queue, jobs[-1].id)
    assert newest.error is not None
    assert (boom.newest_id, boom.message) == (newest.id, newest.error.message)
    assert boom.first_at == pytest.approx((await get(queue, jobs[0].id)).finished_at or 0)
    assert boom.last_at == pytest.approx(newest.finished_at or 0)
    assert [group.newest_id for group in rest] == [other.id, jobs[1].id]
    of_b = [(g.kind, g.count) for g in await queue.dead_groups("b")]
    assert of_b == [("work", 2), ("other", 1)]

    assert len(await queue.redrive(JobFilter(kind="work", error_type="Boom"))) == 6
    assert [group.newest_id for group in await queue.dead_groups()] == [other.id, jobs[1].id]
    assert await queue.dead_groups("nobody") == []


async def test_groups_count_very_many(queue: JobQueue, member: Member) -> None:
    await add(queue, 1200)
    leases = await claim(member, 1200)
    types = ["Boom", "Bang", "Clang"]
    await settle(member, *(failed(lease, types[n % 3]) for n, lease in enumerate(leases)))

    groups = await queue.dead_groups()
    assert [(group.error_type, group.count) for group in groups] == [
        ("Bang", 400),
        ("Boom", 400),
        ("Clang", 400),
    ]


async def test_redrive_and_discard_of_very_many(queue: JobQueue, member: Member) -> None:
    await add(queue, 2200)
    leases = await claim(member, 2200)
    await settle(member, *map(failed, leases))

    assert len(await queue.redrive(JobFilter())) == 2200
    again = []
    while leases := await claim(member, 1000):
        again += leases
        await settle(member, *map(failed, leases))
    assert len({lease.id for lease in again}) == 2200
    assert len(await queue.discard(JobFilter())) == 2200
    assert await queue.counts() == []
