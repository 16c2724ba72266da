"""Budgets: a spent one pauses what would spend, and nothing else; nothing is lost by it, and no
attempt."""

import asyncio
from collections.abc import Sequence
from typing import Any

from penstock.lanes.state import DAY
from penstock.model.amounts import Amounts
from penstock.model.budget import BudgetConfig
from penstock.model.job import JobState
from penstock.ports.ledger import Charge, Charged, Payer
from penstock.ports.queue import JobFilter, JobQueue, Lease, Member
from tests.conformance.lane_support import LANE, a_day_ahead, claim_lanes, end, open_lanes, up
from tests.conformance.support import KIND, Ledger, add, add_one, claim, get, ids_of, until

COUNTS = {"tokens_per_interval": 1_000_000, "interval_seconds": 600.0}
TENANT = "tenant:anna"
LIMIT = BudgetConfig(tokens=100)


def charge_of(queue: JobQueue, name: str, tokens: int = 10, **values: Any) -> Charge:
    payer = Payer(values.pop("tenant", "anna"), values.pop("task", ""), "", KIND)
    given = {"at": queue.now(), "lane": LANE, "model": "small", **values}
    return Charge(
        name, payer=payer, tokens=tokens, input_tokens=0, output_tokens=0, **{"cost": 0, **given}
    )


def reserved(queue: JobQueue, name: str, tokens: int = 10, **values: Any) -> Charge:
    return charge_of(queue, name, tokens, **values)._replace(reserved=True)


async def spend(queue: JobQueue, tokens: int = 100, **values: Any) -> Charged:
    return await queue.charge([charge_of(queue, f"spent {tokens} {values}", tokens, **values)])


async def add_jobs(queue: JobQueue, count: int = 1, **options: Any) -> list[str]:
    options = {"tenant": "anna", "lane": LANE, "amount": Amounts.of(10).text, **options}
    return ids_of(await add(queue, count, **options))


async def claimed(member: Member, ids: Sequence[str]) -> list[Lease]:
    """Claim until all of these are, and nothing else."""
    leases: list[Lease] = []

    async def all_of_them() -> bool:
        leases.extend(await claim_lanes(member, 10))
        return len(leases) >= len(ids)

    await until(all_of_them, "the jobs")
    assert sorted(ids_of(leases)) == sorted(ids)
    return leases


async def reason(queue: JobQueue, job_id: str) -> str:
    return str((await get(queue, job_id)).waiting_for)


async def opened(ledger: Ledger) -> tuple[JobQueue, Member]:
    await a_day_ahead()
    queue = await open_lanes(ledger, api=COUNTS)
    return queue, await ledger.join(queue)


async def test_jobs_are_paused_with_a_reason_and_go_on_when_it_is_raised(ledger: Ledger) -> None:
    queue, member = await opened(ledger)
    assert not await queue.set_budget(TENANT, LIMIT)
    first = await add_jobs(queue, 30)
    others = await add_jobs(queue, 5, tenant="ben")
    elsewhere = await add_one(queue, tenant="anna")  # it is in no lane that counts
    await spend(queue)
    ended = await claimed(member, others)
    assert await claim_lanes(member) == []
    assert ids_of(await claim(member)) == [elsewhere.id]
    await end(member, *map(up, ended))
    job = await get(queue, first[3])
    assert (job.state, job.attempts, job.releases) == (JobState.QUEUED, 0, 0)
    assert "budget tenant:anna: 100 of 100 tokens spent this day; resumes" in str(job.waiting_for)
    assert await queue.work_left([KIND])

    late = await add_jobs(queue, 2)
    assert await queue.set_budget(TENANT, BudgetConfig(tokens=101))
    (state,) = await queue.budgets()
    assert (state.tokens, state.tokens_limit, state.lanes) == (100, 101, [LANE])
    found = await claim_lanes(member, 31)
    assert ids_of(found) == [*first, late[0]]  # in their order
    assert {one.attempts for one in found} == {1}
    await end(member, *map(up, found))
    assert ids_of(await claimed(member, late[1:])) == late[1:]


async def test_a_new_period_and_what_is_given_back_let_them_go_on(ledger: Ledger) -> None:
    queue, member = await opened(ledger)
    await queue.set_budget(TENANT, BudgetConfig(cost=1.0))
    await queue.charge([reserved(queue, "large", cost=1_000_000)])
    jobs = await add_jobs(queue, 3)
    assert await claim_lanes(member) == []
    await queue.charge([charge_of(queue, "large", 5, cost=999_999)])
    await end(member, *map(up, await claimed(member, jobs)))
    await spend(queue, 1, cost=1)
    jobs = await add_jobs(queue, 3)
    assert await claim_lanes(member) == []
    ledger.later(DAY)
    await claimed(member, jobs)
    (state,) = await queue.budgets()
    assert (state.cost, state.reached) == (0, False)


async def test_it_is_never_overspent_by_more_than_the_last_reservation(ledger: Ledger) -> None:
    queue, other = (await opened(ledger))[0], await ledger.open()
    await queue.set_budget(TENANT, LIMIT)
    some = [reserved(queue, str(n), 15) for n in range(40)]
    parts = [one.charge([charge]) for one, charge in zip([queue, other] * 20, some, strict=True)]
    answers = await asyncio.gather(*parts)
    refused = [name for one in answers for name in one.refused]
    told = [state for one in answers for state in one.told]
    (state,) = await queue.budgets()
    assert (state.tokens, len(refused)) == (105, 33)
    assert sorted(one.tokens for one in told) == [90, 105]  # most of it; all of it
    # What is told again changes nothing; what was spent all the same is counted.
    again = await queue.charge([some[0], charge_of(queue, refused[0], 30)])
    assert again.budgets
    (state,) = await queue.budgets()
    assert state.tokens == 135


async def test_a_task_and_its_tenant_both_bind(ledger: Ledger) -> None:
    queue, member = await opened(ledger)
    await queue.set_budget(TENANT, LIMIT)
    await queue.set_budget("task:anna/trip", BudgetConfig(tokens=50, per="total"))
    await spend(queue, 50, task="trip")
    trip, own = await add_jobs(queue, 2, log="trip"), await add_jobs(queue, 2)
    found = await claimed(member, own)
    assert await claim_lanes(member) == []
    assert "task:anna/trip: 50 of 50 tokens spent in all" in await reason(queue, trip[0])

    await spend(queue, 50)
    await queue.set_budget("task:anna/trip", None)
    assert await claim_lanes(member) == []
    assert "tenant:anna" in await reason(queue, trip[0])
    await queue.set_budget(TENANT, BudgetConfig(tokens=1000))
    found += await claimed(member, trip)
    await end(member, *map(up, found))
    assert await queue.budgets() != []
    assert await queue.set_budget(TENANT, None)
    assert not await queue.set_budget(TENANT, None)
    assert (await spend(queue, 5)).budgets is False


async def test_a_paused_job_can_be_cancelled_and_is_alone_after_a_crash(ledger: Ledger) -> None:
    queue, member = await opened(ledger)
    killed = await ledger.join(queue)
    jobs = await add_jobs(queue, 3)
    (lease,) = await claim_lanes(killed, 1)
    killed.mark_started(lease)
    ledger.lapse(killed)
    await until(lambda: _is_queued(queue, member, lease.id), "the job to be taken back")
    await queue.set_budget(TENANT, LIMIT)
    await spend(queue)
    assert await claim_lanes(member) == []
    assert await queue.cancel(JobFilter(ids=[jobs[1]])) == [jobs[1]]
    await queue.set_budget(TENANT, BudgetConfig(tokens=1000))
    assert ids_of(await claim_lanes(member, 10, crashed=False)) == [jobs[2]]
    await until(lambda: _claims(member), "the one with a crash on its record")


async def _is_queued(queue: JobQueue, member: Member, job_id: str) -> bool:
    await member.upkeep()
    return (await get(queue, job_id)).state is JobState.QUEUED


async def _claims(member: Member) -> list[Lease]:
    return await claim_lanes(member)
