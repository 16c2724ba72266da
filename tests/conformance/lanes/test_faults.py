"""Whose fault a failure is: the job's own, and it spends an attempt, or its lane's."""

import time

import pytest

from penstock.model.job import JobState
from penstock.ports.lanes import LaneCommand, News
from penstock.ports.queue import Outcome
from tests.conformance.lane_support import (
    CALM,
    LANE,
    QUICK,
    attempts,
    claim_lanes,
    claim_one_in_lane,
    claimed_soon,
    down,
    end,
    give_back,
    info,
    open_lanes,
    own_fault,
    permitted,
    up,
)
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    clock_passes,
    get,
    ids_of,
)


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
    before = time.time()
    settled = await end(member, down(second))

    assert settled.spared == {second.ref}
    lane = await info(queue)
    assert lane.breaker == "open"
    assert lane.retry_at is not None
    assert before + 0.8 * 60 - 0.1 <= lane.retry_at <= time.time() + 60.1
    for job in jobs:
        row = await get(queue, job.id)
        assert (row.state, row.attempts) == (JobState.QUEUED, 0), "also who failed first"
    assert await claim_lanes(member) == []


async def test_first_to_fail_gets_all_its_attempts_back_however_often_it_has_run(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    first, second = await claim_lanes(member, 2)
    await end(member, down(first))
    (again,) = await claimed_soon(member, lanes=1)
    await end(member, down(again, run_at=time.time() + 60))
    assert (again.id, await attempts(queue, first.id)) == (first.id, 2)
    await end(member, down(second))

    assert [await attempts(queue, one.id) for one in (first, second)] == [0, 0]


async def test_first_to_fail_gets_its_attempt_back_while_it_runs_again(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    first, second = await claim_lanes(member, 2)
    await end(member, down(first))
    (again,) = await claimed_soon(member, lanes=1)
    assert (again.id, again.attempts) == (first.id, 2)
    await end(member, down(second))
    assert await attempts(queue, first.id) == 1, "the run that goes on"
    settled = await end(member, down(again))

    assert settled.spared == {again.ref}
    assert await attempts(queue, first.id) == 0


async def test_first_to_fail_stays_a_dead_letter_if_it_has_failed_by_itself_since(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    first, second = await claim_lanes(member, 2)
    await end(member, down(first))
    (again,) = await claimed_soon(member, lanes=1)
    await end(member, own_fault(again)._replace(outcome=Outcome.FAILED))
    await end(member, down(second))

    row = await get(queue, first.id)
    assert (row.state, row.attempts) == (JobState.FAILED, 1)


async def test_first_to_fail_keeps_its_time_if_it_was_released_since(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    first, second = await claim_lanes(member, 2)
    await end(member, down(first))
    (again,) = await claimed_soon(member, lanes=1)
    later = time.time() + 3600
    await end(member, own_fault(again, later)._replace(outcome=Outcome.RELEASED))
    await end(member, down(second))

    row = await get(queue, first.id)
    assert (row.state, row.attempts) == (JobState.QUEUED, 0)
    assert row.run_at == pytest.approx(later, rel=0, abs=1)


async def test_run_with_several_failed_requests_gets_one_attempt_back(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    first, second = await claim_lanes(member, 2)
    await end(member, own_fault(first))
    (again,) = await claimed_soon(member, lanes=1)
    for _ in range(2):
        await give_back(member, [await permitted(member)], News.UNAVAILABLE, again)
    await end(member, own_fault(again))
    assert await attempts(queue, first.id) == 2
    await end(member, down(second))

    assert await attempts(queue, first.id) == 1, "the first run failed by itself"


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
    await queue.control(LANE, LaneCommand.RESET)

    assert ids_of(await claimed_soon(member)) == ids_of(jobs)


async def test_two_jobs_open_a_lane_they_only_take_permits_of(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM, own={})
    member = await ledger.join(queue)
    jobs = await add(queue, 2, lane="own")
    leases = await claim_lanes(member)
    for lease in leases:
        held = await permitted(member)
        await give_back(member, [held], News.UNAVAILABLE, lease)
    before = time.time()
    settled = await end(member, *(down(lease, lane=LANE) for lease in leases))

    assert settled.spared == {lease.ref for lease in leases}
    assert {lane.name: lane.breaker for lane in await queue.lanes()} == {
        "api": "open",
        "own": "closed",
    }
    for job in jobs:
        row = await get(queue, job.id)
        assert (row.state, row.attempts) == (JobState.QUEUED, 0)
        assert row.run_at > before + 10, "it waits for that lane, not in its own line"
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
