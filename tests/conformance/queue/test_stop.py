"""Stopping a log: it takes no more jobs, and none of its jobs is run again."""

import asyncio
import time

import pytest

from penstock.errors import KeyConflict, LogStopped
from penstock.model.change import Change
from penstock.model.job import JobState
from penstock.ports.queue import JobFilter, JobQueue, Lease, Member, Settlement, Stopped, Topic
from tests.conformance.lane_support import claim_lanes, down
from tests.conformance.support import (
    End,
    Ledger,
    add,
    add_keyed,
    add_one,
    cancel_seen,
    claim,
    claim_one,
    completed,
    dies,
    failed,
    finish_as,
    get,
    handed_back,
    ids_of,
    new_jobs,
    one,
    released,
    retry,
    settle,
    until,
)
from tests.support.waiting import PATIENCE

PAPER = ("default", "paper")
ENDS: list[End] = [completed, retry, failed, handed_back]


async def stop(queue: JobQueue, *, running: bool = False) -> Stopped:
    return await queue.stop(*PAPER, running=running)


async def words(queue: JobQueue, tenant: str = "default", log: str = "paper") -> list[str]:
    return [change.what for change in await queue.changes(tenant, log, 0, 10_000)]


async def fed(queue: JobQueue, count: int) -> list[Change]:
    """The feed once it has so many entries: on PostgreSQL the transaction of another test may hold
    them back for a moment."""

    async def enough() -> list[Change]:
        changes = [fed.change for fed in await queue.feed("default", None, 100)]
        return changes if len(changes) >= count else []

    return await until(enough, f"{count} entries")


async def states(queue: JobQueue, *, log: str = "paper") -> dict[str, JobState]:
    jobs = await queue.find(JobFilter(tenant="default", log=log), 10_000)
    return {job.id: job.state for job in jobs}


async def test_stop_cancels_what_is_queued_and_lets_running_jobs_end(
    queue: JobQueue, member: Member
) -> None:
    jobs = await add(queue, 2, log="paper")
    later = await add_one(queue, log="paper", run_at=queue.now() + 100)
    lease = await claim_one(member)

    assert await stop(queue) == Stopped(cancelled=2, running=1)

    assert await states(queue) == {
        jobs[0].id: JobState.RUNNING,
        jobs[1].id: JobState.CANCELLED,
        later.id: JobState.CANCELLED,
    }
    assert await member.cancelled() == []
    assert await claim(member) == []
    assert await settle(member, completed(lease)) == []
    assert (await get(queue, jobs[0].id)).state is JobState.COMPLETED
    assert not await queue.work_left(None)


async def test_immediate_stop_cancels_running_jobs_too(queue: JobQueue, member: Member) -> None:
    await add(queue, 3, log="paper")
    lease = await claim_one(member)

    assert await stop(queue, running=True) == Stopped(cancelled=3, running=0)

    assert set((await states(queue)).values()) == {JobState.CANCELLED}
    assert await member.cancelled() == [lease.seq]
    refused = completed(lease)
    assert await settle(member, refused) == [refused]
    assert (await get(queue, lease.id)).state is JobState.CANCELLED
    assert not await queue.work_left(None)


async def test_graceful_stop_can_be_followed_by_an_immediate_one(
    queue: JobQueue, member: Member
) -> None:
    await add(queue, 2, log="paper")
    lease = await claim_one(member)

    assert await stop(queue) == Stopped(1, 1)
    assert await stop(queue) == Stopped(0, 1)
    assert await stop(queue, running=True) == Stopped(1, 0)
    assert await stop(queue, running=True) == Stopped(0, 0)

    assert await words(queue) == ["queued"] * 2 + ["cancelled", "stopped"] * 2
    assert await settle(member, cancel_seen(lease)) == []


async def test_stop_is_told_in_the_log_and_in_the_feed(queue: JobQueue, member: Member) -> None:
    await add(queue, 3, log="paper")
    await claim_one(member)
    await stop(queue)
    await queue.reopen(*PAPER)

    *_, stopped, resumed = await queue.changes(*PAPER, 0, 100)
    assert (stopped.what, stopped.job_id) == ("stopped", "")
    assert stopped.data == {"cancelled": 2, "running": 1}
    assert (resumed.what, resumed.job_id, resumed.data) == ("resumed", "", {})
    assert (await fed(queue, 7))[-2:] == [stopped, resumed]


async def test_stopped_task_takes_no_jobs_until_it_is_resumed(
    queue: JobQueue, member: Member
) -> None:
    await stop(queue)
    assert await queue.stopped([PAPER, ("default", "other"), ("b", "paper")]) == [
        True,
        False,
        False,
    ]

    with pytest.raises(LogStopped, match=r"'paper' is stopped .* reopen it"):
        await add(queue, 2, log="paper")
    assert await states(queue) == {}
    assert await claim(member) == []

    await queue.reopen(*PAPER)
    await queue.reopen(*PAPER)

    assert await queue.stopped([PAPER]) == [False]
    job = await add_one(queue, log="paper")
    assert ids_of(await claim(member)) == [job.id]
    assert await words(queue) == ["stopped", "resumed", "queued"]


async def test_task_that_nobody_knows_is_open_and_stays_unknown(queue: JobQueue) -> None:
    assert await queue.stopped([]) == []
    assert await queue.stopped([PAPER]) == [False]

    await queue.reopen(*PAPER)

    assert await queue.versions([PAPER]) == [0]


async def test_nothing_of_a_refused_batch_is_stored(queue: JobQueue) -> None:
    old = await add_keyed(queue, "k", log="paper")
    await stop(queue)

    with pytest.raises(LogStopped):
        await queue.enqueue(
            new_jobs(payloads=["{}", "{}"], keys=["k", None], log="paper", replace_finished=True)
        )

    assert list(await states(queue)) == [old.id]
    assert (await get(queue, old.id)).key == "k"


async def test_enqueue_that_makes_nothing_new_gives_the_jobs_that_are_there(
    queue: JobQueue,
) -> None:
    batch = new_jobs(3, log="paper")
    jobs = await queue.enqueue(batch)
    keyed = await add_keyed(queue, "k", log="paper")
    await stop(queue)

    assert ids_of(await queue.enqueue(batch)) == ids_of(jobs)
    assert (await add_keyed(queue, "k", log="paper")).id == keyed.id
    with pytest.raises(KeyConflict):
        await add_keyed(queue, "k", '{"other": 1}', log="paper")


async def test_other_tasks_and_tenants_are_untouched(queue: JobQueue, member: Member) -> None:
    await add(queue, 2, log="paper")
    others = [
        await add_one(queue, log="paper", tenant="b"),
        await add_one(queue, log="other"),
        await add_one(queue),
    ]

    assert await stop(queue, running=True) == Stopped(2, 0)

    others += [
        await add_one(queue, log="paper", tenant="b"),
        await add_one(queue, log="other"),
        await add_one(queue),
    ]
    leases = await claim(member)
    assert sorted(ids_of(leases)) == sorted(ids_of(others))
    await settle(member, *map(retry, leases))
    assert sorted(ids_of(await claim(member))) == sorted(ids_of(others))
    assert await words(queue, "b") == ["queued", "queued", "retry", "retry"]


def handed_back_for_later(lease: Lease) -> Settlement:
    return handed_back(lease, run_at=time.time() + 100)


@pytest.mark.parametrize("end", [retry, released, handed_back, handed_back_for_later])
async def test_what_would_be_run_again_is_cancelled(
    queue: JobQueue, member: Member, end: End
) -> None:
    stopped, other = await add_one(queue, log="paper"), await add_one(queue, log="other")
    leases = await claim(member)
    await stop(queue)
    before = time.time() - 60

    assert await settle(member, *map(end, leases)) == []

    job = await get(queue, stopped.id)
    assert job.state is JobState.CANCELLED
    assert job.finished_at is not None
    assert job.finished_at >= before - 0.1
    assert (await get(queue, other.id)).state is JobState.QUEUED
    assert (await words(queue))[-2:] == ["stopped", "cancelled"]
    assert await queue.finished([stopped.id]) == [stopped.id]
    await queue.cancel(one(other))
    assert not await queue.work_left(None)


async def test_error_of_a_cancelled_retry_is_kept(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue, log="paper")
    lease = await claim_one(member)
    await stop(queue)

    await settle(member, retry(lease))

    cancelled = await get(queue, job.id)
    assert cancelled.error is not None
    assert cancelled.error.type == "Boom"
    assert [record.outcome for record in cancelled.history] == ["retry"]
    (last,) = await queue.changes(*PAPER, 2, 10)
    assert (last.what, last.job_id, last.data["error"]["type"]) == ("cancelled", job.id, "Boom")
    assert "run_at" not in last.data


async def test_settlements_that_do_not_stand_are_told_from_those_that_stop(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    await add(queue, 2, log="paper")
    first, second = await claim(member)
    await queue.cancel(one(first))
    await stop(queue)
    settlements = [retry(first), retry(second)]

    assert await settle(member, *settlements) == settlements[:1]


async def test_failure_of_a_stopped_job_stays_a_dead_letter_and_is_not_redriven(
    queue: JobQueue, member: Member
) -> None:
    job, other = await add_one(queue, log="paper"), await add_one(queue)
    leases = await claim(member)
    await stop(queue)
    assert await settle(member, *map(failed, leases)) == []

    assert await queue.redrive(JobFilter()) == [other.id]
    assert (await get(queue, job.id)).state is JobState.FAILED
    assert await queue.redrive(one(job)) == []

    await queue.reopen(*PAPER)
    assert await queue.redrive(one(job)) == [job.id]


@pytest.mark.parametrize("started", [0, 1])
async def test_job_of_a_process_that_died_is_cancelled(
    ledger: Ledger, queue: JobQueue, member: Member, started: int
) -> None:
    job = await add_one(queue, log="paper")
    await dies(ledger, starts=started)
    await stop(queue)

    await member.upkeep()

    assert (await get(queue, job.id)).state is JobState.CANCELLED
    assert (await words(queue))[-2:] == ["stopped", "cancelled"]
    assert not await queue.work_left(None)


async def test_job_of_a_lapsed_process_is_cancelled(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    other = await ledger.join(queue)
    job = await add_one(queue, log="paper")
    member.mark_started(await claim_one(member))
    await stop(queue)
    ledger.lapse(member)
    await other.upkeep()

    assert await claim(other) == []
    assert (await get(queue, job.id)).state is JobState.CANCELLED


async def test_job_whose_failure_was_its_lanes_is_cancelled(
    queue: JobQueue, member: Member
) -> None:
    """The one that failed first is a dead letter until the second witness speaks."""
    first, second = await add(queue, 2, log="paper", lane="api", max_retries=0)
    witnesses = await claim_lanes(member, 2)
    await settle(member, down(witnesses[0]))
    assert (await get(queue, first.id)).state is JobState.FAILED
    await stop(queue)

    await settle(member, down(witnesses[1]))

    assert await states(queue) == {first.id: JobState.CANCELLED, second.id: JobState.CANCELLED}
    assert not await queue.work_left(None)


async def test_note_wakes_and_tells_of_no_job(ledger: Ledger, queue: JobQueue) -> None:
    listener = (await ledger.open()).listen(Topic.FINISHED)
    try:
        await queue.note(*PAPER, 'say "it"\n', {"pages": [1, None, "é"], "deep": {"ok": True}})
        assert await listener.wait(PATIENCE)
    finally:
        listener.close()

    (change,) = await queue.changes(*PAPER, 0, 10)
    assert (change.version, change.what, change.job_id) == (1, 'say "it"\n', "")
    assert change.data == {"pages": [1, None, "é"], "deep": {"ok": True}}
    assert await fed(queue, 1) == [change]


async def test_stop_wakes_whoever_waits(ledger: Ledger, queue: JobQueue, member: Member) -> None:
    await add(queue, 2, log="paper")
    await claim_one(member)
    other = await ledger.open()
    finished, cancelled = other.listen(Topic.FINISHED), other.listen(Topic.CANCELLED)
    try:
        await stop(queue, running=True)
        assert await finished.wait(PATIENCE)
        assert await cancelled.wait(PATIENCE)
    finally:
        finished.close()
        cancelled.close()


async def test_stop_outlives_the_jobs_and_the_log(ledger: Ledger, queue: JobQueue) -> None:
    await add_one(queue, log="paper")
    await stop(queue)
    forgetful = await ledger.open(retention_seconds=0.0)
    await (await ledger.join(forgetful)).upkeep()
    assert await states(queue) == {}

    assert await queue.stopped([PAPER]) == [True]
    with pytest.raises(LogStopped):
        await add_one(queue, log="paper")


async def test_no_job_slips_in_while_a_task_is_stopped(ledger: Ledger, queue: JobQueue) -> None:
    """Running jobs fan out as fast as they can; others enqueue from elsewhere."""
    queues = [queue, await ledger.open()]
    stopping = asyncio.Event()
    made: list[str] = []

    async def fan_out(number: int) -> None:
        while True:
            if len(made) >= 40:
                stopping.set()
            try:
                made.extend(ids_of(await add(queues[number % 2], 3, log="paper")))
            except LogStopped:
                return

    stopper = await ledger.open()

    async def stop_it() -> Stopped:
        await stopping.wait()
        return await stop(stopper)

    async with asyncio.timeout(PATIENCE):
        outcome, *_ = await asyncio.gather(stop_it(), *(fan_out(n) for n in range(4)))

    assert sorted(await states(queue)) == sorted(made)
    assert set((await states(queue)).values()) == {JobState.CANCELLED}
    assert outcome == Stopped(len(made), 0)
    said = await words(queue)
    assert said == ["queued"] * len(made) + ["cancelled"] * len(made) + ["stopped"]


@pytest.mark.parametrize("running", [False, True])
async def test_stop_against_settlements_overwrites_nothing(
    ledger: Ledger, queue: JobQueue, member: Member, running: bool
) -> None:
    """Whatever comes first, each job has one end, and nothing is left to run."""
    other = await ledger.open()
    for n in range(15):
        log = f"paper-{n}"
        await add(queue, 5, log=log)
        leases = await claim(member, 4)
        ends = [end(lease) for end, lease in zip(ENDS, leases, strict=True)]
        settling = asyncio.ensure_future(settle(member, *ends))
        await asyncio.sleep(0.0005 * (n % 5))
        outcome = await other.stop("default", log, running=running)
        stale = await settling

        found = await states(queue, log=log)
        assert not set(found.values()) & {JobState.QUEUED, JobState.RUNNING}
        kept = found[leases[0].id] is JobState.COMPLETED
        assert kept == (ends[0] not in stale)
        assert kept or running
        assert found[leases[1].id] is JobState.CANCELLED
        said = await words(queue, log=log)
        assert said.count("cancelled") == list(found.values()).count(JobState.CANCELLED)
        assert said.count("completed") == list(found.values()).count(JobState.COMPLETED)
        assert 1 <= outcome.cancelled <= 5
        await settle(member, *(cancel_seen(lease) for lease in leases))
    assert not await queue.work_left(None)


async def test_stop_against_claims_leaves_nothing_queued(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    for n in range(15):
        log = f"paper-{n}"
        await add(queue, 20, log=log)
        claiming = asyncio.ensure_future(claim(member, 10))
        await asyncio.sleep(0.0005 * (n % 4))
        outcome = await queue.stop("default", log, running=True)
        leases = await claiming

        assert outcome == Stopped(20, 0)
        assert set((await states(queue, log=log)).values()) == {JobState.CANCELLED}
        assert sorted(await member.cancelled()) == sorted(lease.seq for lease in leases)
        await settle(member, *(cancel_seen(lease) for lease in leases))


async def test_finished_jobs_are_left_as_they_are(queue: JobQueue, member: Member) -> None:
    done = await finish_as(queue, member, "completed", log="paper")
    dead = await finish_as(queue, member, "failed", log="paper")

    assert await stop(queue, running=True) == Stopped(0, 0)

    assert await get(queue, done.id) == done
    assert await get(queue, dead.id) == dead
