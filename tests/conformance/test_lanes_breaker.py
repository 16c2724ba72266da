"""The breaker in the queue: whose fault a failure is, and who may try again when."""

import time
from itertools import pairwise

import pytest

from penstock.model.job import JobState
from penstock.ports.queue import (
    Busy,
    JobQueue,
    Lease,
    Member,
    News,
    Outcome,
    Report,
    Returned,
    Settlement,
    Steer,
)
from tests.conformance.lane_support import (
    LANE,
    QUICK,
    claim_lanes,
    claim_one_in_lane,
    claimed_soon,
    down,
    end,
    give_back,
    info,
    limited,
    open_lanes,
    own_fault,
    permit,
    permitted,
    refused,
    try_is_due,
    up,
)
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    cancel_seen,
    clock_passes,
    dies,
    get,
    handed_back,
    ids_of,
    one,
)

CALM = {"breaker_first_seconds": 60.0, "breaker_cap_seconds": 300.0}
"""A breaker whose first try comes long after the test."""


async def opened(queue: JobQueue, member: Member) -> list[str]:
    """Two jobs find the lane unavailable; their ids."""
    leases = await claim_lanes(member, 2)
    assert len(leases) == 2
    await end(member, *map(down, leases))
    assert (await info(queue)).breaker == "open"
    return ids_of(leases)


async def attempts(queue: JobQueue, job_id: str) -> int:
    return (await get(queue, job_id)).attempts


async def test_first_failure_is_the_jobs_own_and_makes_the_lane_suspect(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    job = await add_one(queue, lane=LANE)
    settled = await end(member, down(await claim_one_in_lane(member), run_at=time.time() + 60))

    assert settled.spared == frozenset()
    waiting = await get(queue, job.id)
    assert (waiting.state, waiting.attempts) == (JobState.QUEUED, 1)
    assert [record.outcome for record in waiting.history] == ["retry"]
    lane = await info(queue)
    assert (lane.breaker, lane.retry_at) == ("suspect", None)


async def test_failure_of_a_second_job_opens_the_breaker_and_costs_no_attempt(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    jobs = await add(queue, 3, lane=LANE)
    first, second = await claim_lanes(member, 2)
    await end(member, down(first, run_at=time.time() + 60))
    assert await attempts(queue, first.id) == 1
    settled = await end(member, down(second))

    assert settled.spared == {second.ref}
    lane = await info(queue)
    assert lane.breaker == "open"
    assert lane.retry_at == pytest.approx(time.time() + 54.0, abs=7.0)
    for job in jobs:
        row = await get(queue, job.id)
        assert (row.state, row.attempts) == (JobState.QUEUED, 0), "also who failed first"
    assert await claim_lanes(member) == []


async def test_both_in_one_batch_cost_no_attempt(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    jobs = await add(queue, 2, lane=LANE)
    leases = await claim_lanes(member)
    settled = await end(member, *map(down, leases))

    assert settled.spared == {lease.ref for lease in leases}
    assert [await attempts(queue, job.id) for job in jobs] == [0, 0]


async def test_outage_kills_nobody_in_the_same_batch_even_without_retries(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    jobs = await add(queue, 3, lane=LANE, max_retries=0)
    await end(member, *map(down, await claim_lanes(member)))

    for job in jobs:
        row = await get(queue, job.id)
        assert (row.state, row.attempts) == (JobState.QUEUED, 0)


async def test_who_failed_first_in_an_outage_with_its_last_attempt_is_not_dead(
    ledger: Ledger,
) -> None:
    """An outage costs no attempts, also not the one of the job that noticed it."""
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE, max_retries=0)
    first, second = await claim_lanes(member)
    await end(member, down(first))
    await end(member, down(second))

    assert (await info(queue)).breaker == "open"
    assert [(await get(queue, lease.id)).state for lease in (first, second)] == ["queued"] * 2


async def test_while_other_jobs_succeed_a_failure_is_the_jobs_own(ledger: Ledger) -> None:
    """One payload that always gets a 500 among good ones dies of it, alone."""
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(queue)
    bad, *_ = await add(queue, 30, lane=LANE)
    while (await get(queue, bad.id)).state is not JobState.FAILED:
        (lease,) = await claimed_soon(member)
        await end(member, down(lease) if lease.id == bad.id else up(lease))
        assert (await info(queue)).breaker in ("closed", "suspect")

    dead = await get(queue, bad.id)
    assert (dead.attempts, len(dead.history)) == (4, 4)


async def test_two_bad_payloads_among_good_ones_spend_their_attempts_too(ledger: Ledger) -> None:
    """They stand next to each other and fail together, each time; the others succeed."""
    queue = await open_lanes(ledger, api={"max_parallel": 2, "breaker_cap_seconds": QUICK})
    member = await ledger.join(queue)
    bad = ids_of(await add(queue, 2, lane=LANE, max_retries=1))
    good = ids_of(await add(queue, 10, lane=LANE))
    while len(await queue.finished(good)) < len(good):
        for lease in await claimed_soon(member):
            await end(member, down(lease) if lease.id in bad else up(lease))

    assert [await attempts(queue, job) > 0 for job in bad] == [True, True]


async def test_what_says_nothing_of_the_lane_spends_the_attempt_and_opens_nothing(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    jobs = await add(queue, 5, lane=LANE)
    settled = await end(member, *map(own_fault, await claim_lanes(member)))

    assert settled.spared == frozenset()
    assert (await info(queue)).breaker == "closed"
    assert [await attempts(queue, job.id) for job in jobs] == [1] * 5


async def test_while_the_breaker_is_open_failures_are_the_lanes(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    jobs = await add(queue, 6, lane=LANE)
    leases = await claim_lanes(member)
    await end(member, *map(down, leases[:2]))
    retry_at = (await info(queue)).retry_at
    settled = await end(member, *map(down, leases[2:]))

    assert settled.spared == {lease.ref for lease in leases[2:]}
    assert [await attempts(queue, job.id) for job in jobs] == [0] * 6
    assert (await info(queue)).retry_at == retry_at, "one failure of the lane, not five"


async def test_jobs_spared_keep_their_place_in_line(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    jobs = await add(queue, 5, lane=LANE)
    await end(member, *map(down, await claim_lanes(member)))
    await queue.steer(LANE, Steer.RESET)

    assert ids_of(await claimed_soon(member)) == ids_of(jobs)


async def test_open_breaker_allows_one_try_at_a_time_across_members(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    one_, two = await ledger.join(queue), await ledger.join(await open_lanes(ledger, api={}))
    await add(queue, 6, lane=LANE)
    await opened(queue, one_)
    assert await claim_lanes(one_) == await claim_lanes(two) == []
    await try_is_due(queue)

    assert len(await claimed_soon(one_)) == 1
    for member in (one_, two, one_):
        assert await claim_lanes(member) == []
        busy = await permit(member)
        assert isinstance(busy, Busy)
        assert "breaker" in busy.why


async def test_next_try_is_made_with_another_job(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    jobs = await add(queue, 3, lane=LANE)
    await opened(queue, member)
    tried: list[str] = []
    for _ in range(4):
        await try_is_due(queue)
        (lease,) = await claimed_soon(member)
        tried.append(lease.id)
        await end(member, down(lease))

    assert all(a != b for a, b in pairwise(tried)), "never twice in a row"
    assert [await attempts(queue, job.id) for job in jobs] == [0, 0, 0]


async def test_only_job_of_a_lane_is_tried_again_itself(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    jobs = await add(queue, 2, lane=LANE)
    await opened(queue, member)
    await queue.cancel(one(jobs[0]))
    for _ in range(3):
        await try_is_due(queue)
        (lease,) = await claimed_soon(member)
        assert lease.id == jobs[1].id
        await end(member, down(lease))


async def test_tries_climb_the_ladder(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"breaker_cap_seconds": 3 * QUICK})
    member = await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    await opened(queue, member)
    for whole in (QUICK, 2 * QUICK, 3 * QUICK, 3 * QUICK):
        lane = await info(queue)
        assert lane.retry_at is not None
        await clock_passes(lane.retry_at)
        (lease,) = await claimed_soon(member)
        assert lease.start_at >= lane.retry_at
        before = time.time()
        await end(member, down(lease))
        following = (await info(queue)).retry_at
        assert following is not None
        next_whole = min(2 * whole, 3 * QUICK)
        assert before + 0.8 * next_whole <= following <= time.time() + next_whole


async def test_success_of_the_try_closes_the_breaker_for_everyone(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    one_, two = await ledger.join(queue), await ledger.join(await ledger.open())
    await add(queue, 8, lane=LANE)
    await opened(queue, one_)
    await try_is_due(queue)
    (lease,) = await claimed_soon(one_)
    await end(one_, up(lease))

    assert (await info(queue)).breaker == "closed"
    assert len(await claim_lanes(two)) == 7, "all at once, also in another process"


async def test_request_that_was_open_before_and_succeeds_closes_the_breaker(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 5, lane=LANE)
    leases = await claim_lanes(member, 3)
    await end(member, *map(down, leases[:2]))
    assert (await info(queue)).breaker == "open"
    await end(member, up(leases[2]))

    assert (await info(queue)).breaker == "closed"
    assert len(await claim_lanes(member)) == 4


ABANDONED = {"handed back": handed_back, "its own fault": own_fault}


@pytest.mark.parametrize("name", ABANDONED)
async def test_try_that_told_nothing_lets_the_next_be_made(ledger: Ledger, name: str) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await add(queue, 4, lane=LANE)
    await opened(queue, member)
    await try_is_due(queue)
    (lease,) = await claimed_soon(member)
    await end(member, ABANDONED[name](lease))

    assert (await info(queue)).breaker == "open"
    assert len(await claimed_soon(member)) == 1


async def test_cancelled_try_lets_the_next_be_made(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await add(queue, 4, lane=LANE)
    await opened(queue, member)
    await try_is_due(queue)
    (lease,) = await claimed_soon(member)
    await queue.cancel(one(lease))
    await end(member, cancel_seen(lease))

    (following,) = await claimed_soon(member)
    assert following.id != lease.id


async def test_member_that_lapses_with_the_try_frees_it(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    frozen, other = await ledger.join(queue), await ledger.join(queue)
    await add(queue, 4, lane=LANE)
    await opened(queue, frozen)
    await try_is_due(queue)
    assert len(await claimed_soon(frozen)) == 1
    assert await claim_lanes(other) == []
    ledger.lapse(frozen)

    assert len(await claimed_soon(other)) == 1


async def test_process_that_dies_with_the_try_frees_it(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await add(queue, 4, lane=LANE)
    await opened(queue, member)
    await try_is_due(queue)
    await dies(ledger, claims=1, starts=1, lanes=1)
    assert await claim_lanes(member) == []
    await member.upkeep()

    assert len(await claimed_soon(member)) == 1


async def test_permit_can_be_the_try_and_its_success_closes_the_breaker(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await open_with_permits(queue, member)
    await add(queue, 4, lane=LANE)
    await try_is_due(queue)
    trial = await permitted(member)
    assert isinstance(await permit(member), Busy)
    assert await claim_lanes(member) == []
    await give_back(member, [trial], News.SUCCESS, _lease(1_000_003))

    assert (await info(queue)).breaker == "closed"
    assert len(await claimed_soon(member)) == 4


async def open_with_permits(queue: JobQueue, member: Member) -> None:
    """Two other jobs find the lane unavailable under permits of theirs."""
    for lease in [_lease(1_000_001), _lease(1_000_002)]:
        await give_back(member, [await permitted(member)], News.UNAVAILABLE, lease)
    assert (await info(queue)).breaker == "open"


def _lease(seq: int) -> Lease:
    """A job that asks for permits; only its number matters."""
    rest = ["", "", "", "", 50, "", None, None, None, 0.0, 0.0, None, None, None, 1, 0, 0, 1, "[]"]
    return Lease._make([seq, *rest, 0.0, 0.0])


async def test_permit_whose_request_fails_climbs_the_ladder_once(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await open_with_permits(queue, member)
    await try_is_due(queue)
    trial = await permitted(member)
    before = time.time()
    await give_back(member, [trial], News.UNAVAILABLE, _lease(1_000_003))

    lane = await info(queue)
    assert lane.retry_at is not None
    assert before + 0.8 * 2 * QUICK <= lane.retry_at <= time.time() + 2 * QUICK


async def test_permit_of_another_member_with_the_same_number_is_not_the_try(
    ledger: Ledger,
) -> None:
    """Each process counts from -1, so numbers meet; the end of one is not that of the other."""
    queue = await open_lanes(ledger, api={})
    one_, two = await ledger.join(queue), await ledger.join(queue)
    old = await permitted(two, ref=-77)
    await open_with_permits(queue, one_)
    await try_is_due(queue)
    trial = await permitted(one_, ref=-77)
    await give_back(two, [old])

    assert isinstance(await permit(two), Busy), "the try is still under way"
    await give_back(one_, [trial])


async def test_two_jobs_open_a_lane_they_only_take_permits_of(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM, own={})
    member = await ledger.join(queue)
    jobs = await add(queue, 2, lane="own")
    leases = await claim_lanes(member)
    for lease in leases:
        held = await permitted(member)
        await give_back(member, [held], News.UNAVAILABLE, lease)
    settled = await end(member, *(down(lease, lane=LANE) for lease in leases))

    assert settled.spared == {lease.ref for lease in leases}
    assert {lane.name: lane.breaker for lane in await queue.lanes()} == {
        "api": "open",
        "own": "closed",
    }
    for job in jobs:
        row = await get(queue, job.id)
        assert (row.state, row.attempts) == (JobState.QUEUED, 0)
        assert row.run_at > time.time() + 30, "it waits for that lane, not in its own line"
    assert await claim_lanes(member) == []


async def test_jobs_without_a_lane_are_spared_when_the_lane_of_a_permit_is_down(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    jobs = await add(queue, 2)
    leases = await claim_lanes(member, 0, limit=2)
    for lease in leases:
        await give_back(member, [await permitted(member)], News.UNAVAILABLE, lease)
    await end(member, *(down(lease, lane=LANE) for lease in leases))

    assert [await attempts(queue, job.id) for job in jobs] == [0, 0]
    lane = await info(queue)
    assert lane.retry_at is not None
    await clock_passes(lane.retry_at)
    assert len(await claim_lanes(member, 0, limit=10)) == 2, "back when the lane may be tried"


async def test_429_pauses_the_lane_for_everybody_and_costs_no_attempt(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    one_, two = await ledger.join(queue), await ledger.join(await ledger.open())
    jobs = await add(queue, 3, lane=LANE)
    lease = await claim_one_in_lane(one_)
    before = time.time()
    settled = await end(one_, limited(lease, 0.2))

    assert settled.spared == {lease.ref}
    lane = await info(queue)
    assert lane.blocked_why == "rate limited"
    assert lane.blocked_until == pytest.approx(before + 0.2, abs=0.1)
    assert await claim_lanes(one_) == await claim_lanes(two) == []
    assert await attempts(queue, jobs[0].id) == 0
    leases = await claimed_soon(two)
    assert ids_of(leases) == ids_of(jobs)
    assert min(lease.start_at for lease in leases) >= before + 0.2
    assert (await info(queue)).breaker == "closed"


def told(settlement: Settlement) -> Settlement:
    """What the lane knows already from the permit."""
    assert settlement.report is not None
    return settlement._replace(report=settlement.report._replace(told=True))


async def test_one_429_under_a_permit_is_one(ledger: Ledger) -> None:
    """It is reported with the permit and with the job's end; that is not a repetition."""
    queue = await open_lanes(ledger, api={"min_interval_seconds": 0.1}, own={})
    member = await ledger.join(queue)
    await add_one(queue, lane="own")
    lease = await claim_one_in_lane(member)
    held = await permitted(member)
    spacing = (await info(queue)).spacing
    report = Report(News.RATE_LIMITED, 0.0)
    await member.exchange([], [], None, [Returned(held, report, *lease.ref)])
    await end(member, told(limited(lease, 0.0, lane=LANE)))

    assert (await info(queue)).spacing == spacing


async def test_several_429_of_requests_under_way_together_are_one(ledger: Ledger) -> None:
    """As with a breaker: what was open when it began is not a repetition."""
    queue = await open_lanes(ledger, api={"min_interval_seconds": 0.001})
    member = await ledger.join(queue)
    await add(queue, 8, lane=LANE)
    leases: list[Lease] = []
    while len(leases) < 8:
        leases += await claimed_soon(member)
    spacing = (await info(queue)).spacing
    for lease in leases:
        await end(member, limited(lease, 30.0))

    assert (await info(queue)).spacing == spacing


async def test_repeated_429_slows_the_lane_down_also_one_at_a_time(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"min_interval_seconds": 0.01, "max_parallel": 1})
    member = await ledger.join(queue)
    await add_one(queue, lane=LANE)
    for _ in range(3):
        (lease,) = await claimed_soon(member)
        await end(member, limited(lease, 0.01))

    assert (await info(queue)).spacing == pytest.approx(4 * 0.0102, rel=0.01)


async def test_three_refusals_block_the_lane_and_nothing_dies(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    jobs = await add(queue, 10, lane=LANE, max_retries=2)
    leases = await claim_lanes(member)
    await end(member, *map(refused, leases[:2]))
    assert (await info(queue)).blocked_why is None
    settled = await end(member, *map(refused, leases[2:]))

    assert settled.spared == {lease.ref for lease in leases[2:]}
    lane = await info(queue)
    assert lane.blocked_why == "credentials"
    assert lane.blocked_until is None, "until a person acts"
    rows = await queue.get(ids_of(jobs))
    assert {row.state for row in rows.values()} == {JobState.QUEUED}
    assert sum(row.attempts for row in rows.values()) == 0, "also of the first two"
    assert await claim_lanes(member) == []


async def test_refused_jobs_without_retries_come_back_when_the_lane_is_blocked(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    jobs = await add(queue, 3, lane=LANE, max_retries=0, task="watched")
    leases = await claim_lanes(member)
    for lease in leases:
        settlement = refused(lease)._replace(outcome=Outcome.FAILED)
        await end(member, settlement)

    rows = await queue.get(ids_of(jobs))
    assert [(rows[job.id].state, rows[job.id].attempts) for job in jobs] == [
        (JobState.QUEUED, 0)
    ] * 3
    told = await queue.changes("default", "watched", 0, 100)
    assert [change.what for change in told].count("released") == 2, "who watches is told"


async def test_two_refused_jobs_under_permits_do_not_block_the_lane(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={}, own={})
    member = await ledger.join(queue)
    await add(queue, 2, lane="own")
    for lease in await claim_lanes(member):
        await give_back(member, [await permitted(member)], News.REFUSED, lease)
        await end(member, told(refused(lease, lane=LANE)))

    assert (await info(queue)).blocked_why is None


@pytest.mark.parametrize("news", [News.REFUSED, News.RATE_LIMITED])
async def test_settling_twice_tells_the_lane_once(ledger: Ledger, news: News) -> None:
    """The same call can be made again when its answer was lost."""
    queue = await open_lanes(ledger, api={"min_interval_seconds": 0.01})
    member = await ledger.join(queue)
    await add_one(queue, lane=LANE)
    lease = await claim_one_in_lane(member)
    spacing = (await info(queue)).spacing
    settlement = refused(lease) if news is News.REFUSED else limited(lease, 0.0)
    for _ in range(4):
        await end(member, settlement)

    lane = await info(queue)
    assert (lane.blocked_why in (None, "rate limited"), lane.spacing) == (True, spacing)


async def test_what_a_thawed_process_says_of_lost_leases_teaches_the_lane_nothing(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api=CALM)
    frozen, other = await ledger.join(queue), await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    lost = await claim_lanes(frozen)
    ledger.lapse(frozen)
    await other.upkeep()
    await end(frozen, *map(down, lost))

    assert (await info(queue)).breaker == "closed"


async def test_resuming_a_lane_blocked_for_credentials_starts_it_again(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    jobs = await add(queue, 4, lane=LANE)
    await end(member, *map(refused, await claim_lanes(member)))
    assert await claim_lanes(member) == []
    assert await queue.steer(LANE, Steer.RESUME)

    leases = await claimed_soon(member)
    assert set(ids_of(leases)) <= set(ids_of(jobs))
    await end(member, *map(refused, leases[:2]))
    assert (await info(queue)).blocked_why is None, "the count starts again"


async def test_starting_process_tries_new_credentials_and_one_refusal_blocks_again(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await add(queue, 6, lane=LANE)
    await end(member, *map(refused, await claim_lanes(member, 3)))
    assert (await info(queue)).blocked_why == "credentials"
    fresh = await ledger.join(queue)

    leases = await claimed_soon(fresh, lanes=1)
    await end(fresh, refused(leases[0]))
    assert (await info(queue)).blocked_why == "credentials"


async def test_starting_process_makes_one_try_at_once(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 5, lane=LANE)
    await opened(queue, member)
    assert await claim_lanes(member) == []
    fresh = await ledger.join(queue)

    (lease,) = await claim_lanes(fresh)
    assert await claim_lanes(fresh) == await claim_lanes(member) == []
    before = time.time()
    await end(fresh, down(lease))
    lane = await info(queue)
    assert lane.retry_at is not None
    assert lane.retry_at >= before + 0.8 * 120, "the ladder goes on where it was"


async def test_starting_process_does_not_lift_a_pause(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    await ledger.join(queue)
    await add(queue, 1, lane=LANE)
    await queue.steer(LANE, Steer.PAUSE)
    fresh = await ledger.join(queue)

    assert await claim_lanes(fresh) == []


async def test_address_that_could_not_be_reached_is_probed_by_one_member_at_a_time(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api={**CALM, "probe_seconds": 0.1})
    one_, two = await ledger.join(queue), await ledger.join(await ledger.open())
    await add(queue, 2, lane=LANE)
    assert await one_.probes() == []
    lease = await claim_one_in_lane(one_)
    await end(one_, down(lease, address="127.0.0.1:9", run_at=time.time() + 60))

    assert await one_.probes() == [(LANE, "127.0.0.1:9")]
    assert await two.probes() == await one_.probes() == []
    await clock_passes(time.time() + 0.1)
    assert await two.probes() == [(LANE, "127.0.0.1:9")]


async def test_health_url_goes_before_the_address(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={**CALM, "health_url": "http://127.0.0.1:9/health"})
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    lease = await claim_one_in_lane(member)
    await end(member, down(lease, address="127.0.0.1:9", run_at=time.time() + 60))

    assert await member.probes() == [(LANE, "http://127.0.0.1:9/health")]


async def test_failed_probe_of_a_suspect_lane_opens_it_and_returns_the_attempt(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    job = await add_one(queue, lane=LANE)
    lease = await claim_one_in_lane(member)
    await end(member, down(lease, address="127.0.0.1:9", run_at=time.time() + 60))
    assert await attempts(queue, job.id) == 1
    await member.probed(LANE, False)

    assert (await info(queue)).breaker == "open"
    row = await get(queue, job.id)
    assert (row.state, row.attempts) == (JobState.QUEUED, 0)


async def test_probe_that_turns_to_passing_brings_the_next_try_forward(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 5, lane=LANE)
    await opened(queue, member)
    await member.probed(LANE, False)
    assert await claim_lanes(member) == []
    await member.probed(LANE, True)

    (lease,) = await claim_lanes(member)
    await end(member, up(lease))
    assert len(await claim_lanes(member)) == 4


async def test_healthy_lanes_are_not_probed(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"health_url": "http://127.0.0.1:9/"})
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    await end(member, *map(up, await claim_lanes(member)))

    assert await member.probes() == []
    await member.probed(LANE, False)
    assert (await info(queue)).breaker == "closed"


async def test_open_breaker_of_a_parent_stops_its_children_until_it_closes(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, all={}, api={"parent": "all"})
    member = await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    for lease in [_lease(1_000_001), _lease(1_000_002)]:
        held = await permitted(member, "all")
        await give_back(member, [held], News.UNAVAILABLE, lease)
    assert (await info(queue, "all")).breaker == "open"
    assert await claim_lanes(member) == []
    await try_is_due(queue, "all")
    trial = await permitted(member, "all")
    await give_back(member, [trial], News.SUCCESS, _lease(1_000_003))

    assert len(await claimed_soon(member)) == 3


async def test_member_that_dies_with_the_try_of_a_parent_frees_its_children(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, all={}, api={"parent": "all"})
    frozen, other = await ledger.join(queue), await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    for lease in [_lease(1_000_001), _lease(1_000_002)]:
        held = await permitted(frozen, "all")
        await give_back(frozen, [held], News.UNAVAILABLE, lease)
    await try_is_due(queue, "all")
    await permitted(frozen, "all")
    assert await claim_lanes(other) == []
    ledger.lapse(frozen)
    await other.upkeep()

    assert await claimed_soon(other)
