"""Enqueue: a batch is stored whole, in order, once."""

import asyncio
import time
from dataclasses import replace

import pytest

from penstock.errors import KeyConflict
from penstock.model.ids import new_id, new_ids
from penstock.model.job import Job, JobState, Priority
from penstock.ports.queue import JobQueue, Member
from tests.conformance.support import (
    Ledger,
    add,
    add_keyed,
    add_one,
    claim,
    get,
    ids_of,
    new_jobs,
)


def stored(job: Job) -> Job:
    """The job without what is only derived when it is read."""
    return replace(job, waiting_for=None)


async def test_batch_is_stored_and_claimed_in_order(queue: JobQueue, member: Member) -> None:
    jobs = await add(queue, 50)

    assert [job.payload["n"] for job in jobs] == list(range(50))
    assert ids_of(await claim(member, 100)) == ids_of(jobs)


async def test_batches_are_claimed_in_the_order_they_came(queue: JobQueue, member: Member) -> None:
    first, second, third = [await add(queue, 3) for _ in range(3)]

    assert ids_of(await claim(member, 100)) == ids_of(first + second + third)


async def test_empty_batch_stores_nothing(queue: JobQueue) -> None:
    assert await add(queue, 0) == []
    assert await queue.counts() == []


async def test_everything_given_can_be_read_back(queue: JobQueue) -> None:
    job_id, run_at, deadline = new_id(), time.time() + 50.123456, time.time() + 99.654321
    before = time.time()
    await queue.enqueue(
        new_jobs(
            payloads=['{"text":"전화 \\u0000 \\ud83d\\ude00","big":12345678901234567890}'],
            ids=[job_id],
            keys=["k"],
            kind="a.b",
            tenant="t",
            priority=Priority.HIGH,
            run_at=run_at,
            deadline=deadline,
            timeout=1.5,
            max_retries=7,
            log="paper",
            parent_id="p",
            rerun_of="r",
        )
    )
    job = await get(queue, job_id)

    assert job.payload == {"text": "전화 \0 😀", "big": 12345678901234567890}
    assert (job.kind, job.tenant, job.key, job.log) == ("a.b", "t", "k", "paper")
    assert (job.parent_id, job.rerun_of) == ("p", "r")
    assert (job.priority, job.run_at, job.deadline) == (Priority.HIGH, run_at, deadline)
    assert (job.timeout, job.max_retries) == (1.5, 7)
    assert before <= job.enqueued_at <= time.time()
    assert (job.state, job.attempts, job.releases, job.progress) == (JobState.QUEUED, 0, 0, 0.0)
    assert (job.result, job.error, job.history) == (None, None, [])
    assert (job.started_at, job.finished_at) == (None, None)


async def test_returned_job_is_the_stored_job(queue: JobQueue) -> None:
    later = time.time() + 100.987654321
    plain = await add_one(queue)
    scheduled = await add_one(queue, run_at=later, deadline=later + 1, priority=Priority.LOW)
    keyed = await add_keyed(queue, "k", '{"a":[1,2.5,null]}', tenant="t", log="x", rerun_of="r")

    for job in (plain, scheduled, keyed):
        assert stored(job) == stored(await get(queue, job.id))


async def test_returned_job_with_a_run_at_in_the_past_is_the_stored_job(queue: JobQueue) -> None:
    job = await add_one(queue, run_at=time.time() - 100)

    assert stored(job) == stored(await get(queue, job.id))


@pytest.mark.parametrize("ahead", [None, -100, 100])
async def test_returned_jobs_of_a_large_batch_are_the_stored_jobs(
    queue: JobQueue, ahead: int | None
) -> None:
    run_at = None if ahead is None else time.time() + ahead
    jobs = await add(queue, 1_200, run_at=run_at)

    in_store = await queue.get(ids_of(jobs))
    assert [stored(job) for job in jobs] == [stored(in_store[job.id]) for job in jobs]


async def test_ids_known_and_new_mix_in_a_large_batch(queue: JobQueue) -> None:
    ids = new_ids(1_200)
    known = await add(queue, 2, ids=ids[600:602])
    jobs = await add(queue, 1_200, ids=ids)

    assert ids_of(jobs) == ids
    assert [stored(job) for job in jobs[600:602]] == [stored(job) for job in known]
    (counts,) = await queue.counts()
    assert counts.states == {JobState.QUEUED: 1_200}


async def test_conflict_in_a_batch_stores_nothing_of_it(queue: JobQueue) -> None:
    taken = await add_keyed(queue, "k", '{"v":1}')
    batch = new_jobs(payloads=["{}", '{"v":2}', "{}"], keys=["new", "k", None], log="paper")

    with pytest.raises(KeyConflict):
        await queue.enqueue(batch)

    assert await queue.get([item.id for item in batch.items]) == {}
    assert [counts.states for counts in await queue.counts()] == [{JobState.QUEUED: 1}]
    assert await queue.changes("default", "paper", 0, 10) == []
    # and the key of the refused neighbour is free
    assert (await add_keyed(queue, "new", '{"other":1}')).id != taken.id


async def test_conflict_of_one_caller_costs_the_others_nothing(queue: JobQueue) -> None:
    await add_keyed(queue, "k", '{"v":1}')

    outcomes = await asyncio.gather(
        *(add_keyed(queue, "k" if n % 2 else f"k{n}", '{"v":2}') for n in range(20)),
        return_exceptions=True,
    )

    assert sum(isinstance(outcome, KeyConflict) for outcome in outcomes) == 10
    (counts,) = await queue.counts()
    assert counts.states == {JobState.QUEUED: 11}


async def test_same_id_enqueued_again_is_the_same_job(queue: JobQueue) -> None:
    (job_id,) = new_ids(1)
    first = await add_one(queue, ids=[job_id], log="paper")
    again = await add_one(queue, ids=[job_id], log="paper")

    assert stored(again) == stored(first)
    (counts,) = await queue.counts()
    assert counts.states == {JobState.QUEUED: 1}
    assert await queue.versions([("default", "paper")]) == [1]


async def test_same_id_twice_in_one_batch_is_one_job(queue: JobQueue) -> None:
    (job_id,) = new_ids(1)
    first, second = await add(queue, 2, payloads=["{}", "{}"], ids=[job_id] * 2, log="paper")

    assert first.id == second.id == job_id
    (counts,) = await queue.counts()
    assert counts.states == {JobState.QUEUED: 1}
    assert await queue.versions([("default", "paper")]) == [1]


async def test_same_id_enqueued_at_once_is_one_job(queue: JobQueue) -> None:
    (job_id,) = new_ids(1)

    jobs = await asyncio.gather(
        *(
            add_one(queue, ids=[job_id], payloads=[f'{{"caller":{n}}}'], log="paper")
            for n in range(10)
        )
    )

    (counts,) = await queue.counts()
    assert counts.states == {JobState.QUEUED: 1}
    assert await queue.versions([("default", "paper")]) == [1], "one job, one entry in the log"
    in_store = stored(await get(queue, job_id))
    assert [stored(job) for job in jobs] == [in_store] * 10


async def test_ids_known_and_new_mix_in_one_batch(queue: JobQueue, member: Member) -> None:
    ids = new_ids(4)
    await add(queue, 2, ids=ids[1:3])
    jobs = await add(queue, 4, ids=ids)

    assert ids_of(jobs) == ids
    assert sorted(ids_of(await claim(member, 10))) == sorted(ids)


async def test_jobs_are_seen_by_another_queue_object(ledger: Ledger, queue: JobQueue) -> None:
    other = await ledger.open()
    jobs = await add(queue, 3)

    found = await other.get([job.id for job in jobs])
    assert {job_id: stored(job) for job_id, job in found.items()} == {
        job.id: stored(job) for job in jobs
    }


async def test_jobs_outlive_the_queue_object(ledger: Ledger, queue: JobQueue) -> None:
    job = await add_one(queue)
    await queue.close()
    await queue.open()

    assert stored(await get(queue, job.id)) == stored(job)
    assert (await add_one(queue)).id != job.id


async def test_missing_ids_are_left_out(queue: JobQueue) -> None:
    job = await add_one(queue)

    assert list(await queue.get([job.id, "missing"])) == [job.id]
    assert await queue.get([]) == {}
