"""A store that has lost its last moments gives numbers again: of jobs, of memberships, of claims.
Whoever held something under them before changes nothing that is another's now."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.model.job import Job, JobState
from penstock.ports.lanes import News, Permit, Report, Returned
from penstock.ports.queue import JobFilter, JobQueue, Lease, Member, Progress
from tests.conformance.lane_support import (
    CALM,
    LANE,
    ask,
    claim_lanes,
    down,
    give_back,
    info,
    open_lanes,
    permitted,
    up,
)
from tests.conformance.rewinding import (
    give_to_another_job,
    give_to_another_membership,
    let_another_hold,
)
from tests.conformance.support import (
    End,
    Ledger,
    add,
    add_one,
    cancel_seen,
    claim,
    claim_one,
    completed,
    exchange,
    failed,
    get,
    handed_back,
    one,
    released,
    retry,
    settle,
)

Rewind = Callable[[Ledger, Member, Member, list[Lease]], None]


def another_job(ledger: Ledger, member: Member, other: Member, leases: list[Lease]) -> None:
    for lease in leases:
        give_to_another_job(ledger, lease.id)


def another_membership(ledger: Ledger, member: Member, other: Member, leases: list[Lease]) -> None:
    give_to_another_membership(ledger, member)


def another_claim(ledger: Ledger, member: Member, other: Member, leases: list[Lease]) -> None:
    for lease in leases:
        let_another_hold(ledger, lease.id, other)


REWINDS = [another_job, another_membership, another_claim]


async def rows(queue: JobQueue) -> list[Job]:
    """All that is stored of all jobs."""
    return await queue.find(JobFilter(), 100)


@pytest.mark.parametrize("rewind", REWINDS)
async def test_settlements_and_progress_change_nothing_of_anothers(
    ledger: Ledger, queue: JobQueue, member: Member, rewind: Rewind
) -> None:
    other = await ledger.join(queue)
    await add(queue, 6, log="paper")
    *ended, cancelled = leases = await claim(member, 6)
    await queue.cancel(one(cancelled))
    rewind(ledger, member, other, leases)
    before, version = await rows(queue), await queue.versions([("default", "paper")])
    ends: list[End] = [completed, failed, retry, released, handed_back]
    late = [end(lease) for end, lease in zip(ends, ended, strict=True)]

    progress = [Progress(lease, 0.5, "ghost") for lease in ended]
    trip = await member.exchange([*late, cancel_seen(cancelled)], progress, None)

    assert sorted(s.outcome.value for s in trip.stale) == sorted(s.outcome.value for s in late)
    assert await rows(queue) == before
    assert await queue.versions([("default", "paper")]) == version
    assert trip.member is (rewind is not another_membership)


@pytest.mark.parametrize("rewind", REWINDS)
async def test_late_result_of_a_plain_job_is_refused_alone(
    ledger: Ledger, queue: JobQueue, member: Member, rewind: Rewind
) -> None:
    """Without a log or a lane, where results take the short way."""
    other = await ledger.join(queue)
    await add(queue, 2)
    lost, kept = await claim(member, 2)
    rewind(ledger, member, other, [lost])
    late = completed(lost, '"of another job"')

    stale = await settle(member, late, completed(kept))

    if rewind is another_membership:  # nothing of it stands
        assert {s.lease.id for s in stale} == {lost.id, kept.id}
    else:
        assert stale == [late]
        assert (await get(queue, kept.id)).state is JobState.COMPLETED
    assert all(job.result is None for job in await rows(queue))


async def test_run_that_still_occupies_a_thread_delays_no_other_job(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    await add_one(queue)
    lease = await claim_one(member)
    await settle(member, retry(lease))
    another = give_to_another_job(ledger, lease.id)
    before = await get(queue, another)

    assert member.renew({}, [lease])
    assert await get(queue, another) == before


async def test_membership_whose_number_is_anothers_has_lapsed(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    await add(queue, 3)
    retried, cancelled = await claim(member, 2)
    await settle(member, retry(retried))
    await queue.cancel(one(cancelled))
    give_to_another_membership(ledger, member)
    before = await rows(queue)
    processes = await queue.processes()

    assert member.renew({"late": 1}, [retried]) is False
    assert await member.cancelled() == [], "they are not its own"
    assert (await exchange(member)).member is False
    assert await claim(member) == []
    await ledger.leave(member)
    assert await rows(queue) == before
    assert await queue.processes() == processes


async def test_permit_is_granted_to_no_number_of_anothers(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 3})
    member = await ledger.join(queue)
    held = await permitted(member)
    give_to_another_membership(ledger, member)

    (answer,) = await member.permits([ask()])
    assert not isinstance(answer, Permit)
    await give_back(member, [held], News.SUCCESS)
    assert (await info(queue)).in_flight == 1, "what was held under the number is another's"


@pytest.mark.parametrize("rewind", REWINDS)
async def test_slots_of_anothers_jobs_stay_taken(ledger: Ledger, rewind: Rewind) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 5})
    member, other = await ledger.join(queue), await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    settled, left, asking = leases = await claim_lanes(member, 3)
    inside = await permitted(member)
    rewind(ledger, member, other, leases)
    gone = Permit(LANE, left.seq, left.start_at)  # as `ctx.lanes.leave()` gives it back
    back = [
        Returned(gone, Report(News.SUCCESS), left.seq, left.token, left.id),
        Returned(inside, Report(News.SUCCESS), asking.seq, asking.token, asking.id),
    ]

    trip = await member.exchange([up(settled)], [], None, back)

    assert [s.lease for s in trip.stale] == [settled]
    # A permit's own slot has a name that nobody else has: it goes back, unless with the membership.
    expected = 4 if rewind is another_membership else 3
    assert (await info(queue)).in_flight == expected


@pytest.mark.parametrize("rewind", REWINDS)
async def test_lane_learns_nothing_from_requests_of_lost_jobs(
    ledger: Ledger, rewind: Rewind
) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member, other = await ledger.join(queue), await ledger.join(queue)
    await add(queue, 4, lane=LANE)
    leases = await claim_lanes(member, 4)
    permits = [await permitted(member) for _ in range(2)]
    rewind(ledger, member, other, leases)
    before = replace(await info(queue), in_flight=0)

    for lease, held in zip(leases, permits, strict=False):
        await give_back(member, [held], News.UNAVAILABLE, lease)
    await member.exchange([down(lease) for lease in leases[2:]], [], None)

    assert replace(await info(queue), in_flight=0) == before


async def test_mark_of_a_lost_run_costs_another_job_no_attempt(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    """What had started when its process died is told by seq: which another job has by now."""
    other = await ledger.join(queue)
    await add_one(queue)
    lease = await claim_one(member)
    member.mark_started(lease)
    another = give_to_another_job(ledger, lease.id)
    ledger.lapse(member)

    await other.upkeep()

    job = await get(queue, another)
    assert (job.state, job.attempts, job.history) == (JobState.QUEUED, 0, [])
