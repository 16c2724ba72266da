"""Jobs handed over to a process that waits for them, as they are stored.

PostgreSQL and Redis hand over none: there, a process is woken and claims.
"""

from typing import Any

import pytest

from penstock.model.job import JobState
from penstock.ports.queue import JobQueue, Lease, Member, Topic
from tests.conformance.support import (
    KIND,
    Ledger,
    add,
    add_one,
    claim,
    completed,
    exchange,
    until,
    want,
)
from tests.support.waiting import PATIENCE


@pytest.fixture
def backend_name() -> str:
    return "sqlite"


class Taken(list[Lease]):
    """The inbox of a process."""

    put = list.extend


@pytest.fixture
def taken() -> Taken:
    return Taken()


@pytest.fixture
async def waiting(ledger: Ledger, queue: JobQueue, taken: Taken) -> Member:
    """A process that has found nothing, and would take two jobs."""
    member = await ledger.join(queue, inbox=taken)
    await stand(member)
    return member


async def stand(member: Member, later: int = 2) -> None:
    assert (await exchange(member, wanted=want()._replace(later=later))).leases == []


async def arrived(taken: Taken, count: int) -> None:
    async def all_here() -> bool:
        return len(taken) == count

    await until(all_here, f"{count} jobs handed over")


async def states(queue: JobQueue) -> dict[JobState, int]:
    (counts,) = await queue.counts()
    return dict(counts.states)


async def state_of(queue: JobQueue, job_id: str) -> JobState:
    return (await queue.get([job_id]))[job_id].state


async def test_a_job_goes_to_the_process_that_waits_for_it(
    queue: JobQueue, waiting: Member, taken: Taken
) -> None:
    job = await add_one(queue)
    assert await state_of(queue, job.id) is JobState.RUNNING, "leased when it was stored"
    await arrived(taken, 1)
    assert (taken[0].id, taken[0].payload, taken[0].attempts) == (job.id, '{"n":0}', 1)
    assert (await exchange(waiting, completed(taken[0]))).stale == []
    assert await state_of(queue, job.id) is JobState.COMPLETED


async def test_nobody_else_is_woken_for_it(queue: JobQueue, waiting: Member) -> None:
    wakeup = queue.listen(Topic.READY)
    while await wakeup.wait(0.05):
        pass
    await add_one(queue)
    assert not await wakeup.wait(0.15)
    wakeup.close()


async def test_no_more_than_it_has_room_for_and_the_others_are_told(
    queue: JobQueue, waiting: Member, taken: Taken
) -> None:
    wakeup = queue.listen(Topic.READY)
    jobs = await add(queue, 5)
    assert await states(queue) == {"running": 2, "queued": 3}
    await arrived(taken, 2)
    assert [lease.id for lease in taken] == [job.id for job in jobs[:2]], "in order"
    assert await wakeup.wait(PATIENCE)
    wakeup.close()


async def test_it_waits_once_and_until_its_next_trip(
    queue: JobQueue, waiting: Member, taken: Taken
) -> None:
    await add(queue, 1)
    await add(queue, 1)
    assert await states(queue) == {"running": 1, "queued": 1}
    await arrived(taken, 1)
    (second,) = await claim(waiting)
    await stand(waiting)
    await exchange(waiting, completed(second))
    await add(queue, 1)
    assert await states(queue) == {"running": 1, "completed": 1, "queued": 1}


async def test_what_it_claims_leaves_less_room(
    ledger: Ledger, queue: JobQueue, taken: Taken
) -> None:
    await add(queue, 1)
    member = await ledger.join(queue, inbox=taken)
    found = (await exchange(member, wanted=want()._replace(later=2))).leases
    await add(queue, 2)
    assert len(found) == 1
    assert await states(queue) == {"running": 2, "queued": 1}


@pytest.mark.parametrize(
    "other", [{"kind": "other"}, {"lane": "host:a"}, {"lane": "?"}, {"run_at": 4e9}], ids=str
)
async def test_only_jobs_that_it_can_start_at_once(
    queue: JobQueue, waiting: Member, other: dict[str, Any]
) -> None:
    job = await add_one(queue, **other)
    assert await state_of(queue, job.id) is JobState.QUEUED


async def test_what_was_handed_over_goes_back_when_its_holder_leaves(
    ledger: Ledger, queue: JobQueue, waiting: Member, taken: Taken
) -> None:
    job = await add_one(queue)
    await arrived(taken, 1)
    await ledger.leave(waiting)
    (lease,) = await claim(await ledger.join(queue, KIND))
    assert (lease.id, lease.attempts) == (job.id, 1)


async def test_whoever_has_left_is_handed_nothing(
    ledger: Ledger, queue: JobQueue, waiting: Member
) -> None:
    await ledger.leave(waiting)
    job = await add_one(queue)
    assert await state_of(queue, job.id) is JobState.QUEUED


async def test_a_late_settlement_of_what_was_handed_over_is_refused(
    ledger: Ledger, queue: JobQueue, waiting: Member, taken: Taken
) -> None:
    await add_one(queue)
    await arrived(taken, 1)
    ledger.lapse(waiting)
    other = await ledger.join(queue, KIND)
    await other.upkeep()
    (lease,) = await claim(other)
    late = completed(taken[0])
    assert (await exchange(waiting, late)).stale == [late]
    assert lease.token > late.lease.token
