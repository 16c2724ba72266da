"""Probes of lanes in trouble: who makes them, where to, and what they bring about."""

import time

from penstock.model.ids import new_ref
from penstock.model.job import JobState
from penstock.ports.lanes import Busy, PermitRequest
from tests.conformance.lane_support import (
    CALM,
    LANE,
    attempts,
    claim_lanes,
    claim_one_in_lane,
    down,
    end,
    info,
    open_lanes,
    opened,
    up,
)
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    get,
)


async def test_address_that_could_not_be_reached_is_probed_by_one_member_at_a_time(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api={**CALM, "probe_seconds": 600.0})
    one_, two = await ledger.join(queue), await ledger.join(await ledger.open())
    await add(queue, 2, lane=LANE)
    assert await one_.probes() == []
    lease = await claim_one_in_lane(one_)
    await end(one_, down(lease, address="127.0.0.1:9", run_at=time.time() + 60))

    assert await one_.probes() == [(LANE, "127.0.0.1:9")]
    assert await two.probes() == await one_.probes() == []
    ledger.later(600)
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

    lane = await info(queue)
    assert (lane.breaker, lane.probe_ok) == ("open", False)
    row = await get(queue, job.id)
    assert (row.state, row.attempts) == (JobState.QUEUED, 0)
    why = "its breaker is open (cannot reach 127.0.0.1:9)"
    assert (row.waiting_for or "").startswith(f"lane {LANE}: {why}, next attempt at ")
    (busy,) = await member.permits([PermitRequest(LANE, new_ref(), False, 0.0)])
    assert isinstance(busy, Busy)
    assert busy.why == why


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
