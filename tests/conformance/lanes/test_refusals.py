"""429, 401 and 403: the lane pauses or is blocked for everybody, and nothing dies of it."""

import time

import pytest

from penstock.model.job import JobState
from penstock.ports.lanes import LaneCommand, News, Report, Returned
from penstock.ports.queue import Lease, Outcome, Settlement
from tests.conformance.lane_support import (
    LANE,
    attempts,
    claim_lanes,
    claim_one_in_lane,
    claimed_soon,
    end,
    give_back,
    info,
    limited,
    open_lanes,
    permitted,
    refused,
)
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    get,
    ids_of,
)


async def test_429_pauses_the_lane_for_everybody_and_costs_no_attempt(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    one_, two = await ledger.join(queue), await ledger.join(await ledger.open())
    jobs = await add(queue, 3, lane=LANE)
    lease = await claim_one_in_lane(one_)
    before = time.time()
    settled = await end(one_, limited(lease, 600.0))

    assert settled.spared == {lease.ref}
    lane = await info(queue)
    assert lane.blocked_why == "rate limited"
    assert lane.blocked_until is not None
    assert before + 599.9 <= lane.blocked_until <= time.time() + 600.1
    assert await claim_lanes(one_) == await claim_lanes(two) == []
    assert await attempts(queue, jobs[0].id) == 0
    ledger.later(600)
    assert ids_of(await claimed_soon(two)) == ids_of(jobs)
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
    await member.exchange([], [], None, [Returned(held, report, lease.seq, lease.token, lease.id)])
    await end(member, told(limited(lease, 0.0, lane=LANE)))

    assert (await info(queue)).spacing == spacing


async def test_run_that_ends_with_a_429_is_on_record_and_spends_no_attempt(ledger: Ledger) -> None:
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    job = await add_one(queue, lane=LANE)
    lease = await claim_one_in_lane(member)
    ended = limited(lease, 30.0)
    await end(member, ended)

    waiting = await get(queue, job.id)
    assert (waiting.state, waiting.attempts) == (JobState.QUEUED, 0)
    (record,) = waiting.history
    assert (record.outcome, record.attempt, record.error) == ("handed back", 1, ended.error)
    assert (record.started_at, record.finished_at) == (ended.started_at, ended.finished_at)


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
    assert (await info(queue)).configured_spacing is None
    for _ in range(3):
        (lease,) = await claimed_soon(member)
        await end(member, limited(lease, 0.01))

    lane = await info(queue)
    assert lane.spacing == pytest.approx(4 * 0.0102, rel=0.01)
    assert lane.configured_spacing == pytest.approx(0.0102)


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
    jobs = await add(queue, 3, lane=LANE, max_retries=0, log="watched")
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


async def test_resuming_a_lane_blocked_for_credentials_starts_it_again(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    jobs = await add(queue, 4, lane=LANE)
    await end(member, *map(refused, await claim_lanes(member)))
    assert await claim_lanes(member) == []
    assert await queue.control(LANE, LaneCommand.RESUME)

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
