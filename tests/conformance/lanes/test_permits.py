"""Permits for requests made inside jobs."""

import time

import pytest

from penstock.ports.lanes import Busy, LaneCommand, News, Permit, Report, Returned
from penstock.ports.queue import JobQueue, Member, Topic
from tests.conformance.lane_support import (
    CALM,
    LANE,
    ask,
    claim_lanes,
    claim_one_in_lane,
    down,
    end,
    give_back,
    info,
    limited,
    open_lanes,
    permit,
    permitted,
    refused,
    try_is_due,
    up,
    want_lanes,
)
from tests.conformance.support import Ledger, add, add_one, clock_passes, until
from tests.support.rate_windows import least_gap, most_in_window
from tests.support.waiting import PATIENCE


async def test_permit_is_a_start_time_and_a_slot(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 2})
    member = await ledger.join(queue)
    before = time.time()
    granted = await permitted(member, ref=-5)

    assert (granted.lane, granted.ref) == (LANE, -5)
    assert before <= granted.start_at <= time.time()
    assert (await info(queue)).in_flight == 1
    await give_back(member, [granted])
    assert (await info(queue)).in_flight == 0


async def test_permit_makes_a_lane_nobody_has_used_yet(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 7, "parent": "all"}, all={})
    member = await ledger.join(queue)
    assert await queue.lanes() == []
    await permitted(member)

    lanes = {lane.name: (lane.max_parallel, lane.parent) for lane in await queue.lanes()}
    assert lanes == {"api": (7, "all"), "all": (1000, None)}


async def test_all_that_are_asked_for_in_one_trip_are_answered_in_order(ledger: Ledger) -> None:
    rate = {"requests_per_interval": 10, "interval_seconds": 0.5}
    queue = await open_lanes(ledger, api=rate, other={"max_parallel": 1})
    member = await ledger.join(queue)
    asked = [ask() for _ in range(8)] + [ask("other"), ask("other"), ask("third")]
    answers = await member.permits(asked)

    granted = [answer for answer in answers[:8] if isinstance(answer, Permit)]
    assert [answer.ref for answer in granted] == [request.ref for request in asked[:8]]
    starts = [answer.start_at for answer in granted]
    assert starts == sorted(starts)
    assert least_gap(starts) >= 0.05
    assert [type(answer) for answer in answers[8:]] == [Permit, Busy, Permit]


async def test_wait_longer_than_the_patience_is_refused_and_costs_nothing(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"min_interval_seconds": 30.0, "requests_per_day": 10})
    member = await ledger.join(queue)
    first = await permitted(member)
    answers = [await permit(member, patience=0.1) for _ in range(5)]

    for answer in answers:
        assert isinstance(answer, Busy)
        assert (answer.lane, answer.why) == (LANE, "its rate")
        assert answer.until == pytest.approx(first.start_at + 30.0, abs=1.0)
    lane = await info(queue)
    assert (lane.in_flight, lane.used_today) == (1, 1)
    second = await permitted(member, patience=60.0)
    assert second.start_at == pytest.approx(first.start_at + 30.0, abs=1.0)


async def test_rate_binds_permits_and_jobs_together(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"requests_per_interval": 4, "interval_seconds": 0.2})
    member = await ledger.join(queue)
    await add(queue, 6, lane=LANE)
    starts: list[float] = []
    while len(starts) < 12:
        starts += [lease.start_at for lease in await claim_lanes(member)]
        answer = await permit(member, patience=0.06)
        starts += [answer.start_at] if isinstance(answer, Permit) else []

    assert most_in_window(starts, 0.2) <= 4


async def test_for_its_own_lane_a_job_takes_rate_only(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"min_interval_seconds": 0.05, "max_parallel": 1})
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    lease = await claim_one_in_lane(member)
    assert isinstance(await permit(member), Busy)
    extra = await permitted(member, rate_only=True)

    assert extra.start_at >= lease.start_at + 0.05
    assert (await info(queue)).in_flight == 1
    await give_back(member, [extra], News.SUCCESS, lease)
    assert (await info(queue)).in_flight == 1, "the job still holds its slot"
    await end(member, up(lease))
    assert (await info(queue)).in_flight == 0


async def test_job_that_goes_on_takes_a_slot_and_no_start(ledger: Ledger) -> None:
    """It has given its own back while it waited for a permit in another lane."""
    queue = await open_lanes(
        ledger,
        api={"parent": "all", "min_interval_seconds": 30.0, "requests_per_day": 2},
        all={"max_parallel": 2},
    )
    member = await ledger.join(queue)
    await add(queue, 1, lane=LANE)
    lease = await claim_one_in_lane(member)
    await give_back(member, [Permit(LANE, lease.seq, lease.start_at)], None, lease)
    assert [(await info(queue, name)).in_flight for name in (LANE, "all")] == [0, 0]
    await queue.control(LANE, LaneCommand.PAUSE)
    again = await permitted(member, slot_only=True)

    assert [(await info(queue, name)).in_flight for name in (LANE, "all")] == [1, 1]
    assert (await info(queue)).used_today == 1, "it makes no request"
    await permitted(member, "all")
    busy = await permit(member, slot_only=True)
    assert isinstance(busy, Busy)
    assert (busy.lane, busy.until) == ("all", None), "limits hold"
    await give_back(member, [again])
    await end(member, up(lease))
    assert (await info(queue)).in_flight == 0


async def test_rate_of_the_parent_binds_a_job_that_asks_for_its_own_lane(ledger: Ledger) -> None:
    queue = await open_lanes(
        ledger, api={"parent": "all"}, all={"min_interval_seconds": 30.0, "max_parallel": 1}
    )
    member = await ledger.join(queue)
    await add_one(queue, lane=LANE)
    lease = await claim_one_in_lane(member)

    busy = await permit(member, rate_only=True, patience=0.1)
    assert isinstance(busy, Busy)
    assert busy.lane == "all"
    later = await permitted(member, rate_only=True, patience=60.0)
    assert later.start_at >= lease.start_at + 30.0


BLOCKS = {
    "slots": ("all its slots are taken", None),
    "breaker": ("its breaker is open", 60.0),
    "paused": ("paused", 1e9),
    "429": ("rate limited", 30.0),
    "credentials": ("credentials", 1e9),
    "day": ("daily", 0.0),
}


@pytest.mark.parametrize("name", BLOCKS)
async def test_busy_lane_says_why_and_until_when(ledger: Ledger, name: str) -> None:
    queue = await open_lanes(
        ledger,
        api={
            "max_parallel": 4,
            "breaker_first_seconds": 60.0,
            "breaker_cap_seconds": 60.0,
            "requests_per_day": 4,
        },
    )
    member = await ledger.join(queue)
    before = time.time()
    await block(queue, member, name)
    busy = await permit(member)
    why, least = BLOCKS[name]

    assert isinstance(busy, Busy)
    assert busy.lane == LANE
    assert why in busy.why
    if least is None:
        assert busy.until is None
    else:
        assert busy.until is not None
        assert busy.until > before + 0.7 * least


async def block(queue: JobQueue, member: Member, name: str) -> None:
    if name in ("slots", "day"):
        held = [await permitted(member) for _ in range(4)]
        if name == "day":
            await give_back(member, held)
        return
    await add(queue, 3, lane=LANE)
    leases = await claim_lanes(member, 3)
    match name:
        case "breaker":
            await end(member, *map(down, leases))
        case "paused":
            await queue.control(LANE, LaneCommand.PAUSE)
        case "429":
            await end(member, limited(leases[0], 30.0))
        case _:
            await end(member, *map(refused, leases))


async def test_open_breaker_gives_no_permit_before_its_time_and_then_one(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    await end(member, *map(down, await claim_lanes(member)))
    assert isinstance(await permit(member), Busy)
    ledger.later(60)
    answers = await member.permits([ask(), ask(), ask()])

    assert [type(answer) for answer in answers] == [Permit, Busy, Busy]


async def test_job_that_is_the_try_may_make_its_further_requests(ledger: Ledger) -> None:
    """A job of several requests (pages, a brief retry) is one try, from its first to its last."""
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    await end(member, *map(down, await claim_lanes(member)))
    await try_is_due(queue)
    lease = await claim_one_in_lane(member)
    answer = await permit(member, rate_only=True, job=lease.seq)

    assert isinstance(answer, Permit), answer
    assert await claim_lanes(member) == [], "nobody else tries meanwhile"
    await give_back(member, [answer], News.SUCCESS, lease)
    await end(member, up(lease))
    assert (await info(queue)).breaker == "closed"


async def test_job_that_is_not_the_try_makes_no_request_beside_it(ledger: Ledger) -> None:
    """It was started before the breaker opened, by the process that now makes the try."""
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await add(queue, 5, lane=LANE)
    *failing, older = await claim_lanes(member, 3)
    await end(member, *map(down, failing))
    await try_is_due(queue)
    trial = await claim_one_in_lane(member)

    assert isinstance(await permit(member, rate_only=True, job=older.seq), Busy)
    assert isinstance(await permit(member, rate_only=True, job=trial.seq), Permit)


async def test_cancelled_request_of_the_try_does_not_let_a_second_one_start(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    await end(member, *map(down, await claim_lanes(member)))
    await try_is_due(queue)
    lease = await claim_one_in_lane(member)
    answer = await permit(member, rate_only=True, job=lease.seq)
    if isinstance(answer, Permit):
        await give_back(member, [answer], None, lease)

    assert await claim_lanes(member) == []
    assert isinstance(await permit(member), Busy)


async def test_freed_permit_wakes_whoever_waits_for_one(ledger: Ledger) -> None:
    """Also where no job is in line: a job elsewhere may be waiting inside its handler."""
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    one_, two = await ledger.join(queue), await ledger.join(queue)
    held = await permitted(one_)
    assert isinstance(await permit(two), Busy)
    ready = queue.listen(Topic.READY)
    while await ready.wait(0.05):
        pass
    await give_back(one_, [held], News.SUCCESS)

    assert await ready.wait(PATIENCE)


async def test_freed_permit_wakes_the_line_of_jobs(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(queue)
    held = await permitted(member)
    await add(queue, 1, lane=LANE)
    assert await claim_lanes(member) == []
    ready = queue.listen(Topic.READY)
    while await ready.wait(0.05):
        pass
    await give_back(member, [held])

    assert await ready.wait(PATIENCE)
    assert len(await claim_lanes(member)) == 1


async def test_permit_taken_back_and_given_in_one_trip(ledger: Ledger) -> None:
    """What a trip returns is there for what it claims."""
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(queue)
    held = await permitted(member)
    await add(queue, 1, lane=LANE)
    assert await claim_lanes(member) == []
    back = [Returned(held, Report(News.SUCCESS), 0, 0)]
    trip = await member.exchange([], [], want_lanes(), back)

    assert len(trip.leases) == 1


async def test_successes_under_permits_speed_a_slowed_lane_up_again(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"min_interval_seconds": 0.001})
    member = await ledger.join(queue)
    await add(queue, 1, lane=LANE)
    for _ in range(3):
        (lease,) = await until(lambda: claim_lanes(member), "the lane to go on")
        await end(member, limited(lease, 0.01))
    slowed = (await info(queue)).spacing
    assert slowed == pytest.approx(4 * 0.00102, rel=0.01)
    blocked = (await info(queue)).blocked_until
    await clock_passes(blocked or 0.0)
    for _ in range(20):
        await give_back(member, [await permitted(member)], News.SUCCESS)

    assert (await info(queue)).spacing == pytest.approx(slowed / 2)


async def test_daily_limit_counts_permits(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"requests_per_day": 3})
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    await permitted(member)
    assert len(await claim_lanes(member)) == 2

    assert isinstance(await permit(member), Busy)
    assert isinstance(await permit(member, rate_only=True), Busy)
    lane = await info(queue)
    assert (lane.per_day, lane.used_today) == (3, 3)


async def test_job_asks_for_a_sibling_under_the_parent_whose_only_slot_it_holds(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(
        ledger, llm={"max_parallel": 1}, plan={"parent": "llm"}, answer={"parent": "llm"}
    )
    member = await ledger.join(queue)
    await add(queue, 2, lane="plan")
    (lease,) = await claim_lanes(member)
    granted = await permitted(member, "answer", job=lease.seq)

    assert (await info(queue, "llm")).in_flight == 1
    assert (await info(queue, "answer")).in_flight == 1
    assert isinstance(await permit(member, "answer"), Busy), "nobody else gets one"
    await give_back(member, [granted])
    await end(member, up(lease))
    assert [(await info(queue, name)).in_flight for name in ("llm", "plan", "answer")] == [0, 0, 0]


async def test_permit_tells_the_time_a_request_may_take(ledger: Ledger) -> None:
    queue = await open_lanes(
        ledger, all={"timeout_seconds": 9.0}, api={"parent": "all"}, short={"timeout_seconds": 2.0}
    )
    member = await ledger.join(queue)

    assert (await permitted(member)).timeout == 9.0
    assert (await permitted(member, "short")).timeout == 2.0
    assert (await permitted(member, "third")).timeout is None


async def test_nobody_waits_inside_a_job_for_a_lane_in_trouble(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 2, **CALM}, own={})
    member = await ledger.join(queue)
    await add(queue, 2, lane="own")
    first, second = await claim_lanes(member)
    await give_back(member, [await permitted(member)], News.UNAVAILABLE, first)
    await give_back(member, [await permitted(member)], News.UNAVAILABLE, second)

    answer = await permit(member, patience=60.0)
    assert isinstance(answer, Busy)
    assert answer.give_up
    ledger.later(60)
    trial = await permitted(member)
    answer = await permit(member)
    assert isinstance(answer, Busy)
    assert answer.give_up, "also while somebody else makes the try"
    await give_back(member, [trial])


async def test_who_asks_and_is_no_job_counts_as_one_witness(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 2})
    member = await ledger.join(queue)

    async def fails(visit: int) -> None:
        granted = await permitted(member, job=visit)
        told = Returned(granted, Report(News.UNAVAILABLE), visit, 0)
        await member.exchange([], [], None, [told])

    await fails(-1001)
    await fails(-1001)
    assert (await info(queue)).breaker == "suspect"
    await fails(-1002)

    lane = await info(queue)
    assert (lane.breaker, lane.in_flight) == ("open", 0)
