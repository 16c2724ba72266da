"""The open breaker: one try at a time, by whom, and when the next."""

import time
from itertools import pairwise

import pytest

from penstock.ports.lanes import Busy, LaneCommand, News
from penstock.ports.queue import JobQueue, Member
from tests.conformance.lane_support import (
    CALM,
    LANE,
    QUICK,
    attempts,
    claim_lanes,
    claimed_soon,
    down,
    end,
    give_back,
    info,
    open_lanes,
    opened,
    own_fault,
    permit,
    permitted,
    try_is_due,
    up,
)
from tests.conformance.support import (
    Ledger,
    add,
    cancel_seen,
    clock_passes,
    dies,
    handed_back,
    one,
)
from tests.support.leases import lease


async def test_open_breaker_allows_one_try_at_a_time_across_members(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    one_, two = await ledger.join(queue), await ledger.join(await open_lanes(ledger, api=CALM))
    await add(queue, 6, lane=LANE)
    await opened(queue, one_)
    assert await claim_lanes(one_) == await claim_lanes(two) == []
    ledger.later(60)

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
    await other.upkeep()

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
    await give_back(member, [trial], News.SUCCESS, lease(-1_000_003))

    assert (await info(queue)).breaker == "closed"
    assert len(await claimed_soon(member)) == 4


async def open_with_permits(queue: JobQueue, member: Member) -> None:
    """Two visits find the lane unavailable under permits of theirs."""
    for asking in [lease(-1_000_001), lease(-1_000_002)]:
        await give_back(member, [await permitted(member)], News.UNAVAILABLE, asking)
    assert (await info(queue)).breaker == "open"


async def test_permit_whose_request_fails_climbs_the_ladder_once(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await open_with_permits(queue, member)
    await try_is_due(queue)
    trial = await permitted(member)
    before = time.time()
    await give_back(member, [trial], News.UNAVAILABLE, lease(-1_000_003))

    lane = await info(queue)
    assert lane.retry_at is not None
    assert before + 0.8 * 2 * QUICK <= lane.retry_at <= time.time() + 2 * QUICK


async def test_permit_of_another_member_with_the_same_number_is_not_the_try(
    ledger: Ledger,
) -> None:
    """Should numbers ever meet, the end of one is not that of the other."""
    queue = await open_lanes(ledger, api={})
    one_, two = await ledger.join(queue), await ledger.join(queue)
    old = await permitted(two, ref=-77)
    await open_with_permits(queue, one_)
    await try_is_due(queue)
    trial = await permitted(one_, ref=-77)
    await give_back(two, [old])

    assert isinstance(await permit(two), Busy), "the try is still under way"
    await give_back(one_, [trial])


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
    await queue.control(LANE, LaneCommand.PAUSE)
    fresh = await ledger.join(queue)

    assert await claim_lanes(fresh) == []


async def test_open_breaker_of_a_parent_stops_its_children_until_it_closes(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, all=CALM, api={"parent": "all"})
    member = await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    for asking in [lease(-1_000_001), lease(-1_000_002)]:
        held = await permitted(member, "all")
        await give_back(member, [held], News.UNAVAILABLE, asking)
    assert (await info(queue, "all")).breaker == "open"
    assert await claim_lanes(member) == []
    ledger.later(60)
    trial = await permitted(member, "all")
    await give_back(member, [trial], News.SUCCESS, lease(-1_000_003))

    assert len(await claimed_soon(member)) == 3


async def test_member_that_dies_with_the_try_of_a_parent_frees_its_children(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, all={}, api={"parent": "all"})
    frozen, other = await ledger.join(queue), await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    for asking in [lease(-1_000_001), lease(-1_000_002)]:
        held = await permitted(frozen, "all")
        await give_back(frozen, [held], News.UNAVAILABLE, asking)
    await try_is_due(queue, "all")
    await permitted(frozen, "all")
    assert await claim_lanes(other) == []
    ledger.lapse(frozen)
    await other.upkeep()

    assert await claimed_soon(other)
