"""Bursts: of many enqueues the latest counts (debounce), or the first (unique)."""

import asyncio
import json
from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from penstock.adapters.sql.queue import SqlQueue
from penstock.adapters.sql.upkeep import retain
from penstock.errors import ParentEnded
from penstock.model.job import Job, JobState, Priority
from penstock.ports.queue import Debounce, JobFilter, JobQueue, Member, NewJob, NewJobs
from tests.conformance.queue.test_children import child_of, parent_of
from tests.conformance.support import (
    KIND,
    LONG,
    ROOT,
    Ledger,
    add_one,
    claim,
    claim_one,
    completed,
    exchange,
    failed,
    get,
    new_jobs,
    one,
    retry,
    settle,
    until,
    want,
)
from tests.support import forks
from tests.support.waiting import PATIENCE

AT_ONCE = Debounce(0.001, 0.001)
"""It is due, and has waited for as long as it may, once it is looked at."""


def burst(payload: str = "{}", key: str = "k", **options: Any) -> NewJobs:
    """One job of a burst."""
    batch = new_jobs(payloads=[payload], **options)
    return replace(batch, items=[item._replace(burst=key) for item in batch.items])


async def put(queue: JobQueue, payload: str = "{}", key: str = "k", **options: Any) -> Job:
    (job,) = await queue.enqueue(burst(payload, key, **options))
    return job


async def latest(queue: JobQueue, payload: str = "{}", key: str = "k", **options: Any) -> Job:
    return await put(queue, payload, key, **{"debounce": Debounce(60.0, LONG), **options})


async def due(ledger: Ledger, queue: JobQueue, job: Job) -> None:
    """Let a process that handles other kinds put the job in line."""
    other = await ledger.join(queue, "another")

    async def in_line() -> bool:
        is_due = job.run_at + 0.1 <= queue.now()  # before the claim, and by the server's clock, too
        assert await claim(other, 1, "another") == []
        why = (await get(queue, job.id)).waiting_for or ""
        return is_due and "its time" not in why

    await until(in_line)
    await ledger.leave(other)


async def test_latest_payload_and_what_belongs_to_it_replace_the_first(queue: JobQueue) -> None:
    deadline = queue.now() + LONG
    first = await latest(queue, '{"n":1}', deadline=deadline, timeout=5.0, priority=Priority.LOW)
    second = await latest(
        queue, '{"n":2}', debounce=Debounce(120.0, LONG), lane="a", timeout=7.0, max_retries=1
    )

    assert (first.debounce_key, first.payload, first.timeout) == ("k", {"n": 1}, 5.0)
    assert first.run_at == pytest.approx(first.enqueued_at + 60.0)
    assert "debounced" in (await get(queue, first.id)).waiting_for  # type: ignore[operator]
    assert (second.id, second.enqueued_at) == (first.id, first.enqueued_at)
    assert second.run_at > first.run_at
    stored = await get(queue, first.id)
    assert (stored.payload, stored.lane, stored.priority) == ({"n": 2}, "a", Priority.MEDIUM)
    assert (stored.deadline, stored.timeout, stored.max_retries) == (None, 7.0, 1)
    assert (stored.run_at, stored.debounce_key) == (second.run_at, "k")
    assert await queue.queued() == 1


async def test_no_enqueue_puts_it_off_beyond_the_longest_wait(queue: JobQueue) -> None:
    first = await latest(queue)
    last = await latest(queue, debounce=Debounce(LONG, 90.0))

    assert last.run_at == pytest.approx(first.enqueued_at + 90.0)


async def test_other_tenants_kinds_and_keys_are_other_bursts(queue: JobQueue) -> None:
    jobs = [
        await latest(queue),
        await latest(queue, key="other"),
        await latest(queue, kind="other"),
        await latest(queue, tenant="other"),
        await put(queue, unique_for=60.0),
    ]
    assert len({job.id for job in jobs}) == 5
    batch = burst(debounce=Debounce(60.0, LONG))
    both = [NewJob(f"{n:032x}", '{"n":7}', None, "", burst=key) for n, key in enumerate("xk")]
    new, old = await queue.enqueue(NewJobs(KIND, both, debounce=batch.debounce))
    assert (old.id, old.payload, new.debounce_key) == (jobs[0].id, {"n": 7}, "x")


async def test_key_is_free_once_the_job_is_claimed(queue: JobQueue, member: Member) -> None:
    first = await latest(queue, debounce=AT_ONCE)
    (lease,) = await until(lambda: claim(member))
    second = await latest(queue, '{"n":2}', debounce=AT_ONCE)
    await settle(member, retry(lease, run_at=queue.now() + LONG))  # it is queued once more
    third = await latest(queue, '{"n":3}')

    assert second.id != first.id
    assert (third.id, (await get(queue, first.id)).payload) == (second.id, {})


@pytest.mark.parametrize("state", ["cancelled", "redriven"])
async def test_job_that_has_ended_is_no_burst_any_more(
    queue: JobQueue, member: Member, state: str
) -> None:
    first = await latest(queue, debounce=AT_ONCE)
    if state == "cancelled":
        await queue.cancel(one(first))
    else:
        (lease,) = await until(lambda: claim(member))
        await settle(member, failed(lease))
        await queue.redrive(one(first))
    second = await latest(queue)

    assert second.id != first.id
    assert (await get(queue, second.id)).state is JobState.QUEUED


async def test_job_in_line_is_put_off_again_until_its_longest_wait(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    first = await latest(queue, debounce=Debounce(0.001, LONG))
    await due(ledger, queue, first)
    again = await latest(queue, '{"n":2}')

    assert (again.id, await claim(member)) == (first.id, [])
    await queue.cancel(one(first))

    first = await latest(queue, debounce=AT_ONCE, lane="a")
    await due(ledger, queue, first)
    behind = await add_one(queue, lane="a")
    again = await latest(queue, '{"n":2}', debounce=AT_ONCE, lane="a")
    other = await latest(queue, '{"n":3}', debounce=AT_ONCE, lane="b")

    assert (again.id, again.payload) == (first.id, {"n": 2})
    assert other.id != first.id  # the first keeps its place, in the line it is in
    assert (await get(queue, first.id)).debounce_key is None
    leases = (await exchange(member, wanted=want(0)._replace(lanes=5))).leases
    assert [lease.id for lease in leases[:2]] == [first.id, behind.id]
    assert json.loads(leases[0].payload) == {"n": 2}


async def test_id_that_is_taken_gives_its_job_unchanged(queue: JobQueue) -> None:
    first = await latest(queue, '{"n":1}', ids=["a" * 32])
    await latest(queue, '{"n":2}')
    again = await latest(queue, '{"n":1}', ids=["a" * 32])

    assert (again.id, again.payload) == (first.id, {"n": 2})


async def test_debounced_job_is_no_child_and_only_a_run_that_goes_on_enqueues_it(
    ledger: Ledger, queue: JobQueue
) -> None:
    member = await ledger.join(queue, "parent")
    parent = await parent_of(queue, member)
    job = await latest(queue, **child_of(parent, member))
    assert job.parent_id is None

    await queue.cancel(one(parent))
    await member.upkeep()
    assert (await get(queue, job.id)).state is JobState.QUEUED
    with pytest.raises(ParentEnded):
        await latest(queue, '{"n":2}', **child_of(parent, member))
    assert (await get(queue, job.id)).payload == {}


async def test_equal_job_is_the_first_whatever_became_of_it(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    first = await put(queue, unique_for=LONG)
    other = await put(queue, '{"n":2}', unique_for=LONG)
    assert other.id == first.id, "the key says what is equal"
    await settle(member, completed(await claim_one(member)))
    again = await put(queue, unique_for=LONG)

    assert (again.id, again.state) == (first.id, JobState.COMPLETED)
    assert (await put(queue, unique_for=LONG, tenant="other")).id != first.id
    both = burst(unique_for=LONG)
    items = [NewJob(f"{n:032x}", "{}", None, "", burst=key) for n, key in enumerate("xk")]
    new, old = await queue.enqueue(NewJobs(both.kind, items, unique_for=LONG))
    assert (old.id, new.id) == (first.id, items[0].id)


async def test_equal_job_is_a_new_one_later(queue: JobQueue, member: Member) -> None:
    first = await put(queue, unique_for=0.001)

    async def another() -> bool:
        return (await put(queue, unique_for=0.001)).id != first.id

    await until(another)
    dead = await put(queue, key="dead", unique_for=LONG)
    leases = await claim(member, 100)
    await settle(member, *(failed(lease) for lease in leases))
    await queue.discard(JobFilter())
    assert (await put(queue, key="dead", unique_for=LONG)).id != dead.id


async def test_nothing_is_remembered_of_what_may_be_enqueued_again(queue: JobQueue) -> None:
    if not isinstance(queue, SqlQueue):
        return  # keys of Redis expire
    await put(queue, key="short", unique_for=0.001)
    await put(queue, key="long", unique_for=LONG)

    async def kept() -> bool:
        await retain(queue)
        rows = await queue.rows("SELECT burst FROM penstock.unique_jobs")
        return [burst for (burst,) in rows] == ["long"]

    await until(kept)


async def test_equal_jobs_enqueued_at_once_are_one(ledger: Ledger, queue: JobQueue) -> None:
    queues = [queue, *[await ledger.open() for _ in range(3)]]
    same = [put(queues[n % 4], unique_for=LONG) for n in range(24)]
    jobs = await asyncio.gather(*same)

    assert len({job.id for job in jobs}) == await queue.queued() == 1


async def test_fifty_at_once_are_one_job_with_one_of_their_payloads(
    ledger: Ledger, queue: JobQueue
) -> None:
    queues = [queue, *[await ledger.open() for _ in range(3)]]
    many = [latest(queues[n % 4], f'{{"n":{n}}}') for n in range(50)]
    jobs = await asyncio.gather(*many)
    last = await latest(queue, '{"n":50}')

    assert {job.id for job in jobs} == {last.id}
    assert (await get(queue, last.id)).payload == {"n": 50}
    assert await queue.queued() == 1


class Enqueued(NamedTuple):
    process: int
    n: int
    sent: float
    told: float


@pytest.mark.real
async def test_no_payload_is_acknowledged_and_then_not_run(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    """Processes enqueue in one burst while its jobs are claimed; one of them is killed."""
    command = forks.command("tests.conformance.burster", ledger.backend_name, ledger.url)
    processes = [
        await asyncio.create_subprocess_exec(
            *command, str(number), cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        for number in range(3)
    ]
    told: dict[str, list[Enqueued]] = defaultdict(list)
    ran: dict[str, Any] = {}

    async def read(number: int) -> None:
        out = processes[number].stdout
        assert out is not None
        while line := await out.readline():
            n, job, sent, at = line.decode().split()
            told[job].append(Enqueued(number, int(n), float(sent), float(at)))
            if number == 0 and int(n) == 20:
                processes[0].kill()
        await processes[number].wait()

    async def work() -> bool:
        for lease in await claim(member):
            assert lease.id not in ran
            ran[lease.id] = json.loads(lease.payload)
            assert await settle(member, completed(lease)) == []
        return await queue.queued() == 0

    async with asyncio.timeout(PATIENCE):
        reading = asyncio.gather(*map(read, range(3)))
        while not reading.done():
            await work()
            await asyncio.sleep(0.001)
        await reading
    await until(work)

    assert len(ran) > 1
    assert sum(map(len, told.values())) > len(ran)
    for job, enqueued in told.items():
        process, n = ran[job]["process"], ran[job]["n"]
        its = [one.told for one in enqueued if (one.process, one.n) == (process, n)]
        assert its or process == 0  # which was killed before it was told
        late = [one for one in enqueued if its and one.sent > its[0]]
        assert not late, f"{job} ran with {process}, {n}, and {late} came later"
