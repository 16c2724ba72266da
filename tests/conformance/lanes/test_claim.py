"""Claiming in a lane: a job and its permit together or not at all, in order, in time."""

import asyncio
import json
import time
from typing import Any

import pytest

from penstock.model.job import JobState, Priority
from penstock.model.lane import SPARE
from penstock.ports.lanes import Permit
from penstock.ports.queue import (
    UNKNOWN_LANE,
    JobQueue,
    KindDefaults,
    Member,
    Want,
)
from tests.conformance.lane_support import (
    LANE,
    ask,
    claim_lanes,
    claim_one_in_lane,
    claimed_soon,
    end,
    info,
    open_lanes,
    permitted,
    up,
    want_lanes,
)
from tests.conformance.support import (
    KIND,
    SHORTLY,
    Ledger,
    add,
    add_one,
    claim,
    clock_passes,
    exchange,
    get,
    handed_back,
    ids_of,
    retry,
    settle,
)
from tests.support.rate_windows import least_gap, most_in_window
from tests.support.waiting import PATIENCE


async def test_job_in_a_lane_is_claimed_with_its_slot_and_a_start_time(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 3})
    member = await ledger.join(queue)
    job = await add_one(queue, lane=LANE)
    assert job.lane == LANE
    before = time.time()
    lease = await claim_one_in_lane(member)

    assert (lease.id, lease.lane, lease.attempts) == (job.id, LANE, 1)
    assert before - 0.1 <= lease.start_at <= time.time() + 0.1
    assert lease.start_at < lease.void_at
    assert (await info(queue)).in_flight == 1
    assert (await get(queue, job.id)).state is JobState.RUNNING


async def test_without_a_permit_the_job_is_not_touched(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(queue)
    first, second = await add(queue, 2, lane=LANE)
    assert ids_of(await claim_lanes(member)) == [first.id]

    for _ in range(5):
        assert await claim_lanes(member) == []
    waiting = await get(queue, second.id)
    assert (waiting.state, waiting.attempts, waiting.history) == (JobState.QUEUED, 0, [])
    assert (await info(queue)).in_flight == 1


async def test_without_a_job_no_permit_is_taken(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"requests_per_day": 3})
    member = await ledger.join(queue)
    job = await add_one(queue, lane=LANE)
    await end(member, up(await claim_one_in_lane(member)))
    for _ in range(5):
        assert await claim_lanes(member) == []

    lane = await info(queue)
    assert (lane.in_flight, lane.used_today, lane.waiting) == (0, 1, 0)
    assert (await get(queue, job.id)).state is JobState.COMPLETED


async def test_claim_for_jobs_without_a_lane_leaves_those_in_lanes_alone(
    queue: JobQueue, member: Member
) -> None:
    await add(queue, 3, lane=LANE)
    free = await add(queue, 3)

    assert ids_of(await claim(member, 10)) == ids_of(free)
    assert len(await claim_lanes(member, 2)) == 2
    assert len(await claim_lanes(member, 10, limit=10)) == 1


async def test_inside_a_lane_the_first_in_line_goes_first(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 2})
    member = await ledger.join(queue)
    low = await add(queue, 2, lane=LANE, priority=Priority.LOW)
    medium = await add(queue, 3, lane=LANE)
    high = await add(queue, 2, lane=LANE, priority=Priority.HIGH)
    order: list[str] = []
    while leases := await claim_lanes(member):
        assert len(leases) <= 2
        order += ids_of(leases)
        await end(member, *map(up, leases))

    assert order == ids_of([*high, *medium, *low])


async def test_tenants_of_a_lane_take_turns(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(queue)
    many = await add(queue, 50, lane=LANE, tenant="many")
    few = await add(queue, 2, lane=LANE, tenant="few")
    order: list[str] = []
    for _ in range(6):
        lease = await claim_one_in_lane(member)
        order.append(lease.id)
        await end(member, up(lease))

    assert set(ids_of(few)) <= set(order)
    assert [job for job in order if job in ids_of(many)] == ids_of(many[:4])


@pytest.mark.alone
async def test_start_times_keep_the_rate_across_members(ledger: Ledger) -> None:
    lanes: list[str] = [f"{LANE}{n}" for n in range(10)]
    rate: dict[str, Any] = {"requests_per_interval": 5, "interval_seconds": 0.2}
    queue = await open_lanes(ledger, **dict.fromkeys(lanes, rate))
    members = [await ledger.join(await ledger.open()) for _ in range(3)]

    async def take(member: Member, starts: list[float]) -> None:
        while len(starts) < 15:
            starts.extend(lease.start_at for lease in await claim_lanes(member, 10))
            await asyncio.sleep(0.005)

    row, shortest = 6, float("inf")
    for lane in lanes:
        starts: list[float] = []
        await add(queue, 15, lane=lane)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(take(member, starts) for member in members))
        assert most_in_window(starts, 0.2) <= 5
        assert least_gap(starts) >= 0.04
        # A busy machine has gaps: where it has none, the starts are as close as they may be.
        starts.sort()
        rows = (last - first for first, last in zip(starts, starts[row - 1 :], strict=False))
        shortest = min(shortest, *rows)
        if shortest <= (row - 1) * 0.04 / 0.9:
            return
    pytest.fail(f"the rate is not used: {row} starts took {shortest:.3f} s at best")


async def test_who_is_late_gets_time_and_the_next_start_comes_after_it(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"min_interval_seconds": 0.1, "max_parallel": 9})
    slow, prompt = await ledger.join(queue), await ledger.join(await ledger.open())
    await add(queue, 2, lane=LANE)
    (late,) = (await slow.exchange([], [], want_lanes(1)._replace(slack=2.0))).leases
    assert late.void_at >= late.start_at + 2.0
    (next_,) = await claimed_soon(prompt)
    assert next_.start_at >= late.start_at + 2.0 + 0.1
    assert next_.void_at < next_.start_at + 0.1

    (asked,) = await slow.permits([ask(patience=60.0)._replace(slack=2.0)])
    assert isinstance(asked, Permit)
    assert asked.void_at >= asked.start_at + 2.0
    assert (await permitted(slow, patience=60.0)).start_at >= asked.start_at + 2.0 + 0.1


async def test_claim_says_when_to_look_again(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"min_interval_seconds": 300.0})
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    lease = await claim_one_in_lane(member)
    again = await exchange(member, wanted=want_lanes())

    assert again.leases == []
    assert again.next_at == pytest.approx(lease.start_at + 300.0 * SPARE, abs=0.3)


async def test_jobs_of_a_kind_unknown_at_enqueue_are_adopted_into_their_lane(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, slow={"max_parallel": 1})
    payloads = ['{"to":"slow"}', '{"to":"slow"}', '{"to":"quick"}', '{"to":""}']
    jobs = await add(queue, payloads=payloads, lane=UNKNOWN_LANE, timeout=None, max_retries=None)
    assert jobs[0].lane is None
    member = await ledger.join(queue)
    kinds = {KIND: KindDefaults(30.0, 3, lambda payload: json.loads(payload)["to"])}
    leases = (await exchange(member, wanted=Want(10, kinds, True, 10))).leases

    assert {lease.id: lease.lane for lease in leases} == {
        jobs[0].id: "slow",
        jobs[2].id: "quick",
        jobs[3].id: "",
    }
    waiting = await get(queue, jobs[1].id)
    assert (waiting.lane, waiting.state) == ("slow", JobState.QUEUED)
    assert (waiting.timeout, waiting.max_retries) == (30.0, 3)
    assert {lane.name: lane.in_flight for lane in await queue.lanes()} == {"slow": 1, "quick": 1}


async def test_payload_without_a_lane_to_be_found_harms_only_its_own_job(
    ledger: Ledger,
) -> None:
    """The lane is computed from the payload, and the payload is not what was expected."""
    queue = await open_lanes(ledger)
    payloads = ['{"wrong":1}', '{"to":"fine"}']
    _, fine = await add(queue, payloads=payloads, lane=UNKNOWN_LANE)
    other = await add_one(queue, kind="other")
    member = await ledger.join(queue, KIND, "other")
    kinds = {
        KIND: KindDefaults(30.0, 3, lambda payload: json.loads(payload)["to"]),
        "other": KindDefaults(30.0, 3),
    }
    leases = (await exchange(member, wanted=Want(10, kinds, True, 10))).leases

    assert {fine.id, other.id} <= set(ids_of(leases))


async def test_lane_timeout_shortens_that_of_the_job_and_never_lengthens_it(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, brief={"timeout_seconds": 5.0}, long={"timeout_seconds": 99.0})
    member = await ledger.join(queue)
    for lane in ("brief", "long"):
        await add(queue, 1, lane=lane, timeout=30.0)
    leases = await claim_lanes(member)

    assert {lease.lane: lease.timeout for lease in leases} == {"brief": 5.0, "long": 30.0}


async def test_start_is_late_as_soon_as_it_would_crowd_its_lane_or_the_parent(
    ledger: Ledger,
) -> None:
    """A slow lane could wait, but the window of its parent is short."""
    queue = await open_lanes(
        ledger,
        quick={"requests_per_interval": 50, "interval_seconds": 1.0},
        slow={"requests_per_interval": 10, "interval_seconds": 60.0, "parent": "quick"},
        alone={"requests_per_interval": 10, "interval_seconds": 60.0},
    )
    member = await ledger.join(queue)
    for lane in ("slow", "alone"):
        await add(queue, 1, lane=lane)
    leases = {lease.lane: lease for lease in await claim_lanes(member)}
    inside = {name: await permitted(member, name) for name in ("quick", "another")}

    assert 0 < leases["slow"].void_at - leases["slow"].start_at < 0.02
    assert leases["alone"].void_at - leases["alone"].start_at > 0.1
    assert 0 < inside["quick"].void_at - inside["quick"].start_at < 0.02
    assert inside["another"].void_at - inside["another"].start_at >= 1.0, "no rate, never late"


async def test_permit_that_came_too_late_is_handed_back_and_costs_nothing(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"min_interval_seconds": 0.05, "max_parallel": 1})
    member = await ledger.join(queue)
    job = await add_one(queue, lane=LANE)
    lease = await claim_one_in_lane(member)
    await clock_passes(lease.void_at)
    await settle(member, handed_back(lease))

    assert (await info(queue)).in_flight == 0
    (again,) = await claimed_soon(member)
    assert (again.id, again.attempts) == (job.id, 1)
    assert again.start_at >= lease.start_at + 0.05, "a new permit, paid for again"
    assert (await info(queue)).in_flight == 1


async def test_scheduled_jobs_join_their_lane_when_due(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(queue)
    due = time.time() + SHORTLY
    job = await add_one(queue, lane=LANE, run_at=due)
    first = await exchange(member, wanted=want_lanes())
    assert first.leases or first.next_at == pytest.approx(due, abs=1e-3)

    (lease,) = first.leases or await claimed_soon(member)
    assert lease.id == job.id
    assert time.time() >= due, "and not before, as it would be at once"


async def test_retry_waits_its_time_and_then_for_its_lane(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(queue)
    failing, other = await add(queue, 2, lane=LANE)
    due = time.time() + SHORTLY
    await settle(member, retry(await claim_one_in_lane(member), run_at=due))
    second = await claim_one_in_lane(member)
    assert second.id == other.id
    await clock_passes(due)
    assert await claim_lanes(member) == []

    await end(member, up(second))
    (lease,) = await claim_lanes(member)
    assert (lease.id, lease.attempts) == (failing.id, 2)


async def test_crashed_job_is_not_starved_by_the_backlog_of_its_lane(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    victim = await ledger.join(await ledger.open())
    suspect = await add_one(queue, lane=LANE)
    victim.mark_started(await claim_one_in_lane(victim))
    ledger.lapse(victim)
    member = await ledger.join(queue)
    await member.upkeep()
    await add(queue, 10, lane=LANE)
    order: list[str] = []
    for _ in range(3):
        lease = await claim_one_in_lane(member)
        order.append(lease.id)
        await end(member, up(lease))

    assert suspect.id in order


async def test_crashed_jobs_of_lanes_and_without_share_the_one_place(ledger: Ledger) -> None:
    queue = await open_lanes(ledger)
    victim = await ledger.join(await ledger.open())
    await add(queue, 2, lane=LANE)
    await add(queue, 1)
    for lease in await claim_lanes(victim, 10, limit=10):
        victim.mark_started(lease)
    ledger.lapse(victim)
    member = await ledger.join(queue)
    await member.upkeep()

    assert len(await claim_lanes(member, 10, limit=10, crashed=True)) == 1
    assert await claim_lanes(member, 10, limit=10, crashed=False) == []
