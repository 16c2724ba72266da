"""Settling: each ending with its own effect on the row."""

import json
import time
from dataclasses import replace

import pytest

from penstock.model.job import HISTORY_LIMIT, Job, JobState
from penstock.ports.queue import JobFilter, JobQueue, Member, Outcome, Settlement
from tests.conformance.support import (
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
    report,
    retry,
    settle,
    want,
)


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


@pytest.mark.parametrize("log", [None, "paper"])
@pytest.mark.parametrize("text", AWKWARD)
async def test_text_of_any_kind_in_an_error_can_be_stored_and_read(
    queue: JobQueue, member: Member, text: str, log: str | None
) -> None:
    """A file name or a reply from outside can put anything into an exception's message."""
    job = await add_one(queue, log=log)
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


async def test_cancel_seen_hands_a_job_back_whose_cancel_a_failover_has_taken_back(
    queue: JobQueue, member: Member
) -> None:
    """Its run has ended: nobody else would ever say so, and the job would be held for ever."""
    first, second = await add(queue, 2)
    lost, cancelled = await claim(member, 2)
    await queue.cancel(one(cancelled))
    assert await settle(member, cancel_seen(lost), cancel_seen(cancelled)) == []

    assert (await get(queue, first.id)).state is JobState.QUEUED
    assert (await get(queue, first.id)).attempts == 0
    assert (await get(queue, second.id)).state is JobState.CANCELLED
    again = await claim_one(member)
    assert again.id == first.id
    await settle(member, cancel_seen(lost))
    assert (await get(queue, first.id)).state is JobState.RUNNING, "that was another lease"
    assert await settle(member, completed(again)) == []


async def test_run_that_is_released_is_on_record_with_its_reason(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    for n in range(2):
        why = {"type": "RunLater", "message": f"rain \0 {n}"}
        run = released(await claim_one(member))._replace(
            started_at=1000.5 + n, finished_at=1001.25 + n, error=why
        )
        assert await settle(member, run) == []
    await settle(member, handed_back(await claim_one(member)))  # was not run

    waiting = await get(queue, job.id)
    assert (waiting.state, waiting.attempts, waiting.error) == (JobState.QUEUED, 0, None)
    assert [(r.outcome, r.attempt, r.started_at, r.finished_at) for r in waiting.history] == [
        ("released", 1, 1000.5, 1001.25),
        ("released", 1, 1001.5, 1002.25),
    ]
    assert [r.error for r in waiting.history] == [
        {"type": "RunLater", "message": f"rain \0 {n}"} for n in range(2)
    ]
