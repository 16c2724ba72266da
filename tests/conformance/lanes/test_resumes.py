"""Jobs in lanes that go on after a sleep or a signal: their start was paid for."""

import math

from penstock import JobContext, Penstock
from penstock.ports.queue import JobQueue, Lease, Member
from tests.conformance.lane_support import (
    LANE,
    claim_lanes,
    claim_one_in_lane,
    claimed_soon,
    info,
    open_lanes,
)
from tests.conformance.queue.test_events import running
from tests.conformance.queue.test_signals import suspended
from tests.conformance.support import (
    KIND,
    Ledger,
    add_one,
    completed,
    handed_back,
    retry,
    settle,
    until,
)
from tests.support.waiting import PATIENCE


async def slept(queue: JobQueue, member: Member, signal: str | None = None) -> Lease:
    """A job in the lane that was started, and is due again after it was suspended."""
    await add_one(queue, lane=LANE)
    lease = await claim_one_in_lane(member)
    assert lease.void_at < math.inf
    await settle(member, suspended(lease, signal, run_at=0.0))
    return lease


async def test_a_job_that_resumes_is_not_charged_for_a_start(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"requests_per_day": 1, "min_interval_seconds": 3600.0})
    member = await ledger.join(queue)
    lease = await slept(queue, member)
    for signal in ("go", None):
        again = await claim_one_in_lane(member)
        assert (again.id, again.void_at) == (lease.id, math.inf)
        lane = await info(queue)
        assert (lane.in_flight, lane.used_today) == (1, 1)
        await settle(member, suspended(again, signal, run_at=0.0))

    again = await claim_one_in_lane(member)
    assert again.id == lease.id
    await add_one(queue, lane=LANE)
    await settle(member, completed(again))
    assert await claim_lanes(member) == []  # the one start of the day was the first job's


async def test_a_job_that_resumes_keeps_its_turn_in_line(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"requests_per_day": 1})
    member = await ledger.join(queue)
    await add_one(queue, lane=LANE)
    lease = await claim_one_in_lane(member)
    await settle(member, suspended(lease, "go"))
    await add_one(queue, lane=LANE)
    await queue.signal(lease.id, "go", "1", None)

    assert await claim_lanes(member) == []  # it stands behind one that waits for tomorrow


async def test_a_job_that_resumes_waits_for_a_slot(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"max_parallel": 1})
    member = await ledger.join(queue)
    await add_one(queue, lane=LANE)
    lease = await claim_one_in_lane(member)
    await settle(member, suspended(lease, "go"))
    other = await add_one(queue, lane=LANE)
    holder = await claim_one_in_lane(member)
    assert holder.id == other.id
    await queue.signal(lease.id, "go", "1", None)
    assert await claim_lanes(member) == []

    await settle(member, completed(holder))

    again = await claim_one_in_lane(member)
    assert (again.id, again.void_at) == (lease.id, math.inf)


async def test_a_retry_and_a_hand_back_after_a_resume_are_charged(ledger: Ledger) -> None:
    queue = await open_lanes(ledger, api={"requests_per_day": 10})
    member = await ledger.join(queue)
    await slept(queue, member)
    for used, end in enumerate((handed_back, retry), 2):
        await settle(member, end(await claim_one_in_lane(member)))
        (again,) = await claimed_soon(member)
        assert again.void_at < math.inf
        assert (await info(queue)).used_today == used
        await settle(member, suspended(again, run_at=0.0))


async def test_a_first_request_after_a_resume_takes_a_permit_of_its_own(
    ledger: Ledger,
) -> None:
    queue = await open_lanes(ledger, api={"requests_per_day": 10})
    app = Penstock("sqlite:///not-used.db", lease_seconds=600.0).on_queue(queue)
    used: list[int] = []

    @app.job(KIND, lane=LANE)
    async def handler(ctx: JobContext) -> None:
        async with ctx.lanes.request(LANE):
            used.append((await info(queue)).used_today)
        await ctx.wait_for("go")
        used.append((await info(queue)).used_today)
        async with ctx.lanes.request(LANE):
            used.append((await info(queue)).used_today)

    async with running(app):
        job = await app.enqueue(KIND)

        async def waits() -> bool:
            return "signal" in ((await app.get(job.id)).waiting_for or "")

        await until(waits)
        await app.signal(job.id, "go")
        await app.result(job.id, timeout=PATIENCE)
    # The start paid for the request of the first run. The second run begins with the first line.
    assert used == [1, 2, 2, 3]
