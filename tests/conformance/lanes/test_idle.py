"""What becomes of lanes that nobody uses any more."""

import time

import pytest

from penstock.ports.lanes import LaneCommand
from penstock.ports.queue import JobQueue
from tests.conformance.lane_support import (
    CALM,
    LANE,
    claim_lanes,
    claim_one_in_lane,
    down,
    end,
    finish_in_lane,
    info,
    limited,
    open_lanes,
    permitted,
    up,
)
from tests.conformance.support import (
    SHORTLY,
    Ledger,
    add,
    add_one,
    failed,
    ids_of,
    one,
    until,
)

HOUR = 3600.0


async def names(queue: JobQueue) -> list[str]:
    return [lane.name for lane in await queue.lanes()]


async def test_idle_lane_is_forgotten_and_made_again(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 3})
    member = await ledger.join(queue)
    await finish_in_lane(queue, ledger)
    await retain(ledger, queue)
    assert await names(queue) == [LANE], "just used"
    ledger.idle(HOUR + 1)
    await retain(ledger, queue)
    assert await names(queue) == []

    await add(queue, 5, lane=LANE)
    assert len(await claim_lanes(member)) == 3
    assert (await info(queue)).max_parallel == 3


async def retain(ledger: Ledger, queue: JobQueue) -> None:
    keeper = await ledger.join(queue, "keeper")
    await keeper.upkeep()
    await ledger.leave(keeper)


async def test_parent_is_kept_as_long_as_a_child_of_it_is(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, all={}, api={"parent": "all"})
    await finish_in_lane(queue, ledger)
    ledger.idle(HOUR + 1)
    await retain(ledger, queue)
    await retain(ledger, queue)

    assert await names(queue) == []


KEPT = ["waiting", "running", "permit", "open", "suspect", "slowed", "paused", "used today"]


@pytest.mark.parametrize("state", KEPT)
async def test_lane_in_use_or_in_trouble_is_not_forgotten(ledger: Ledger, state: str) -> None:
    limits = {"requests_per_day": 10} if state == "used today" else {}
    queue = await open_lanes(ledger, api={**CALM, **limits})
    member = await ledger.join(queue)
    await add(queue, 2, lane=LANE)
    leases = await claim_lanes(member, 0 if state == "waiting" else 2)
    match state:
        case "permit":
            await permitted(member)
            await end(member, *map(up, leases))
        case "open":
            await end(member, *map(down, leases))
        case "suspect":
            await end(member, up(leases[0]))
            await end(member, down(leases[1], run_at=time.time() + HOUR))
        case "slowed":
            await end(member, *(limited(lease, 0.0) for lease in leases))
            await queue.cancel(one(leases[0]))
            await queue.cancel(one(leases[1]))
        case "paused":
            await end(member, *map(up, leases))
            await queue.control(LANE, LaneCommand.PAUSE)
        case "used today":
            await end(member, *map(up, leases))
    ledger.idle(HOUR + 1)
    await retain(ledger, queue)

    assert await names(queue) == [LANE]


async def test_scheduled_job_finds_its_lane_although_it_was_idle(ledger: Ledger) -> None:
    """It is due hours after anybody used the lane."""
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    job = await add_one(queue, lane=LANE, run_at=time.time() + SHORTLY)
    bystander = await add_one(queue)
    ledger.idle(HOUR + 1)
    await retain(ledger, queue)

    taken: list[str] = []

    async def both() -> bool:
        taken.extend(ids_of(await claim_lanes(member, 10, limit=10)))
        return len(taken) == 2

    await until(both, "the scheduled job")
    assert sorted(taken) == sorted([job.id, bystander.id])


async def test_dead_letter_redriven_after_its_lane_was_idle_is_run(ledger: Ledger) -> None:
    queue = await open_lanes(ledger)
    member = await ledger.join(queue)
    job = await add_one(queue, lane=LANE)
    await end(member, failed(await claim_one_in_lane(member)))
    ledger.idle(HOUR + 1)
    await retain(ledger, queue)
    assert await queue.redrive(one(job)) == [job.id]
    bystander = await add_one(queue)

    async def claims() -> list[str]:
        return ids_of(await claim_lanes(member, 10, limit=10))

    taken = await until(claims, "the redriven job")
    assert sorted(taken) == sorted([job.id, bystander.id])
