"""A clock that was an hour ahead for a moment does not stop the lanes for an hour."""

import time
from pathlib import Path

import pytest

from penstock.ports.lanes import Busy
from penstock.ports.queue import Member
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
    want_lanes,
)
from tests.conformance.support import Ledger, add, exchange

HOUR = 3600.0
RATE = {"min_interval_seconds": 60.0, "max_parallel": 5}


async def goes_on(ledger: Ledger, member: Member) -> float:
    """The lane waits for its rate, and for no hour more; when its next start comes."""
    waiting = await exchange(member, wanted=want_lanes())
    assert waiting.leases == []
    assert waiting.next_at is not None
    assert waiting.next_at < time.time() + 70
    ledger.later(70)
    assert len(await claimed_soon(member, lanes=1)) == 1
    return waiting.next_at


async def test_lane_goes_on_with_the_next_upkeep(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=RATE)
    member = await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    first = await claim_one_in_lane(member)
    assert await claim_lanes(member) == []
    ledger.backend.ahead(ledger.url, HOUR)
    assert await claim_lanes(member) == []
    await member.upkeep()
    assert await goes_on(ledger, member) - first.start_at >= 60, "and the rate is kept"


async def test_permits_need_no_upkeep(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=RATE)
    member = await ledger.join(queue)
    first = await permitted(member)
    ledger.backend.ahead(ledger.url, HOUR)
    second = await permitted(member, patience=600.0)
    assert 60 <= second.start_at - first.start_at < HOUR


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
    await goes_on(ledger, member)


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
    await goes_on(ledger, member)
    await ledger.close()
