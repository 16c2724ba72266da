"""Settling: fenced, each ending with its own effect on the row."""

import asyncio
import json
import time
from dataclasses import replace

import pytest

from penstock.model.job import HISTORY_LIMIT, Job, JobState
from penstock.ports.queue import JobFilter, JobQueue, Lease, Member, Outcome, Progress, Settlement
from tests.conformance.support import (
    End,
    Ledger,
    add,
    add_one,
    cancel_seen,
    claim,
    claim_one,
    completed,
    error_of,
    exchange,
    failed,
    get,
    handed_back,
    one,
    released,
    retry,
    settle,
    until,
    want,
)

ENDINGS = [completed, failed, retry, released, handed_back]


async def report(member: Member, lease: Lease, fraction: float, message: str) -> None:
    await member.exchange([], [Progress(lease, fraction, message)], None)


async def test_completed_job_keeps_its_result(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    result = {"text": "전화 \0", "n": [1, 2.5, None], "big": 2**70}
    lease = await claim_one(member)
    settlement = Settlement(
        lease, Outcome.COMPLETED, started_at=1000.5, finished_at=1001.25, result=json.dumps(result)
    )
    assert await settle(member, settlement) == []

    done = await get(queue, job.id)
    assert (done.state, done.result, done.error) == (JobState.COMPLETED, result, None)
    assert (done.attempts, done.progress) == (1, 1.0)
    assert (done.started_at, done.finished_at) == (1000.5, 1001.25)
    assert await queue.finished([job.id]) == [job.id]
    assert not await queue.work_left(None)


async def test_result_may_be_as_large_as_the_limit(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    text = "é" * (512 * 1024 - 1)
    await settle(member, completed(await claim_one(member), json.dumps(text, ensure_ascii=False)))

    assert (await get(queue, job.id)).result == text


async def test_retried_job_is_queued_for_later_with_its_attempt_spent(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue, keys=["k"])
    lease = await claim_one(member)
    await report(member, lease, 0.7, "nearly")
    at = time.time() + 100
    settlement = Settlement(
        lease, Outcome.RETRY, 1000.5, 1001.25, error=error_of(), run_at=at, traceback="line 1"
    )
    assert await settle(member, settlement) == []

    waiting = await get(queue, job.id)
    assert (waiting.state, waiting.attempts, waiting.run_at) == (JobState.QUEUED, 1, at)
    assert (waiting.error, waiting.key) == (error_of(), "k")
    assert (waiting.progress, waiting.message) == (0.0, "")
    assert (waiting.started_at, waiting.finished_at) == (None, None)
    assert waiting.waiting_for is not None
    (record,) = waiting.history
    assert (record.attempt, record.outcome, record.error) == (1, "retry", error_of())
    assert (record.started_at, record.finished_at) == (1000.5, 1001.25)
    assert (record.traceback, record.process) == ("line 1", member.id)
    assert await claim(member) == []
    assert await queue.work_left(None)


async def test_every_run_is_on_the_record_and_attempts_count_up(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    for attempt in (1, 2, 3):
        lease = await claim_one(member)
        assert lease.attempts == attempt
        assert len(json.loads(lease.history)) == attempt - 1
        await settle(member, retry(lease, message=f"failure {attempt}"))
    await settle(member, failed(await claim_one(member), message="failure 4"))

    dead = await get(queue, job.id)
    assert (dead.state, dead.attempts) == (JobState.FAILED, 4)
    assert [(r.attempt, r.outcome, r.error.message) for r in dead.history] == [
        (1, "retry", "failure 1"),
        (2, "retry", "failure 2"),
        (3, "retry", "failure 3"),
        (4, "failed", "failure 4"),
    ]


async def test_failed_job_is_a_dead_letter_with_its_error(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    settlement = Settlement(
        lease, Outcome.FAILED, 1000.5, 1001.25, error=error_of(), traceback="line 1"
    )
    assert await settle(member, settlement) == []

    dead = await get(queue, job.id)
    assert (dead.state, dead.attempts, dead.error) == (JobState.FAILED, 1, error_of())
    assert (dead.started_at, dead.finished_at, dead.result) == (1000.5, 1001.25, None)
    assert [(r.attempt, r.outcome) for r in dead.history] == [(1, "failed")]
    assert await queue.finished([job.id]) == [job.id]
    assert not await queue.work_left(None)


async def test_released_job_gets_its_attempt_back_and_is_counted(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    at = time.time() + 100
    assert await settle(member, released(await claim_one(member), at, "no room")) == []

    waiting = await get(queue, job.id)
    assert (waiting.state, waiting.attempts, waiting.releases) == (JobState.QUEUED, 0, 1)
    assert (waiting.run_at, waiting.message, waiting.error) == (at, "no room", None)
    assert waiting.waiting_for is not None
    assert "no room" in waiting.waiting_for
    assert await claim(member) == []


async def test_releases_add_up(queue: JobQueue, member: Member) -> None:
    await add_one(queue)
    for releases in range(3):
        lease = await claim_one(member)
        assert (lease.attempts, lease.releases) == (1, releases)
        await settle(member, released(lease))


async def test_job_handed_back_is_as_if_never_claimed(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    await report(member, lease, 0.3, "begun")
    assert await settle(member, handed_back(lease)) == []

    back = await get(queue, job.id)
    assert replace(back, waiting_for=None) == replace(job, waiting_for=None)
    assert (await claim_one(member)).attempts == 1


async def test_job_handed_back_for_later_is_not_claimed_before(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    at = time.time() + 100
    await settle(member, handed_back(await claim_one(member), at))

    back = await get(queue, job.id)
    assert (back.state, back.attempts, back.releases, back.run_at) == (JobState.QUEUED, 0, 0, at)
    assert await claim(member) == []


async def test_completing_clears_the_error_of_earlier_runs(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    await settle(member, retry(await claim_one(member)))
    await settle(member, completed(await claim_one(member), "1"))

    done = await get(queue, job.id)
    assert (done.error, done.result, done.attempts) == (None, 1, 2)
    assert [record.outcome for record in done.history][:1] == ["retry"]


async def test_progress_is_shown_while_the_job_runs(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    await report(member, lease, 0.25, "a quarter")

    running = await get(queue, job.id)
    assert (running.progress, running.message) == (0.25, "a quarter")


async def test_progress_of_a_lost_lease_is_ignored(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    await settle(member, handed_back(lease))
    other = await ledger.join(queue)
    await claim_one(other)
    await report(member, lease, 0.9, "ghost")

    running = await get(queue, job.id)
    assert (running.progress, running.message) == (0.0, "")


async def lose_lease(ledger: Ledger, queue: JobQueue, member: Member) -> tuple[Lease, Lease]:
    """A job claimed by `member`, whose membership lapses, and then by another."""
    other = await ledger.join(queue)
    await add_one(queue, task="paper")
    old = await claim_one(member)
    ledger.lapse(member)
    new = await claim_one(other)
    assert (new.id, new.token > old.token) == (old.id, True)
    return old, new


@pytest.mark.parametrize("end", ENDINGS)
async def test_late_settle_is_rejected_and_changes_nothing(
    ledger: Ledger, queue: JobQueue, member: Member, end: End
) -> None:
    old, _ = await lose_lease(ledger, queue, member)
    before = await get(queue, old.id)
    version = await queue.versions([("default", "paper")])
    late = end(old)

    assert await settle(member, late) == [late]
    assert await get(queue, old.id) == before
    assert await queue.versions([("default", "paper")]) == version


@pytest.mark.parametrize("end", ENDINGS)
async def test_late_settle_is_rejected_after_the_new_holder_has_settled(
    ledger: Ledger, queue: JobQueue, member: Member, end: End
) -> None:
    old, new = await lose_lease(ledger, queue, member)
    await settle(member, completed(new, '"new"'))
    done = await get(queue, old.id)
    late = end(old)

    assert await settle(member, late) == [late]
    assert await get(queue, old.id) == done


async def test_lease_that_is_not_renewed_runs_out(ledger: Ledger, queue: JobQueue) -> None:
    """The one test that waits for real; the others let the backend move its clock."""
    frozen = await ledger.join(queue, lease_seconds=1.0)
    other = await ledger.join(queue)
    await add_one(queue)
    old = await claim_one(frozen)
    assert await claim(other) == []

    (new,) = await until(lambda: claim(other), "the lease to run out")

    assert (new.id, new.token > old.token) == (old.id, True)
    assert frozen.renew({}, []) is False
    late = completed(old)
    assert await settle(frozen, late) == [late]


async def test_renewed_lease_does_not_run_out(ledger: Ledger, queue: JobQueue) -> None:
    frozen = await ledger.join(queue, lease_seconds=1.0)
    other = await ledger.join(queue)
    await add_one(queue)
    lease = await claim_one(frozen)

    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        assert await asyncio.to_thread(frozen.renew, {"busy": 1}, [])
        assert await claim(other) == []
        await asyncio.sleep(0.05)

    assert await settle(frozen, completed(lease)) == []


async def test_settle_in_time_stands_even_if_the_lease_has_run_out_unnoticed(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    ledger.lapse(member)

    assert await settle(member, completed(lease, "1")) == []
    assert (await get(queue, job.id)).result == 1


async def test_late_settle_never_touches_a_newer_job(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    """A deleted job's place in the store may be used again; its leases must not be."""
    other = await ledger.join(queue)
    old = await add_one(queue, max_retries=0)
    lease = await claim_one(member)
    member.mark_started(lease)
    ledger.lapse(member)
    assert await claim(other) == []
    assert await queue.discard(one(old)) == [old.id]
    new = await add_one(queue)
    running = await claim_one(other)
    late = completed(lease, '"of the old job"')

    assert await settle(member, late) == [late]
    untouched = await get(queue, new.id)
    assert (untouched.state, untouched.result) == (JobState.RUNNING, None)
    assert await settle(other, completed(running, '"its own"')) == []
    assert (await get(queue, new.id)).result == "its own"


@pytest.mark.parametrize("end", ENDINGS)
async def test_settling_twice_is_a_no_op(queue: JobQueue, member: Member, end: End) -> None:
    await add_one(queue, task="paper")
    settlement = end(await claim_one(member))
    assert await settle(member, settlement) == []
    before = await get(queue, settlement.lease.id)
    version = await queue.versions([("default", "paper")])

    assert await settle(member, settlement) == [], "not stale: it is stored"
    assert await settle(member, settlement, settlement) == []
    assert await get(queue, settlement.lease.id) == before
    assert await queue.versions([("default", "paper")]) == version


async def test_batch_of_settlements_refuses_only_the_stale_ones(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    old, _ = await lose_lease(ledger, queue, member)
    again = await ledger.join(queue)
    await add(queue, 6)
    a, b, c, d, e, f = await claim(again, 6)
    late = completed(old)

    stale = await settle(
        again, completed(a), failed(b), late, retry(c), released(d), handed_back(e), completed(f)
    )

    assert stale == [late]
    states = [(await get(queue, lease.id)).state for lease in (a, b, c, d, e, f)]
    assert states == ["completed", "failed", "queued", "queued", "queued", "completed"]


async def test_settlement_of_a_job_that_is_gone_is_stale(queue: JobQueue, member: Member) -> None:
    await add_one(queue)
    lease = await claim_one(member)
    await settle(member, failed(lease))
    await queue.discard(JobFilter())
    late = completed(lease)

    assert await settle(member, late) == [late]


async def test_history_is_bounded_and_keeps_the_first_and_the_newest(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    answer = await exchange(member, wanted=want())
    runs = HISTORY_LIMIT + 10
    for n in range(runs):
        (lease,) = answer.leases
        answer = await exchange(member, retry(lease, message=f"failure {n}"), wanted=want())

    history = (await get(queue, job.id)).history
    assert len(history) == HISTORY_LIMIT
    assert history[0].error.message == "failure 0"
    assert [r.error.message for r in history[1:]] == [
        f"failure {n}" for n in range(runs - HISTORY_LIMIT + 1, runs)
    ]


AWKWARD = ["\udc80 surrogate", "nul \0 inside", "\ud83d half", "quote ' \" \\", "\x1b[31m", "😀"]


@pytest.mark.parametrize("task", [None, "paper"])
@pytest.mark.parametrize("text", AWKWARD)
async def test_text_of_any_kind_in_an_error_can_be_stored_and_read(
    queue: JobQueue, member: Member, text: str, task: str | None
) -> None:
    """A file name or a reply from outside can put anything into an exception's message."""
    job = await add_one(queue, task=task)
    neighbour = await add_one(queue)
    first, other = await claim(member, 2)

    async def read() -> Job:
        assert len(await queue.find(JobFilter(), 10)) == 2
        await queue.changes("default", "paper", 0, 100)
        return await get(queue, job.id)

    await report(member, first, 0.5, text)
    assert (await read()).progress == 0.5
    stale = await settle(member, released(first, reason=text), completed(other))
    assert stale == []
    assert (await get(queue, neighbour.id)).state is JobState.COMPLETED
    assert (await read()).releases == 1
    await settle(member, retry(await claim_one(member), message=text))
    assert (await read()).attempts == 1
    final = failed(await claim_one(member), message=text)
    await settle(member, final._replace(traceback=text))
    dead = await read()
    assert dead.error is not None
    assert dead.error.type == "Boom"
    assert [record.outcome for record in dead.history] == ["retry", "failed"]
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert dead.error.message == dead.history[0].error.message == text


async def test_cancel_seen_for_a_job_that_was_not_cancelled_changes_nothing(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    await settle(member, cancel_seen(lease))

    assert (await get(queue, job.id)).state is JobState.RUNNING
    assert await settle(member, completed(lease)) == []
