"""Lanes that learn how many requests at a time they take: one value for all processes, kept by all
stores alike."""

from typing import Any

from penstock.model.lane import LaneLimits
from penstock.ports.lanes import LaneCommand, LearntLimit, News, Permit, Report, Returned
from penstock.ports.queue import JobQueue, Member
from tests.conformance.lane_support import (
    LANE,
    ask,
    claim_lanes,
    end,
    give_back,
    info,
    open_lanes,
    up,
)
from tests.conformance.support import Ledger, add

AUTO: dict[str, Any] = {"max_parallel": "auto", "auto_min": 2, "auto_max": 20}
DONE = Report(News.SUCCESS, took=0.0)
REFUSED = Report(News.RATE_LIMITED, took=0.0)
NOTHING_SAID = (-1.0, 0.0)


async def filled(member: Member, lane: str = LANE) -> list[Permit]:
    """Permits, as many as there are."""
    answers = await member.permits([ask(lane) for _ in range(40)])
    return [answer for answer in answers if isinstance(answer, Permit)]


async def told(member: Member, *reports: tuple[Permit, Report]) -> None:
    back = [Returned(permit, report, 0, 0) for permit, report in reports]
    await member.exchange([], [], None, returned=back)


async def rounds(member: Member, count: int, lane: str = LANE) -> int:
    """Let the lane be full so often, and all go well: how many requests at a time there were."""
    most = 0
    for _ in range(count):
        permits = await filled(member, lane)
        most = max(most, len(permits))
        await told(member, *((permit, DONE) for permit in permits))
    return most


async def learnt(queue: JobQueue, lane: str = LANE) -> LearntLimit:
    found = (await info(queue, lane)).learnt
    assert found is not None
    return found


async def test_it_has_more_requests_at_a_time_while_all_goes_well(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=AUTO)
    member = await ledger.join(queue)
    assert len(await filled(member)) == 4  # nothing is known yet

    other = await ledger.join(queue)
    assert await filled(other) == []


async def test_it_stays_within_its_bounds(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=AUTO)
    member = await ledger.join(queue)

    assert await rounds(member, 14) == 20
    found = await learnt(queue)
    assert (found.max_parallel, found.least, found.most) == (20, 2, 20)
    assert "no errors" in found.why
    assert (await info(queue)).max_parallel == 20
    for _ in range(8):
        permits = await filled(member)
        await told(member, *((permit, REFUSED) for permit in permits))
    assert (await learnt(queue)).max_parallel == 2


async def test_a_429_cuts_it_once_and_pauses_nothing(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=AUTO)
    member = await ledger.join(queue)
    await rounds(member, 14)
    permits = await filled(member)

    await told(member, *((permit, REFUSED) for permit in permits))
    lane = await info(queue)
    assert lane.learnt is not None
    assert lane.learnt.why == "429"
    assert lane.max_parallel == lane.learnt.max_parallel == 14
    assert (lane.blocked_why, lane.configured_spacing) == (None, None)
    assert len(await filled(member)) == 14


async def test_a_pause_that_is_told_is_kept(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=AUTO)
    member = await ledger.join(queue)
    (permit, *_) = await filled(member)

    await told(member, (permit, REFUSED._replace(retry_after=60.0)))
    assert (await info(queue)).blocked_why == "rate limited"
    assert await filled(member) == []


async def test_jobs_tell_it_as_well(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=AUTO)
    member = await ledger.join(queue)
    await add(queue, 60, lane=LANE)

    seen = []
    for _ in range(6):
        leases = await claim_lanes(member, 40)
        seen.append(len(leases))
        await end(member, *(up(one)._replace(report=DONE) for one in leases))
    assert seen[0] == 4
    assert seen[-1] > 4


async def test_what_was_learnt_is_still_known_after_a_restart(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=AUTO)
    await rounds(await ledger.join(queue), 14)
    before = await learnt(queue)

    again = await open_lanes(ledger, api=AUTO)
    await add(again, 1, lane=LANE)
    assert await learnt(again) == before
    assert len(await filled(await ledger.join(again))) == 20


async def test_other_bounds_hold_at_once(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=AUTO)
    await rounds(await ledger.join(queue), 14)

    again = await open_lanes(ledger, api={**AUTO, "auto_max": 6})
    member = await ledger.join(again)
    assert len(await filled(member)) <= 6
    assert (await learnt(again)).max_parallel == 6

    fixed = await open_lanes(ledger, api={"max_parallel": 3})
    assert await filled(await ledger.join(fixed)) == []
    lane = await info(fixed)
    assert (lane.max_parallel, lane.learnt) == (3, None)


async def test_what_an_operator_says_goes_before_it(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=AUTO)
    member = await ledger.join(queue)
    await rounds(member, 14)

    await queue.limit(LANE, LaneLimits(max_parallel=3))
    assert await rounds(member, 10) == 3
    await queue.limit(LANE, None)
    assert await rounds(member, 1) == 20
    assert await queue.control(LANE, LaneCommand.RESET)
    assert await rounds(member, 1) == 4


async def test_a_parent_learns_from_its_children(ledger: Ledger) -> None:
    lanes: dict[str, dict[str, Any]] = {"all": AUTO, "one": {"max_parallel": 50, "parent": "all"}}
    queue = await open_lanes(ledger, **lanes)
    member = await ledger.join(queue)

    assert await rounds(member, 14, "one") == 20
    assert (await learnt(queue, "all")).max_parallel == 20
    assert (await info(queue, "one")).learnt is None


async def test_it_starts_no_more_than_the_provider_says_are_left(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=AUTO)
    member = await ledger.join(queue)
    await rounds(member, 14)

    (permit, *others) = await filled(member)
    await give_back(member, others)
    await told(member, (permit, DONE._replace(left=(3.0, 600.0, *NOTHING_SAID, 0.0))))
    found = await learnt(queue)
    assert (found.told, (await info(queue)).max_parallel) == (3, 3)
    permits = await filled(member)
    assert len(permits) == 3
    # Tokens are told too: there is room for two more requests like this one.
    few = DONE._replace(left=(50.0, 600.0, 2500.0, 600.0, 1000.0))
    await told(member, *((permit, few) for permit in permits))
    permits = await filled(member)
    assert len(permits) == 2
    none = DONE._replace(left=(0.0, 600.0, *NOTHING_SAID, 1000.0))
    await told(member, *((permit, none) for permit in permits))
    assert await filled(member) == []
    assert (await info(queue)).blocked_why == "rate limited"
