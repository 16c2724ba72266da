"""The span that enqueued a job goes with every lease of it."""

from penstock.ports.queue import JobQueue, KindDefaults, Member, Want
from tests.conformance.support import add, add_one, claim_one, exchange, new_jobs, retry, settle

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_trace_goes_with_every_lease_of_a_job(queue: JobQueue, member: Member) -> None:
    await add_one(queue, trace=TRACE)
    first = await claim_one(member)
    assert first.trace == TRACE
    await settle(member, retry(first))
    again = await claim_one(member)
    assert (again.id, again.attempts, again.trace) == (first.id, 2, TRACE)


async def test_job_that_nobody_traces_has_no_trace(queue: JobQueue, member: Member) -> None:
    await add(queue, 1)
    assert (await claim_one(member)).trace is None


async def test_trace_goes_with_a_lease_in_a_lane(queue: JobQueue, member: Member) -> None:
    lane = "slow"
    await queue.enqueue(new_jobs(1, lane=lane, trace=TRACE))
    kinds = {"work": KindDefaults(30.0, 3, lambda payload: lane)}
    (lease,) = (await exchange(member, wanted=Want(0, kinds, True, lanes=5))).leases
    assert (lease.lane, lease.trace) == (lane, TRACE)
    assert lease.void_at > lease.start_at > 0
