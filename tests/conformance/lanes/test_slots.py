"""Slots: given back however a request ends, and never more than there are."""

import asyncio
import contextlib
import random
from collections.abc import Callable

import pytest

from penstock.errors import QueueError
from penstock.ports.lanes import Busy, News, Permit
from penstock.ports.queue import JobQueue, Lease, Settlement
from tests.conformance.lane_support import (
    LANE,
    ask,
    claim_lanes,
    claim_one_in_lane,
    down,
    end,
    give_back,
    info,
    open_lanes,
    own_fault,
    permit,
    permitted,
    refused,
    up,
)
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    cancel_seen,
    completed,
    dies,
    doomed,
    failed,
    handed_back,
    ids_of,
    one,
    released,
    retry,
    settle,
    until,
)
from tests.support.waiting import PATIENCE

ENDS: dict[str, Callable[[Lease], Settlement]] = {
    "completed": up,
    "completed without a word": completed,
    "failed": failed,
    "retry": retry,
    "released": released,
    "handed back": handed_back,
    "unavailable": down,
    "refused": refused,
    "own fault": own_fault,
}


async def in_flight(queue: JobQueue, name: str = LANE) -> int:
    return (await info(queue, name)).in_flight


@pytest.fixture
async def narrow(ledger: Ledger) -> JobQueue:
    """A queue whose lane has two slots, with a parent that has three."""
    return await open_lanes(
        ledger, api={"max_parallel": 2, "parent": "all"}, all={"max_parallel": 3}
    )


@pytest.mark.parametrize("name", ENDS)
async def test_slot_is_free_again_however_the_job_ends(
    ledger: Ledger, narrow: JobQueue, name: str
) -> None:
    member = await ledger.join(narrow)
    await add(narrow, 4, lane=LANE)
    leases = await claim_lanes(member)
    assert len(leases) == 2
    assert (await in_flight(narrow), await in_flight(narrow, "all")) == (2, 2)
    await end(member, *map(ENDS[name], leases))

    assert (await in_flight(narrow), await in_flight(narrow, "all")) == (0, 0)


async def test_job_that_leaves_its_lane_makes_room_for_another_and_no_more(
    ledger: Ledger, narrow: JobQueue
) -> None:
    member = await ledger.join(narrow)
    await add(narrow, 4, lane=LANE)
    first, _ = await claim_lanes(member)
    left = Permit(first.lane, first.seq, first.start_at)
    await give_back(member, [left], News.SUCCESS, first)
    assert (await in_flight(narrow), await in_flight(narrow, "all")) == (1, 1)
    assert len(await claim_lanes(member)) == 1

    assert (await end(member, up(first))).stale == []
    assert (await in_flight(narrow), await in_flight(narrow, "all")) == (2, 2)
    assert await claim_lanes(member) == []


async def test_slot_is_free_again_when_a_cancelled_run_has_ended(
    ledger: Ledger, narrow: JobQueue
) -> None:
    member = await ledger.join(narrow)
    jobs = await add(narrow, 3, lane=LANE)
    leases = await claim_lanes(member)
    await narrow.cancel(one(jobs[0]))
    assert await in_flight(narrow) == 2, "its request is still open"
    assert await claim_lanes(member) == []
    await settle(member, cancel_seen(leases[0]))

    assert await in_flight(narrow) == 1
    assert ids_of(await claim_lanes(member)) == [jobs[2].id]


async def test_cancelled_run_that_completes_all_the_same_frees_its_slot(
    ledger: Ledger, narrow: JobQueue
) -> None:
    member = await ledger.join(narrow)
    job = await add_one(narrow, lane=LANE)
    lease = await claim_one_in_lane(member)
    await narrow.cancel(one(job))
    await end(member, up(lease))

    assert (await in_flight(narrow), await in_flight(narrow, "all")) == (0, 0)


async def test_slots_of_a_lapsed_member_are_free_with_the_next_upkeep_of_another(
    ledger: Ledger, narrow: JobQueue
) -> None:
    frozen, other = await ledger.join(narrow), await ledger.join(await ledger.open())
    await add(narrow, 4, lane=LANE)
    assert len(await claim_lanes(frozen)) == 2
    assert await claim_lanes(other) == []
    ledger.lapse(frozen)
    await other.upkeep()

    assert len(await claim_lanes(other)) == 2
    assert (await in_flight(narrow), await in_flight(narrow, "all")) == (2, 2)


@pytest.mark.parametrize("started", [0, 2])
async def test_slots_of_a_killed_process_are_free_at_once(
    ledger: Ledger, narrow: JobQueue, started: int
) -> None:
    member = await ledger.join(narrow)
    await add(narrow, 4, lane=LANE)
    await dies(ledger, claims=2, starts=started, lanes=2)
    assert await in_flight(narrow) == 2
    await member.upkeep()

    assert (await in_flight(narrow), await in_flight(narrow, "all")) == (0, 0)
    assert len(await claim_lanes(member)) == 2


async def test_slots_of_a_living_process_are_left_alone(ledger: Ledger, narrow: JobQueue) -> None:
    member = await ledger.join(narrow)
    await add(narrow, 4, lane=LANE)
    other = await doomed(ledger, claims=2, lanes=2, starts=1)
    await member.upkeep()

    assert await claim_lanes(member) == []
    assert await in_flight(narrow) == 2
    await other.kill()
    await member.upkeep()
    assert len(await claim_lanes(member)) == 2


async def test_slots_of_a_member_that_leaves_are_free(ledger: Ledger, narrow: JobQueue) -> None:
    member = await ledger.join(narrow)
    await add(narrow, 2, lane=LANE)
    await claim_one_in_lane(member)
    await permitted(member)
    assert await in_flight(narrow) == 2
    await ledger.leave(member)

    assert (await in_flight(narrow), await in_flight(narrow, "all")) == (0, 0)


async def test_permits_of_a_killed_or_lapsed_holder_are_free(
    ledger: Ledger, narrow: JobQueue
) -> None:
    holder, other = await ledger.join(narrow), await ledger.join(narrow)
    for _ in range(2):
        await permitted(holder)
    assert isinstance(await permit(other), Busy)
    ledger.lapse(holder)
    await other.upkeep()

    assert [type(await permit(other)) for _ in range(3)] == [Permit, Permit, Busy]


async def test_member_that_has_lapsed_gets_no_permit_it_could_never_give_back(
    ledger: Ledger, narrow: JobQueue
) -> None:
    """Frozen past its lease and thawed, it asks before it knows that it was given up."""
    thawed, other = await ledger.join(narrow), await ledger.join(narrow)
    ledger.lapse(thawed)
    await other.upkeep()
    with contextlib.suppress(QueueError):
        await thawed.permits([ask(), ask()])
    # And is killed before it has joined again.
    await other.upkeep()

    assert (await in_flight(narrow), await in_flight(narrow, "all")) == (0, 0)


async def test_late_settlement_of_a_lost_lease_frees_nobody_elses_slot(
    ledger: Ledger, narrow: JobQueue
) -> None:
    frozen, other = await ledger.join(narrow), await ledger.join(narrow)
    await add(narrow, 2, lane=LANE)
    lost = await claim_lanes(frozen)
    ledger.lapse(frozen)
    await other.upkeep()
    assert len(await claim_lanes(other)) == 2
    await end(frozen, *map(up, lost))

    assert await in_flight(narrow) == 2
    assert await claim_lanes(other) == []


async def test_settling_twice_does_not_free_the_slot_of_the_next_run(
    ledger: Ledger, narrow: JobQueue
) -> None:
    """The answer to the first trip was lost, so it is made again; meanwhile the job runs anew."""
    member = await ledger.join(narrow)
    await add(narrow, 1, lane=LANE)
    first = await claim_one_in_lane(member)
    ended = handed_back(first)
    await end(member, ended)
    second = await claim_one_in_lane(member)
    assert second.seq == first.seq
    await end(member, ended)

    assert await in_flight(narrow) == 1, "its second run holds a slot"


async def test_giving_a_permit_back_twice_frees_one_slot(ledger: Ledger, narrow: JobQueue) -> None:
    member = await ledger.join(narrow)
    kept, returned = await permitted(member), await permitted(member)
    await give_back(member, [returned])
    await give_back(member, [returned])

    assert await in_flight(narrow) == 1
    await give_back(member, [kept])
    assert await in_flight(narrow) == 0


async def test_permits_and_jobs_share_the_slots(ledger: Ledger, narrow: JobQueue) -> None:
    member = await ledger.join(narrow)
    jobs = await add(narrow, 2, lane=LANE)
    held = await permitted(member)
    assert ids_of(await claim_lanes(member)) == [jobs[0].id]
    assert isinstance(await permit(member), Busy)
    await give_back(member, [held], News.SUCCESS)

    assert ids_of(await claim_lanes(member)) == [jobs[1].id]


async def test_same_numbers_of_two_members_are_two_permits(
    ledger: Ledger, narrow: JobQueue
) -> None:
    """Each process counts its permits from -1."""
    one_, two = await ledger.join(narrow), await ledger.join(narrow)
    first, second = await permitted(one_, ref=-1), await permitted(two, ref=-1)
    assert await in_flight(narrow) == 2
    await give_back(one_, [first])

    assert await in_flight(narrow) == 1
    await give_back(two, [second])
    assert await in_flight(narrow) == 0


async def test_slots_are_never_exceeded_while_members_come_and_go(
    ledger: Ledger, narrow: JobQueue
) -> None:
    jobs = await add(narrow, 30, lane=LANE)
    most = 0

    async def work(number: int) -> None:
        nonlocal most
        queue = await ledger.open()
        member = await ledger.join(queue)
        while not await finished():
            leases = await claim_lanes(member, 3)
            if number == 0 and leases:
                ledger.lapse(member)  # now and then its lease runs out
                await ledger.leave(member)
                member = await ledger.join(queue)
                continue
            if leases:
                most = max(most, await in_flight(narrow))
            await asyncio.sleep(0.002)
            await end(member, *map(up, leases))

    async def watch() -> None:
        nonlocal most
        while not await finished():
            most = max(most, await in_flight(narrow))
            await asyncio.sleep(0.001)

    async def finished() -> bool:
        return len(await narrow.finished(ids_of(jobs))) == len(jobs)

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(watch(), *(work(number) for number in range(3)))
    assert 1 <= most <= 2
    assert (await in_flight(narrow), await in_flight(narrow, "all")) == (0, 0)


async def test_slot_freed_by_a_lapse_wakes_the_line_that_waits_for_it(
    ledger: Ledger, narrow: JobQueue
) -> None:
    frozen, other = await ledger.join(narrow), await ledger.join(narrow)
    await add(narrow, 3, lane=LANE)
    await claim_lanes(frozen)
    assert await claim_lanes(other) == [], "its line waits for a slot"
    ledger.lapse(frozen)
    await other.upkeep()

    async def claims() -> list[Lease]:
        return await claim_lanes(other)

    assert len(await until(claims, "the freed slots")) == 2


async def test_line_that_waits_for_a_slot_is_served_when_its_last_process_has_left(
    ledger: Ledger, narrow: JobQueue
) -> None:
    last = await ledger.join(narrow)
    await add(narrow, 3, lane=LANE)
    assert len(await claim_lanes(last)) == 2
    assert await claim_lanes(last) == [], "its line waits for a slot"
    await ledger.leave(last)

    assert len(await claim_lanes(await ledger.join(narrow))) == 2


async def test_line_is_served_although_nobody_handled_its_kind_when_a_slot_was_freed(
    ledger: Ledger, narrow: JobQueue
) -> None:
    holder, handler = await ledger.join(narrow, "other"), await ledger.join(narrow)
    held = [await permitted(holder) for _ in range(2)]
    job = await add_one(narrow, lane=LANE)
    assert await claim_lanes(handler) == [], "its line waits for a slot"
    await ledger.leave(handler)
    await give_back(holder, held)

    assert ids_of(await claim_lanes(await ledger.join(narrow))) == [job.id]


async def test_smaller_limit_holds_from_the_next_start_on(ledger: Ledger) -> None:
    wide = await open_lanes(ledger, api={"max_parallel": 3})
    member = await ledger.join(wide)
    await add(wide, 10, lane=LANE)
    leases = await claim_lanes(member)
    assert len(leases) == 3
    narrower = await open_lanes(ledger, api={"max_parallel": 1})
    await add(narrower, 1, lane=LANE)
    assert (await info(wide)).max_parallel == 1
    await end(member, up(leases[0]), up(leases[1]))

    assert await claim_lanes(member) == []
    await end(member, up(leases[2]))
    assert len(await claim_lanes(member)) == 1


async def test_larger_limit_is_used_from_the_next_slot_on(ledger: Ledger) -> None:
    tight = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(tight)
    await add(tight, 4, lane=LANE)
    lease = await claim_one_in_lane(member)
    assert await claim_lanes(member) == []
    roomy = await open_lanes(ledger, api={"max_parallel": 3})
    await add(roomy, 1, lane=LANE)
    await end(member, up(lease))

    assert len(await claim_lanes(member)) == 3


async def test_whatever_is_in_flight_was_taken_and_not_given_back(
    ledger: Ledger, narrow: JobQueue
) -> None:
    """After any mixture of claims, ends and permits."""
    member, dice = await ledger.join(narrow), random.Random(7)
    await add(narrow, 40, lane=LANE)
    leases: list[Lease] = []
    permits: list[Permit] = []
    for _ in range(120):
        match dice.randrange(4):
            case 0:
                leases += await claim_lanes(member, dice.randint(1, 3))
            case 1:
                answer = await permit(member, patience=0.0)
                permits += [answer] if isinstance(answer, Permit) else []
            case 2 if leases:
                lease = leases.pop(dice.randrange(len(leases)))
                await end(member, dice.choice([up, handed_back, own_fault, completed])(lease))
            case 3 if permits:
                await give_back(member, [permits.pop(dice.randrange(len(permits)))])
        assert await in_flight(narrow) == len(leases) + len(permits) <= 2
        assert await in_flight(narrow, "all") == await in_flight(narrow)
