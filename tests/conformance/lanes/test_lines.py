"""Many lines side by side, of kinds, lanes and parents: none that is stuck holds up another."""

import pytest

from penstock.model.ids import new_id
from penstock.model.lane import LaneConfig
from penstock.ports.lanes import LaneCommand
from penstock.ports.queue import JobFilter, NewJob, NewJobs, Topic
from tests.conformance.lane_support import (
    LANE,
    claim_lanes,
    claim_one_in_lane,
    claimed_soon,
    end,
    info,
    open_lanes,
    up,
)
from tests.conformance.support import (
    KIND,
    Ledger,
    add,
    add_one,
    ids_of,
)
from tests.support.rate_windows import most_in_window
from tests.support.waiting import PATIENCE


async def test_several_kinds_share_the_slots_of_one_lane(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 2})
    member = await ledger.join(queue, "a", "b")
    first = await add(queue, 2, kind="a", lane=LANE)
    second = await add(queue, 2, kind="b", lane=LANE)
    leases = await claim_lanes(member, 10, "a", "b")
    assert ids_of(leases) == ids_of(first)
    await end(member, *map(up, leases))

    leases = await claim_lanes(member, 10, "a", "b")
    assert ids_of(leases) == ids_of(second)
    assert (await info(queue)).in_flight == 2


async def test_kinds_of_one_lane_are_served_by_different_members(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    members = {kind: await ledger.join(queue, kind) for kind in ("a", "b")}
    for kind in members:
        await add(queue, 3, kind=kind, lane=LANE)
    done = {"a": 0, "b": 0}
    for _ in range(20):
        for kind, member in members.items():
            leases = await claim_lanes(member, 10, kind)
            assert len(leases) <= 1
            await end(member, *map(up, leases))
            done[kind] += len(leases)

    assert done == {"a": 3, "b": 3}


async def test_kind_nobody_handles_any_more_does_not_hold_up_its_lane(ledger: Ledger) -> None:
    """Its line was waiting for a slot when its process went away."""
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    leaving, staying = await ledger.join(queue, "gone"), await ledger.join(queue, "here")
    await add(queue, 1, kind="here", lane=LANE)
    lease = await claim_one_in_lane(staying, "here")
    await add(queue, 1, kind="gone", lane=LANE)
    assert await claim_lanes(leaving, 10, "gone") == []
    mine = await add_one(queue, kind="here", lane=LANE)
    assert await claim_lanes(staying, 10, "here") == []
    await ledger.leave(leaving)

    await end(staying, up(lease))
    assert ids_of(await claimed_soon(staying, "here")) == [mine.id]


async def test_line_emptied_by_a_cancel_passes_the_freed_slot_on(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    one, two = await ledger.join(queue, "a"), await ledger.join(queue, "b")
    (running, *cancelled) = await add(queue, 2, kind="a", lane=LANE)
    (waiting,) = await add(queue, 1, kind="b", lane=LANE)
    lease = await claim_one_in_lane(one, "a")
    assert lease.id == running.id
    assert await claim_lanes(one, 10, "a") == await claim_lanes(two, 10, "b") == []
    assert await queue.cancel(_by_ids(ids_of(cancelled))) == ids_of(cancelled)

    await end(one, up(lease))
    assert await claim_lanes(one, 10, "a") == []
    assert ids_of(await claimed_soon(two, "b")) == [waiting.id]


def _by_ids(ids: list[str]) -> JobFilter:
    return JobFilter(ids=ids)


async def test_blocked_lane_in_front_holds_nobody_up(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, blocked={})
    member = await ledger.join(queue)
    await add(queue, 1, lane="blocked")
    assert await queue.control("blocked", LaneCommand.PAUSE)
    for _ in range(2):
        await add(queue, 10_000, lane="blocked")
    free = await add(queue, 200, lane="free")
    alone = await add(queue, 50)

    leases = await claim_lanes(member, 200, limit=50)
    assert [lease.id for lease in leases if lease.lane] == ids_of(free)
    assert [lease.id for lease in leases if not lease.lane] == ids_of(alone)


async def test_thousands_of_blocked_lanes_in_front_hold_nobody_up(ledger: Ledger) -> None:
    """Each of them is looked at once, and then no more before it may be used."""
    queue = await ledger.open(
        lane_config=lambda name: LaneConfig(
            min_interval_seconds=0.0 if name == "free" else 3600.0, max_parallel=1000
        )
    )
    member = await ledger.join(queue)
    items = [_new(f"host:{n}") for n in range(2000) for _ in range(2)]
    await queue.enqueue(NewJobs(kind=KIND, items=items, timeout=30.0, max_retries=3))
    started = 0
    while leases := await claim_lanes(member, 100):
        started += len(leases)
    assert started == 2000
    free = await add(queue, 50, lane="free")

    assert ids_of(await claim_lanes(member, 50)) == ids_of(free)


def _new(lane: str) -> NewJob:
    return NewJob(new_id(), "{}", None, lane)


async def test_parent_slots_hold_for_all_children_together(ledger: Ledger) -> None:
    queue = await open_lanes(
        ledger,
        llm={"max_parallel": 3},
        ask={"max_parallel": 2, "parent": "llm"},
        plan={"max_parallel": 2, "parent": "llm"},
    )
    member = await ledger.join(queue)
    for lane in ("ask", "plan"):
        await add(queue, 5, lane=lane)
    leases = await claim_lanes(member)

    assert len(leases) == 3
    flights = {lane.name: lane.in_flight for lane in await queue.lanes()}
    assert flights["llm"] == 3
    assert flights["ask"] + flights["plan"] == 3
    assert max(flights["ask"], flights["plan"]) <= 2
    done = 0
    while leases:
        await end(member, *map(up, leases))
        done += len(leases)
        leases = await claim_lanes(member)
        assert len(leases) <= 3
    assert done == 10


async def test_parent_rate_holds_for_all_children_together(ledger: Ledger) -> None:
    queue = await open_lanes(
        ledger,
        parent={"requests_per_interval": 4, "interval_seconds": 0.2},
        a={"parent": "parent"},
        b={"parent": "parent"},
    )
    member = await ledger.join(queue)
    for lane in ("a", "b"):
        await add(queue, 6, lane=lane)
    starts: list[float] = []
    while len(starts) < 12:
        leases = await claimed_soon(member)
        starts += [lease.start_at for lease in leases]
        await end(member, *map(up, leases))

    assert most_in_window(starts, 0.2) <= 4


@pytest.mark.parametrize("why", ["paused", "rate", "cancelled"])
async def test_child_that_cannot_use_the_parents_free_slot_passes_it_on(
    ledger: Ledger, why: str
) -> None:
    """Both children wait for the one slot of their parent; the first is woken and cannot."""
    slow = {"min_interval_seconds": 3600.0} if why == "rate" else {}
    queue = await open_lanes(
        ledger,
        parent={"max_parallel": 1},
        first={"parent": "parent", **slow},
        second={"parent": "parent"},
    )
    member = await ledger.join(queue)
    jobs = await add(queue, 2, lane="first")
    lease = await claim_one_in_lane(member)
    assert lease.id == jobs[0].id
    assert await claim_lanes(member) == []
    if why == "paused":
        await queue.control("first", LaneCommand.PAUSE)
        assert await claim_lanes(member) == []
    waiting = await add_one(queue, lane="second")
    assert await claim_lanes(member) == []
    if why == "cancelled":
        await queue.cancel(_by_ids([jobs[1].id]))

    await end(member, up(lease))
    assert ids_of(await claimed_soon(member)) == [waiting.id]


async def test_waiting_member_is_woken_when_a_slot_is_freed(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    one, two = await ledger.join(queue), await ledger.join(await ledger.open())
    await add(queue, 2, lane=LANE)
    lease = await claim_one_in_lane(one)
    assert await claim_lanes(two) == []
    ready = queue.listen(Topic.READY)
    while await ready.wait(0.05):
        pass
    await end(one, up(lease))

    assert await ready.wait(PATIENCE)
    assert len(await claim_lanes(two)) == 1


async def test_more_lanes_than_one_claim_looks_at_all_get_their_turn(ledger: Ledger) -> None:
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    items = [_new(f"host:{n}") for n in range(300)]
    await queue.enqueue(NewJobs(kind=KIND, items=items, timeout=30.0, max_retries=3))
    taken: list[str] = []
    while leases := await claim_lanes(member, 7):
        assert len(leases) <= 7
        taken += ids_of(leases)

    assert sorted(taken) == sorted(item.id for item in items)
