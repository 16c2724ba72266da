"""Lanes as people see, control and configure them."""

import time
from datetime import datetime
from typing import Any

import pytest

from penstock.model.job import JobState
from penstock.ports.lanes import Busy, LaneCommand
from penstock.ports.queue import JobQueue
from tests.conformance.lane_support import (
    CALM,
    LANE,
    ask,
    claim_lanes,
    claim_one_in_lane,
    claimed_soon,
    config_of,
    down,
    end,
    finish_in_lane,
    info,
    limited,
    open_lanes,
    permit,
    refused,
    up,
)
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    finish_as,
    get,
    ids_of,
)


async def waiting_for(queue: JobQueue, job_id: str) -> str:
    job = await get(queue, job_id)
    assert job.waiting_for is not None
    return job.waiting_for


async def test_lanes_are_shown_with_limits_and_use(ledger: Ledger) -> None:
    queue = await open_lanes(
        ledger,
        api={
            "requests_per_interval": 10,
            "interval_seconds": 1.0,
            "max_parallel": 2,
            "requests_per_day": 100,
            "parent": "all",
        },
        all={"max_parallel": 16},
    )
    member = await ledger.join(queue)
    await add(queue, 5, lane=LANE)
    leases = await claim_lanes(member, 1)
    everything, api = await queue.lanes()

    assert (everything.name, everything.parent, everything.max_parallel) == ("all", None, 16)
    assert (everything.in_flight, everything.waiting) == (1, 4), "those of its children"
    assert (api.name, api.parent, api.max_parallel) == (LANE, "all", 2)
    assert api.spacing == pytest.approx(0.102)
    assert (api.in_flight, api.waiting) == (1, 4)
    assert (api.per_day, api.used_today) == (100, 1)
    assert (api.breaker, api.retry_at) == ("closed", None)
    assert (api.blocked_until, api.blocked_why) == (None, None)
    await end(member, up(leases[0]))
    assert (await info(queue)).in_flight == 0


async def test_queue_without_lanes_shows_none(queue: JobQueue) -> None:
    await add(queue, 1)
    assert await queue.lanes() == []


async def test_paused_lane_starts_nothing_until_it_is_resumed(ledger: Ledger) -> None:
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    jobs = await add(queue, 5, lane=LANE)
    running = await claim_one_in_lane(member)
    assert await queue.control(LANE, LaneCommand.PAUSE)

    lane = await info(queue)
    assert lane.blocked_why == "paused"
    assert await claim_lanes(member) == []
    assert isinstance(await permit(member), Busy)
    await end(member, up(running))
    assert (await get(queue, running.id)).state is JobState.COMPLETED, "what runs may end"
    assert await claim_lanes(member) == []
    await add(queue, 1, lane=LANE)
    assert await claim_lanes(member) == []

    assert await queue.control(LANE, LaneCommand.RESUME)
    assert (await info(queue)).blocked_why is None
    leases = await claimed_soon(member)
    assert len(leases) == 5
    assert ids_of(leases)[:4] == ids_of(jobs[1:])


async def test_pause_of_one_lane_leaves_others_alone(ledger: Ledger) -> None:
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    for lane in ("a", "b"):
        await add(queue, 2, lane=lane)
    await queue.control("a", LaneCommand.PAUSE)

    assert [lease.lane for lease in await claim_lanes(member)] == ["b", "b"]


async def test_paused_parent_pauses_its_children_and_resumes_them(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, all={}, api={"parent": "all"})
    member = await ledger.join(queue)
    await add(queue, 3, lane=LANE)
    assert await queue.control("all", LaneCommand.PAUSE)
    assert await claim_lanes(member) == []
    assert await claim_lanes(member) == []
    assert await queue.control("all", LaneCommand.RESUME)

    assert len(await claimed_soon(member)) == 3


async def test_lane_paused_while_full_resumes(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(queue)
    jobs = await add(queue, 3, lane=LANE)
    lease = await claim_one_in_lane(member)
    assert await claim_lanes(member) == []
    await queue.control(LANE, LaneCommand.PAUSE)
    assert await claim_lanes(member) == []
    await end(member, up(lease))
    assert await claim_lanes(member) == []
    await queue.control(LANE, LaneCommand.RESUME)

    assert ids_of(await claimed_soon(member)) == [jobs[1].id]


async def test_controlling_a_lane_that_is_not_there_says_so(queue: JobQueue) -> None:
    for control in LaneCommand:
        assert await queue.control("nowhere", control) is False


async def test_resume_lifts_a_pause_after_429(ledger: Ledger) -> None:
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    await end(member, limited(await claim_one_in_lane(member), 600.0))
    assert await claim_lanes(member) == []
    await queue.control(LANE, LaneCommand.RESUME)

    assert len(await claimed_soon(member)) == 2


async def test_resume_leaves_an_open_breaker_to_its_ladder(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api=CALM)
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    await end(member, *map(down, await claim_lanes(member)))
    await queue.control(LANE, LaneCommand.RESUME)

    assert (await info(queue)).breaker == "open"
    assert await claim_lanes(member) == []


async def test_reset_closes_the_breaker_and_forgets_slow_downs_and_use(ledger: Ledger) -> None:
    queue = await open_lanes(
        ledger, api={**CALM, "min_interval_seconds": 0.01, "requests_per_day": 4}
    )
    member = await ledger.join(queue)
    await add(queue, 4, lane=LANE)
    for _ in range(2):
        (lease,) = await claimed_soon(member, lanes=1)
        await end(member, limited(lease, 0.01))
    for _ in range(2):
        (lease,) = await claimed_soon(member, lanes=1)
        await end(member, down(lease, run_at=time.time() + 60))
    lane = await info(queue)
    assert (lane.breaker, lane.used_today) == ("open", 4)
    assert lane.spacing > 0.02
    assert await queue.control(LANE, LaneCommand.RESET)

    lane = await info(queue)
    assert (lane.breaker, lane.used_today, lane.blocked_why) == ("closed", 0, None)
    assert lane.spacing == pytest.approx(0.0102)
    assert await claimed_soon(member)


async def test_new_limits_hold_as_soon_as_a_process_that_has_them_enqueues(
    ledger: Ledger,
) -> None:
    old = await open_lanes(ledger, api={"max_parallel": 1})
    await add(old, 1, lane=LANE)
    new = await ledger.open(lane_config=config_of(api={"max_parallel": 4, "parent": "all"}))
    await add(new, 1, lane=LANE)

    lane = await info(new)
    assert (lane.max_parallel, lane.parent) == (4, "all")
    assert (await info(new, "all")).name == "all"


WHY = {
    "paused": "paused",
    "429": "rate limited until 20",
    "credentials": "credentials",
    "breaker": "breaker is open, next attempt at 20",
    "slots": "all 2 slots are taken",
    "rate": "its rate; 3 ahead of it; expected at 20",
    "day": "its daily limit, until 20",
}


@pytest.mark.parametrize("name", WHY)
async def test_waiting_job_names_its_lane_and_why(ledger: Ledger, name: str) -> None:
    limits: dict[str, Any] = {
        "slots": {"max_parallel": 2},
        "rate": {"min_interval_seconds": 30.0},
        "day": {"requests_per_day": 2},
    }
    queue = await open_lanes(ledger, api={**CALM, **limits.get(name, {})})
    member = await ledger.join(queue)
    jobs = await add(queue, 5, lane=LANE)
    leases = await claim_lanes(member, 3)
    match name:
        case "paused":
            await queue.control(LANE, LaneCommand.PAUSE)
        case "429":
            await end(member, limited(leases[0], 30.0))
        case "credentials":
            await end(member, *map(refused, leases))
        case "breaker":
            await end(member, *map(down, leases))
        case _:
            assert 1 <= len(leases) <= 2
    said = await waiting_for(queue, jobs[4].id)

    assert said.startswith("lane api: ")
    assert WHY[name] in said


async def test_waiting_job_says_when_it_is_expected_to_start(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"min_interval_seconds": 30.0})
    member = await ledger.join(queue, "work", "other")
    first = await add_one(queue, lane=LANE)
    await add(queue, 2, lane=LANE, kind="other")
    last = await add_one(queue, lane=LANE)
    (lease,) = await claim_lanes(member, 1)
    assert lease.id == first.id

    said = await waiting_for(queue, last.id)
    assert "; 2 ahead of it; " in said, "whatever their kind"
    expected = datetime.fromisoformat(said.partition("expected at ")[2])
    # The next start is one interval (30 s and 2 %) away, and two others come first.
    assert expected.timestamp() == pytest.approx(lease.start_at + 3 * 30.6, abs=2)


async def test_waiting_job_names_the_parent_that_holds_it_up(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, all={"max_parallel": 1}, api={"parent": "all"})
    member = await ledger.join(queue)
    jobs = await add(queue, 2, lane=LANE)
    await claim_one_in_lane(member)

    assert await waiting_for(queue, jobs[1].id) == "lane all: all 1 slots are taken"


async def test_job_whose_lane_is_free_waits_for_its_turn_or_a_worker(ledger: Ledger) -> None:
    queue = await open_lanes(ledger)
    job = await add_one(queue, lane=LANE)
    assert "a worker process that handles" in await waiting_for(queue, job.id)
    await ledger.join(queue)

    assert await waiting_for(queue, job.id) == "lane api: its turn"


@pytest.mark.parametrize("seconds", [1e6, 1e9, 3e11, 1e14])
async def test_absurdly_long_pause_can_be_shown(ledger: Ledger, seconds: float) -> None:
    """A server sends any number it likes as Retry-After."""
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    jobs = await add(queue, 2, lane=LANE)
    await end(member, limited(await claim_one_in_lane(member), seconds))

    assert "rate limited" in await waiting_for(queue, jobs[1].id)
    assert (await info(queue)).blocked_why == "rate limited"


async def test_counts_of_finished_jobs_do_not_depend_on_lanes(ledger: Ledger) -> None:
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    await finish_as(queue, member, "completed")
    await finish_in_lane(queue, ledger)

    (counts,) = await queue.counts()
    assert counts.states[JobState.COMPLETED] == 2


async def test_limits_that_are_configured_replace_those_in_use(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 3})
    await add_one(queue, lane=LANE)
    newer = await open_lanes(ledger, api={"max_parallel": 5})
    assert (await info(queue)).max_parallel == 3
    await newer.configure([LANE])

    assert (await info(queue)).max_parallel == 5


async def test_limits_that_are_only_assumed_change_nothing(ledger: Ledger) -> None:
    """A process without a config file enqueues, too."""
    queue = await open_lanes(ledger, api={"max_parallel": 3, "min_interval_seconds": 1.0})
    await add_one(queue, lane=LANE)
    assuming = await open_lanes(ledger, api={"assumed": True}, new={"assumed": True})
    member = await ledger.join(assuming)
    before = await info(queue)
    await add_one(assuming, lane=LANE)
    await assuming.configure([LANE, "new"])
    await member.permits([ask()])

    after = await info(queue)
    assert (after.max_parallel, after.spacing) == (before.max_parallel, before.spacing)
    assert (await info(queue, "new")).max_parallel == 1000, "what nobody knew is made all the same"


async def test_lane_can_be_paused_before_anybody_uses_it(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={})
    member = await ledger.join(queue)
    await queue.configure([LANE])
    assert await queue.control(LANE, LaneCommand.PAUSE)
    await add_one(queue, lane=LANE)

    assert await claim_lanes(member) == []
