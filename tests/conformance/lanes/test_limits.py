"""Limits that an operator gives a lane while jobs run: at once, for all, and until taken back."""

import time

import pytest

from penstock.model.lane import SPARE, LaneConfig, LaneLimits
from penstock.ports.lanes import Busy, Permit
from penstock.ports.queue import JobQueue, Member
from tests.conformance.lane_support import (
    CALM,
    LANE,
    a_day_ahead,
    claim_lanes,
    claimed_soon,
    config_of,
    down,
    end,
    finish_in_lane,
    give_back,
    info,
    limited,
    open_lanes,
    permit,
    permitted,
    up,
)
from tests.conformance.support import Ledger, add, until

SLOW = {"min_interval_seconds": 60.0, "max_parallel": 10}
NARROW = {"max_parallel": 1}


async def test_a_lane_that_nobody_uses_has_no_limits(queue: JobQueue) -> None:
    assert not await queue.limit("nobody", LaneLimits(max_parallel=3))
    assert not await queue.limit("nobody", None)


async def test_more_slots_are_there_at_once_for_claims_and_permits(ledger: Ledger) -> None:
    queue, member = await narrow(ledger)
    await add(queue, 10, lane=LANE)
    assert len(await claim_lanes(member)) == 1
    assert await claim_lanes(member) == [], "the line waits for its slot"
    assert isinstance(await permit(member), Busy)

    elsewhere = await open_lanes(ledger, api=NARROW)
    assert await elsewhere.limit(LANE, LaneLimits(max_parallel=4))

    assert isinstance(await permit(member), Permit)
    assert len(await claim_lanes(member)) == 2
    lane = await info(queue)
    assert (lane.overridden, lane.max_parallel, lane.in_flight) == (True, 4, 4)
    assert lane.limits == LaneLimits(max_parallel=4)


async def narrow(ledger: Ledger) -> tuple[JobQueue, Member]:
    queue = await open_lanes(ledger, api=NARROW)
    await queue.configure([LANE])
    return queue, await ledger.join(queue)


async def test_with_fewer_slots_than_are_taken_nothing_starts(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 5})
    member = await ledger.join(queue)
    await add(queue, 10, lane=LANE)
    leases = await claim_lanes(member, 4)
    assert len(leases) == 4
    await queue.limit(LANE, LaneLimits(max_parallel=2))

    assert await claim_lanes(member) == []
    assert isinstance(await permit(member), Busy)
    await end(member, up(leases[0]), up(leases[1]))
    assert await claim_lanes(member) == [], "two are still under way"
    await end(member, up(leases[2]))
    assert len(await claimed_soon(member)) == 1
    assert (await info(queue)).in_flight == 2


async def test_a_faster_rate_does_not_wait_for_the_slow_ones_turn(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=SLOW)
    member = await ledger.join(queue)
    await add(queue, 5, lane=LANE)
    assert len(await claim_lanes(member)) == 1
    assert await claim_lanes(member) == []

    await queue.limit(LANE, LaneLimits(min_interval_seconds=0.01))
    second = await claimed_soon(member)
    assert second[0].start_at < time.time() + 5
    assert (await info(queue)).spacing == pytest.approx(0.01 * SPARE)


async def test_a_slower_rate_counts_from_the_last_start(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"min_interval_seconds": 0.01})
    member = await ledger.join(queue)
    await add(queue, 5, lane=LANE)
    (first, *_) = await claim_lanes(member, 1)

    await queue.limit(LANE, LaneLimits(requests_per_interval=6, interval_seconds=600))
    assert await claim_lanes(member) == []
    busy = await permit(member)
    assert isinstance(busy, Busy)
    assert busy.until == pytest.approx(first.start_at + 100 * SPARE, abs=0.1)


async def test_a_lane_that_had_no_rate_begins_with_a_pause(ledger: Ledger) -> None:
    """Nobody knows when its last request was, and it may have been just now."""
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    assert isinstance(await permit(member), Permit)
    before = time.time()
    await queue.limit(LANE, LaneLimits(min_interval_seconds=100))
    busy = await permit(member)
    assert isinstance(busy, Busy)
    assert busy.until is not None
    assert busy.until >= before + 100


async def test_limits_outlast_configuration_restarts_and_idleness(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=NARROW)
    await finish_in_lane(queue, ledger)
    await queue.limit(LANE, LaneLimits(max_parallel=3, requests_per_day=50))
    await queue.configure([LANE])

    other = await open_lanes(ledger, api={"max_parallel": 7, "requests_per_day": 9})
    await other.configure([LANE])
    ledger.idle(2 * 3600)
    worker = await ledger.join(other)
    await worker.upkeep()
    for seen in (queue, other, await open_lanes(ledger)):
        lane = await info(seen)
        assert (lane.max_parallel, lane.per_day, lane.overridden) == (3, 50, True)

    assert await queue.limit(LANE, None)
    lane = await info(queue)
    assert (lane.max_parallel, lane.per_day) == (7, 9), "what was configured meanwhile"
    assert (lane.overridden, lane.limits) == (False, None)


async def test_only_what_is_given_is_other_than_configured(ledger: Ledger) -> None:
    config = {"requests_per_interval": 10, "interval_seconds": 1.0, "max_parallel": 4}
    queue = await open_lanes(ledger, api=config)
    await queue.configure([LANE])
    await queue.limit(LANE, LaneLimits(requests_per_day=5))

    lane = await info(queue)
    assert (lane.max_parallel, lane.per_day) == (4, 5)
    assert lane.spacing == pytest.approx(LaneConfig(**config).spacing)  # type: ignore[arg-type]
    await queue.limit(LANE, LaneLimits(max_parallel=2))
    assert (await info(queue)).per_day is None, "it takes the place of what was given before"


async def test_a_daily_limit_holds_from_then_on(ledger: Ledger) -> None:
    await a_day_ahead()
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    await give_back(member, [await permitted(member) for _ in range(3)])
    await queue.limit(LANE, LaneLimits(requests_per_day=4))

    await permitted(member)
    busy = await permit(member)
    assert isinstance(busy, Busy)
    assert busy.why == "its daily limit is used up"
    await queue.limit(LANE, LaneLimits(requests_per_day=5))
    await permitted(member)


async def test_limits_of_a_parent_hold_for_its_children(ledger: Ledger) -> None:
    lanes = {"api": {"parent": "above"}, "other": {"parent": "above"}, "above": NARROW}
    queue = await ledger.open(lane_config=config_of(**lanes))  # type: ignore[arg-type]
    member = await ledger.join(queue)
    await add(queue, 3, lane="api")
    await add(queue, 3, lane="other")
    assert len(await claim_lanes(member)) == 1
    assert await claim_lanes(member) == []

    await queue.limit("above", LaneLimits(max_parallel=3))
    found: list[object] = []

    async def two_more() -> bool:
        found.extend(await claim_lanes(member))
        return len(found) >= 2

    await until(two_more, "the lines of both children")
    assert len(found) == 2
    assert (await info(queue, "above")).in_flight == 3
    assert not (await info(queue, "api")).overridden


async def test_what_a_lane_has_learnt_stays(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"min_interval_seconds": 0.001})
    member = await ledger.join(queue)
    await add(queue, 6, lane=LANE)
    for _ in range(3):
        (lease, *_) = await claimed_soon(member, lanes=1)
        await end(member, limited(lease, 0.02))
        await until(lambda: unblocked(queue), "the pause to end")
    slowed = (await info(queue)).spacing
    assert slowed > 0.001 * SPARE

    await queue.limit(LANE, LaneLimits(min_interval_seconds=0.002))
    assert (await info(queue)).spacing == pytest.approx(2 * slowed), "still slowed down"


async def unblocked(queue: JobQueue) -> bool:
    return (await info(queue)).blocked_why is None


async def test_an_open_breaker_stays_open(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 5, lane=LANE)
    await end(member, *map(down, await claim_lanes(member, 2)))
    await queue.limit(LANE, LaneLimits(max_parallel=50))

    assert await claim_lanes(member) == []
    assert (await info(queue)).breaker == "open"
