"""What a run tells of itself: the last word before its end, and the lines of its log."""

from collections.abc import Callable

import pytest

from penstock.model.job import JobState
from penstock.model.job_log import LOG_LIMIT, log_line
from penstock.ports.queue import JobFilter, JobQueue, Lease, Member, Progress, Settlement
from tests.conformance.support import (
    Ledger,
    add_one,
    claim_one,
    completed,
    failed,
    get,
    report,
    retry,
    settle,
)


def line(n: int, message: str | None = None) -> str:
    return log_line(float(n), 1, "info", message or f"line {n}")


async def write(member: Member, lease: Lease, lines: str) -> None:
    await member.exchange([], [Progress(lease, None, "", lines)], None)


async def logged(queue: JobQueue, job_id: str) -> list[str]:
    return [one.message for one in (await get(queue, job_id)).lines]


@pytest.mark.parametrize("log", [None, "paper"])
@pytest.mark.parametrize("end", [completed, failed])
async def test_last_word_of_a_run_is_stored_with_its_end(
    queue: JobQueue, member: Member, end: Callable[[Lease], Settlement], log: str | None
) -> None:
    job = await add_one(queue, log=log)
    lease = await claim_one(member)
    await report(member, lease, 0.9, "9/10 pages")
    last = Progress(lease, 1.0, "all 10 pages done", line(1, "bye"))
    await member.exchange([end(lease)], [last], None)
    ended = await get(queue, job.id)
    assert ended.state.finished
    assert (ended.progress, ended.message) == (1.0, "all 10 pages done")
    assert await logged(queue, job.id) == ["bye"]
    if log is not None:
        told = [change.what for change in await queue.changes("default", log, 0, 100)]
        assert told == ["queued", "progress", "progress", ended.state]


async def test_lines_of_all_runs_are_kept_in_order(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    first = await claim_one(member)
    await report(member, first, 0.4, "on its way")
    await write(member, first, line(1) + line(2))
    running = await get(queue, job.id)
    assert (running.progress, running.message) == (0.4, "on its way")  # a line says nothing of it
    await settle(member, retry(first))
    second = await claim_one(member)
    await write(member, second, line(3, 'a "quoted"\nline, ÄÖÜ \u2028'))
    await settle(member, completed(second))
    assert await logged(queue, job.id) == ["line 1", "line 2", 'a "quoted"\nline, ÄÖÜ \u2028']
    [entry, *_] = (await get(queue, job.id)).lines
    assert entry == {"at": 1.0, "attempt": 1, "level": "info", "message": "line 1"}


async def test_log_of_a_job_is_bounded_and_loses_its_oldest_lines(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    for start in (0, 50, 100):
        lines = "".join(line(start + n, f"{start + n} " + "x" * 1500) for n in range(50))
        await write(member, lease, lines[-LOG_LIMIT:])
    kept = [int(message.split()[0]) for message in await logged(queue, job.id)]
    assert kept == list(range(150 - len(kept), 150))
    assert 30 < len(kept) <= LOG_LIMIT / 1500


async def test_lines_that_are_sent_again_are_there_once(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    await write(member, lease, line(1) + line(2))
    await write(member, lease, line(1) + line(2) + line(3))  # the first answer was lost
    assert await logged(queue, job.id) == ["line 1", "line 2", "line 3"]


async def test_lines_of_a_run_that_is_over_are_refused(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    stale = await claim_one(member)
    await settle(member, retry(stale))
    lease = await claim_one(member)
    await write(member, stale, line(1))
    other = await ledger.join(queue)
    await write(other, lease, line(2))
    await settle(member, completed(lease))
    await write(member, lease, line(3))
    assert await logged(queue, job.id) == []


async def test_log_is_deleted_with_its_job(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    await write(member, lease, line(1))
    await settle(member, failed(lease))
    await queue.discard(JobFilter(ids=[job.id]))
    again = await add_one(queue)
    assert await logged(queue, again.id) == []


async def test_running_job_shows_no_error_of_an_earlier_run(
    queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    await settle(member, retry(await claim_one(member)))
    waiting = await get(queue, job.id)
    assert waiting.error is not None
    lease = await claim_one(member)
    running = await get(queue, job.id)
    assert (running.state, running.error) == (JobState.RUNNING, None)
    assert running.history[0].error == waiting.error
    await settle(member, retry(lease))
    assert (await get(queue, job.id)).error is not None
