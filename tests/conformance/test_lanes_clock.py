"""A clock that was an hour ahead for a moment does not stop the lanes for an hour."""

import time
from pathlib import Path

import pytest

from penstock.ports.lanes import Busy
from tests.conformance.lane_support import (
    LANE,
    claim_lanes,
    claim_one_in_lane,
    claimed_soon,
    end,
    info,
    open_lanes,
    opened,
    permit,
    permitted,
    up,
)
from tests.conformance.support import Ledger, add

HOUR = 3600.0
RATE = {"min_interval_seconds": 0.2, "max_parallel": 5}


async def test_lane_goes_on_with_the_next_upkeep(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=RATE)
    member = await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    first = await claim_one_in_lane(member)
    assert await claim_lanes(member) == []
    ledger.backend.ahead(ledger.url, HOUR)
    assert await claim_lanes(member) == []
    await member.upkeep()
    (second,) = await claimed_soon(member, lanes=1)
    assert second.start_at - first.start_at >= 0.2, "and the rate is kept"


async def test_permits_need_no_upkeep(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=RATE)
    member = await ledger.join(queue)
    first = await permitted(member)
    ledger.backend.ahead(ledger.url, HOUR)
    second = await permitted(member)
    assert 0.2 <= second.start_at - first.start_at < HOUR


async def test_whoever_changes_a_lane_meanwhile_does_not_hide_that_it_is_ahead(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api=RATE)
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    running = await claim_one_in_lane(member)
    assert await claim_lanes(member) == []
    ledger.backend.ahead(ledger.url, HOUR)
    await end(member, up(running))
    assert len(await claimed_soon(member, lanes=1)) == 1


async def test_breaker_that_opened_meanwhile_has_its_next_try(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    await opened(queue, member)
    ledger.backend.ahead(ledger.url, HOUR)
    await member.upkeep()
    lane = await info(queue)
    assert lane.retry_at is not None
    assert lane.retry_at < queue.now() + 60
    assert len(await claimed_soon(member, lanes=1)) == 1


async def test_clock_ahead_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with the clock itself: that of SQLite is this machine's."""
    ledger = Ledger("sqlite", tmp_path)
    queue = await open_lanes(ledger, api=RATE)
    member = await ledger.join(queue)
    await member.upkeep()
    await add(queue, 4, lane=LANE)
    right = time.time
    with monkeypatch.context() as moved:
        moved.setattr(time, "time", lambda: right() + HOUR)
        await member.upkeep()
        assert len(await claim_lanes(member)) == 1
        assert isinstance(await permit(member, patience=0.0), Busy)
    await member.upkeep()
    await claimed_soon(member, lanes=1)
    await ledger.close()
