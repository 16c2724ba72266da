"""Idempotency keys: one job per tenant, kind and key, for as long as it is kept."""

import asyncio

import pytest

from penstock.errors import KeyConflict
from penstock.model.job import Job, JobState
from penstock.ports.queue import JobFilter, JobQueue, Member
from tests.conformance.support import (
    Ledger,
    add,
    add_keyed,
    add_one,
    claim,
    claim_one,
    finish_as,
    get,
    new_jobs,
    one,
    retry,
    settle,
)


async def test_same_key_gives_the_same_job(queue: JobQueue) -> None:
    first = await add_keyed(queue, "k", '{"a":1}')
    again = await add_keyed(queue, "k", '{"a":1}')

    assert again.id == first.id
    assert again.enqueued_at == first.enqueued_at


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
async def test_same_key_gives_the_same_job_after_it_has_finished(
    queue: JobQueue, member: Member, state: str
) -> None:
    old = await finish_as(queue, member, state, payloads=["{}"], keys=["k"])
    again = await add_keyed(queue, "k")

    assert again.id == old.id
    assert again.state == state
    assert await claim(member) == []


async def test_same_key_gives_the_same_job_while_it_runs_or_waits_for_a_retry(
    queue: JobQueue, member: Member
) -> None:
    job = await add_keyed(queue, "k")
    lease = await claim_one(member)
    assert (await add_keyed(queue, "k")).state is JobState.RUNNING
    await settle(member, retry(lease))

    again = await add_keyed(queue, "k")
    assert (again.id, again.attempts, again.key) == (job.id, 1, "k")


async def test_other_payload_under_a_key_is_a_conflict(queue: JobQueue) -> None:
    job = await add_keyed(queue, "k", '{"a":1}')

    with pytest.raises(KeyConflict) as conflict:
        await add_keyed(queue, "k", '{"a":2}')

    assert (conflict.value.key, conflict.value.job_id) == ("k", job.id)
    assert (await get(queue, job.id)).payload == {"a": 1}


async def test_keys_are_apart_per_tenant_and_kind(queue: JobQueue) -> None:
    jobs = [
        await add_keyed(queue, "k", f'{{"n":{n}}}', tenant=tenant, kind=kind)
        for n, (tenant, kind) in enumerate(
            (tenant, kind) for tenant in ("a", "b") for kind in ("x", "y")
        )
    ]

    assert len({job.id for job in jobs}) == 4


async def test_jobs_without_a_key_are_never_the_same(queue: JobQueue) -> None:
    jobs = await add(queue, payloads=["{}"] * 5)

    assert len({job.id for job in jobs}) == 5


async def test_key_twice_in_one_batch_is_one_job(queue: JobQueue) -> None:
    jobs = await add(
        queue, payloads=["{}", "{}", "{}", "{}"], keys=["k", None, "k", "l"], log="paper"
    )

    assert jobs[0].id == jobs[2].id
    assert len({job.id for job in jobs}) == 3
    assert await queue.versions([("default", "paper")]) == [3]


async def test_key_twice_in_one_batch_with_other_payloads_is_a_conflict(queue: JobQueue) -> None:
    with pytest.raises(KeyConflict):
        await add(queue, payloads=['{"a":1}', '{"a":2}'], keys=["k", "k"])

    assert await queue.counts() == []


async def test_old_and_new_keys_mix_in_one_batch(queue: JobQueue) -> None:
    old = await add_keyed(queue, "b")
    jobs = await add(queue, payloads=["{}"] * 3, keys=["a", "b", "c"])

    assert [job.key for job in jobs] == ["a", "b", "c"]
    assert jobs[1].id == old.id
    (counts,) = await queue.counts()
    assert counts.states == {JobState.QUEUED: 3}


async def test_racing_enqueues_with_one_key_give_one_job(ledger: Ledger, queue: JobQueue) -> None:
    other = await ledger.open()

    jobs = await asyncio.gather(
        *(add_keyed(queue if n % 2 else other, "k", log="paper") for n in range(60))
    )

    assert len({job.id for job in jobs}) == 1
    (counts,) = await queue.counts()
    assert counts.states == {JobState.QUEUED: 1}
    assert await queue.versions([("default", "paper")]) == [1]


async def test_racing_enqueues_with_other_payloads_have_one_winner(
    ledger: Ledger, queue: JobQueue
) -> None:
    other = await ledger.open()

    outcomes = await asyncio.gather(
        *(add_keyed(queue if n % 2 else other, "k", f'{{"n":{n}}}') for n in range(40)),
        return_exceptions=True,
    )

    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, Job)]
    conflicts = [outcome for outcome in outcomes if isinstance(outcome, KeyConflict)]
    assert len(conflicts) == 39
    assert {conflict.job_id for conflict in conflicts} == {winner.id}


@pytest.mark.parametrize("state", ["failed", "cancelled"])
async def test_replace_finished_starts_anew_and_keeps_the_old_job(
    queue: JobQueue, member: Member, state: str
) -> None:
    old = await finish_as(queue, member, state, payloads=["{}"], keys=["k"])
    new = await add_keyed(queue, "k", '{"other":"payload"}', replace_finished=True)

    assert new.id != old.id
    assert (new.state, new.attempts, new.history) == (JobState.QUEUED, 0, [])
    kept = await get(queue, old.id)
    assert (kept.state, kept.error, kept.history) == (old.state, old.error, old.history)
    # the key now means the new job
    assert (await add_keyed(queue, "k", '{"other":"payload"}')).id == new.id
    assert (await claim_one(member)).id == new.id


@pytest.mark.parametrize("state", ["queued", "running", "completed"])
async def test_replace_finished_replaces_nothing_else(
    queue: JobQueue, member: Member, state: str
) -> None:
    if state == "completed":
        old = await finish_as(queue, member, state, payloads=["{}"], keys=["k"])
    else:
        old = await add_keyed(queue, "k")
        if state == "running":
            await claim_one(member)

    same = await add_keyed(queue, "k", replace_finished=True)
    assert (same.id, same.state) == (old.id, state)
    with pytest.raises(KeyConflict):
        await add_keyed(queue, "k", '{"other":1}', replace_finished=True)


async def test_racing_replacements_make_one_new_job(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    other = await ledger.open()
    old = await finish_as(queue, member, "failed", payloads=["{}"], keys=["k"])

    jobs = await asyncio.gather(
        *(add_keyed(queue if n % 2 else other, "k", replace_finished=True) for n in range(30))
    )

    assert len({job.id for job in jobs}) == 1
    assert jobs[0].id != old.id
    (counts,) = await queue.counts()
    assert counts.states == {JobState.QUEUED: 1, JobState.FAILED: 1}


async def test_replacing_a_job_by_its_own_id_keeps_its_key(queue: JobQueue, member: Member) -> None:
    """A parent that is run again enqueues its child with the same id and key."""
    old = await finish_as(queue, member, "failed", payloads=["{}"], keys=["k"])
    (again,) = await queue.enqueue(
        new_jobs(payloads=["{}"], keys=["k"], ids=[old.id], replace_finished=True)
    )

    assert again.id == old.id
    assert (await get(queue, old.id)).key == "k"


async def test_redriven_job_whose_key_was_taken_over_leaves_the_key_to_the_new_one(
    queue: JobQueue, member: Member
) -> None:
    old = await finish_as(queue, member, "failed", payloads=["{}"], keys=["k"])
    new = await add_keyed(queue, "k", replace_finished=True)

    assert await queue.redrive(one(old)) == [old.id]
    assert (await add_keyed(queue, "k")).id == new.id
    assert len(await claim(member)) == 2


async def test_key_of_a_discarded_job_is_free(queue: JobQueue, member: Member) -> None:
    old = await finish_as(queue, member, "failed", payloads=["{}"], keys=["k"])
    await queue.discard(JobFilter())

    assert (await add_keyed(queue, "k", '{"other":1}')).id != old.id


async def test_job_of_another_kind_is_untouched_by_a_key(queue: JobQueue) -> None:
    plain = await add_one(queue, kind="x")
    await add_keyed(queue, "k", kind="y")

    assert (await get(queue, plain.id)).key is None
