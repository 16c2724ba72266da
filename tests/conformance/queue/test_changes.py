"""A log: every change, in order, without a gap."""

import asyncio
import time

from penstock.model.change import Change
from penstock.model.job import Job
from penstock.ports.queue import JobFilter, JobQueue, Member, Progress
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    cancel_seen,
    claim,
    claim_one,
    completed,
    failed,
    get,
    handed_back,
    ids_of,
    one,
    released,
    retry,
    settle,
)
from tests.support.waiting import PATIENCE

WORDS = {
    "queued",
    "progress",
    "retry",
    "released",
    "completed",
    "failed",
    "cancelled",
    "redriven",
    "discarded",
}
"""What `Change.what` may say of a job."""


async def log(queue: JobQueue, name: str = "paper", since: int = 0) -> list[Change]:
    return await queue.changes("default", name, since, 10_000)


async def test_life_of_a_job_is_logged_in_order(queue: JobQueue, member: Member) -> None:
    before = time.time()
    job = await add_one(queue, log="paper")
    lease = await claim_one(member)
    await member.exchange([], [Progress(lease, 0.5, "half way")], None)
    await settle(member, retry(lease))
    await settle(member, released(await claim_one(member)))
    await settle(member, failed(await claim_one(member)))
    await queue.redrive(one(job))
    await settle(member, completed(await claim_one(member)))

    changes = await log(queue)

    assert [(change.version, change.what) for change in changes] == [
        (1, "queued"),
        (2, "progress"),
        (3, "retry"),
        (4, "released"),
        (5, "failed"),
        (6, "redriven"),
        (7, "completed"),
    ]
    assert {(change.log, change.job_id) for change in changes} == {("paper", job.id)}
    assert changes[0].data["kind"] == "work"
    assert (changes[1].data["progress"], changes[1].data["message"]) == (0.5, "half way")
    assert changes[2].data["error"]["type"] == "Boom"
    times = [change.at for change in changes]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.time()


async def test_batch_is_logged_in_its_order(queue: JobQueue) -> None:
    jobs = await add(queue, 30, log="paper")

    assert [change.job_id for change in await log(queue)] == ids_of(jobs)


async def test_cancel_is_logged_once(queue: JobQueue, member: Member) -> None:
    await add(queue, 2, log="paper")
    lease = await claim_one(member)
    await queue.cancel(JobFilter(log="paper"))
    await queue.cancel(JobFilter(log="paper"))
    await settle(member, cancel_seen(lease))

    assert [change.what for change in await log(queue)].count("cancelled") == 2


async def test_log_uses_only_the_documented_words(queue: JobQueue, member: Member) -> None:
    await add(queue, 4, log="paper")
    a, b, c, _ = await claim(member)
    await queue.cancel(one(a))
    await settle(member, cancel_seen(a), handed_back(b), failed(c))
    await queue.discard(one(c))

    assert {change.what for change in await log(queue)} <= WORDS


async def test_jobs_without_a_task_are_not_logged(queue: JobQueue, member: Member) -> None:
    await add_one(queue, log="paper")
    await add(queue, 3)
    leases = await claim(member)
    await member.exchange([], [Progress(lease, 0.5, "") for lease in leases], None)
    await settle(member, *map(completed, leases))

    assert [change.what for change in await log(queue)] == ["queued", "progress", "completed"]


async def test_refused_settlement_is_not_logged(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    other = await ledger.join(queue)
    await add_one(queue, log="paper")
    lease = await claim_one(member)
    ledger.lapse(member)
    await other.upkeep()
    await claim_one(other)
    before = await queue.versions([("default", "paper")])
    await member.exchange([completed(lease)], [Progress(lease, 0.5, "ghost")], None)

    assert await queue.versions([("default", "paper")]) == before


async def test_logs_are_apart_per_tenant_and_task(queue: JobQueue) -> None:
    await add(queue, 2, log="paper", tenant="a")
    await add(queue, 3, log="paper", tenant="b")
    await add(queue, 4, log="other", tenant="a")

    logs = [("a", "paper"), ("b", "paper"), ("a", "other"), ("b", "other"), ("a", "paper")]
    assert await queue.versions(logs) == [2, 3, 4, 0, 2]
    assert await queue.versions([]) == []
    assert [c.version for c in await queue.changes("b", "paper", 0, 100)] == [1, 2, 3]
    assert await queue.changes("b", "other", 0, 100) == []


async def test_reading_goes_on_where_it_stopped(queue: JobQueue) -> None:
    await add(queue, 10, log="paper")

    assert [c.version for c in await queue.changes("default", "paper", 0, 4)] == [1, 2, 3, 4]
    assert [c.version for c in await queue.changes("default", "paper", 4, 4)] == [5, 6, 7, 8]
    assert [c.version for c in await queue.changes("default", "paper", 8, 4)] == [9, 10]
    assert await queue.changes("default", "paper", 10, 4) == []


async def test_two_writers_leave_no_gap_and_lose_nothing(ledger: Ledger, queue: JobQueue) -> None:
    queues = [queue, await ledger.open()]
    members = [await ledger.join(each) for each in queues]

    async def write(each: JobQueue, member: Member, number: int) -> list[Job]:
        jobs = []
        for _ in range(15):
            jobs += await add(each, 2, log="paper", kind=f"kind{number}")
            lease = await claim_one(member, f"kind{number}")
            await settle(member, completed(lease))
        return jobs

    seen: list[Change] = []

    async def read() -> None:
        """A reader that keeps up never skips a version."""
        reader = await ledger.open()
        while len(seen) < 90:
            seen.extend(await reader.changes("default", "paper", len(seen), 1000))
            await asyncio.sleep(0.002)

    async with asyncio.timeout(PATIENCE):
        *written, _ = await asyncio.gather(
            *(write(queues[n], members[n], n) for n in (0, 1)), read()
        )

    assert [change.version for change in seen] == list(range(1, 91))
    assert seen == await log(queue)
    jobs = [job for jobs in written if jobs is not None for job in jobs]
    queued = [change.job_id for change in seen if change.what == "queued"]
    assert sorted(queued) == sorted(ids_of(jobs))
    done = [change.job_id for change in seen if change.what == "completed"]
    assert len(done) == len(set(done)) == 30


async def test_change_and_row_are_stored_together(ledger: Ledger, queue: JobQueue) -> None:
    """Whoever reads in the log that a job completed finds it completed."""
    member = await ledger.join(queue)
    reader = await ledger.open()
    await add(queue, 20, log="paper")

    async def work() -> None:
        for _ in range(20):
            await settle(member, completed(await claim_one(member)))

    async def check() -> None:
        version, found = 0, 0
        while found < 20:
            for change in await reader.changes("default", "paper", version, 100):
                version = change.version
                if change.what == "completed":
                    found += 1
                    assert (await get(reader, change.job_id)).state == "completed"
            await asyncio.sleep(0.001)

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(work(), check())
