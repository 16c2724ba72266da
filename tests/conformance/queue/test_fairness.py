"""Fairness: tenants in weighted turn, and nobody waits for ever."""

import time

from penstock.model.job import JobState, Priority
from penstock.ports.queue import JobQueue, Member
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    claim,
    clock_passes,
    completed,
    get,
    handed_back,
    ids_of,
    settle,
)
from tests.support.waiting import PATIENCE

AGEING = 0.2


async def test_one_job_of_a_tenant_is_not_behind_a_thousand_of_another(
    queue: JobQueue, member: Member
) -> None:
    await add(queue, 1000, tenant="big")
    await claim(member, 10)
    single = await add_one(queue, tenant="small")

    assert single.id in ids_of(await claim(member, 2))


async def test_tenants_take_turns(queue: JobQueue, member: Member) -> None:
    for tenant in ("a", "b", "c"):
        await add(queue, 20, tenant=tenant)

    leases = await claim(member, 12)

    for start in range(0, 12, 3):
        assert {lease.tenant for lease in leases[start : start + 3]} == {"a", "b", "c"}
    for tenant in ("a", "b", "c"):
        own = [lease.payload for lease in leases if lease.tenant == tenant]
        assert own == [f'{{"n":{n}}}' for n in range(4)], "oldest first inside a tenant"


async def test_tenants_take_turns_across_kinds(queue: JobQueue, member: Member) -> None:
    await add(queue, 20, tenant="a", kind="x")
    await add(queue, 10, tenant="b", kind="x")
    await add(queue, 10, tenant="b", kind="y")

    leases = await claim(member, 20, "x", "y")

    assert sum(lease.tenant == "a" for lease in leases) == 10


async def test_turns_are_weighted(ledger: Ledger) -> None:
    queue = await ledger.open(weights={"heavy": 3.0, "light": 0.5})
    member = await ledger.join(queue)
    for tenant in ("light", "plain", "heavy"):
        await add(queue, 60, tenant=tenant)

    leases = await claim(member, 54)

    counts = {t: sum(lease.tenant == t for lease in leases) for t in ("heavy", "plain", "light")}
    assert counts == {"heavy": 36, "plain": 12, "light": 6}


async def test_tenant_that_was_idle_has_no_turns_saved_up(queue: JobQueue, member: Member) -> None:
    await add(queue, 100, tenant="busy")
    await settle(member, *map(completed, await claim(member, 50)))
    await add(queue, 30, tenant="late")

    leases = await claim(member, 20)

    assert 9 <= sum(lease.tenant == "late" for lease in leases) <= 11


async def test_tenant_that_was_served_alone_owes_nothing(queue: JobQueue, member: Member) -> None:
    await add(queue, 50, tenant="a")
    await settle(member, *map(completed, await claim(member, 50)))
    await add(queue, 10, tenant="b")
    await add(queue, 10, tenant="a")

    leases = await claim(member, 10)

    assert sum(lease.tenant == "a" for lease in leases) == 5


async def test_priority_comes_before_turns(queue: JobQueue, member: Member) -> None:
    await add(queue, 3, tenant="a")
    urgent = await add(queue, 3, tenant="b", priority=Priority.HIGH)

    assert ids_of(await claim(member, 3)) == ids_of(urgent)


async def age(member: Member, since: float) -> None:
    """Let the ageing time pass after `since`, and have it noticed."""
    await clock_passes(since + AGEING * 1.3)
    await member.upkeep()


async def test_waiting_job_is_lifted_one_step_at_a_time(ledger: Ledger) -> None:
    queue = await ledger.open(ageing_seconds=AGEING)
    member = await ledger.join(queue)
    low = await add_one(queue, priority=Priority.LOW)

    await age(member, time.time())
    medium = await add_one(queue)
    high = await add_one(queue, priority=Priority.HIGH)
    leases = await claim(member)
    assert ids_of(leases) == [high.id, low.id, medium.id], "one step: before medium, after high"

    await settle(member, *map(handed_back, leases[1:]))
    lifted_at = time.time()
    await age(member, lifted_at)
    late = await add_one(queue, priority=Priority.HIGH)
    assert ids_of(await claim(member))[:2] == [low.id, medium.id]
    assert (await get(queue, late.id)).state is JobState.RUNNING
    assert (await get(queue, low.id)).priority is Priority.LOW, "what was asked for stays on record"


async def test_job_that_has_not_waited_long_is_not_lifted(ledger: Ledger) -> None:
    queue = await ledger.open(ageing_seconds=3600)
    member = await ledger.join(queue)
    low = await add_one(queue, priority=Priority.LOW)
    await member.upkeep()
    medium = await add_one(queue)

    assert ids_of(await claim(member)) == [medium.id, low.id]


async def test_low_priority_is_not_starved_by_an_endless_stream(ledger: Ledger) -> None:
    queue = await ledger.open(ageing_seconds=0.05)
    member = await ledger.join(queue)
    low = await add_one(queue, priority=Priority.LOW)

    give_up = time.monotonic() + PATIENCE
    while True:
        await add(queue, 2, priority=Priority.HIGH)
        await member.upkeep()
        (lease,) = await claim(member, 1)
        await settle(member, completed(lease))
        if lease.id == low.id:
            break
        assert time.monotonic() < give_up, "the low job is never claimed"

    (counts,) = await queue.counts()
    assert counts.states[JobState.QUEUED] > 0, "it did not wait until the stream had ended"
