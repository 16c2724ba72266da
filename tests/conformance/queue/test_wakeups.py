"""Wake-ups: whoever listens hears of it, after it can be read."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from penstock.model.ids import new_ids
from penstock.model.job import Job
from penstock.ports.queue import JobQueue, Member, Topic, Wakeup
from tests.conformance.support import (
    End,
    Ledger,
    add,
    add_one,
    cancel_seen,
    claim,
    claim_one,
    completed,
    failed,
    finish_as,
    get,
    handed_back,
    one,
    retry,
    settle,
)

SOON = 60.0
QUIET = 0.15
"""Long enough for a wake-up to arrive that should not."""


async def silence(wakeup: Wakeup) -> None:
    """Use up what has been heard so far."""
    while await wakeup.wait(0.05):
        pass


async def connected(ledger: Ledger, queue: JobQueue) -> JobQueue:
    """`queue`, once it listens. On PostgreSQL that takes a connection, made when somebody first
    listens; each topic is rung when it is there, which a test could take for news."""
    if ledger.backend_name == "postgres":
        wakeups = [queue.listen(topic) for topic in Topic]
        for wakeup in wakeups:
            assert await wakeup.wait(SOON), "no connection for wake-ups"
            wakeup.close()
    return queue


@pytest.fixture(params=["same", "other"])
async def listening(request: pytest.FixtureRequest, ledger: Ledger, queue: JobQueue) -> JobQueue:
    """The queue object that listens: the one that changes things, or another."""
    return await connected(ledger, queue if request.param == "same" else await ledger.open())


Act = Callable[[], Awaitable[object]]


async def hears(listening: JobQueue, act: Act, *expected: Topic, only: bool = False) -> None:
    """Assert that `act` wakes the listeners of `expected` (and, if asked, `only` those)."""
    wakeups = {topic: listening.listen(topic) for topic in Topic}
    await asyncio.gather(*map(silence, wakeups.values()))
    await act()
    for topic in expected:
        assert await wakeups[topic].wait(SOON), topic
    if only:
        others = [topic for topic in Topic if topic not in expected]
        answers = await asyncio.gather(*(wakeups[topic].wait(QUIET) for topic in others))
        assert not any(answers), dict(zip(others, answers, strict=True))
    for wakeup in wakeups.values():
        wakeup.close()


async def enqueued(queue: JobQueue, listening: JobQueue) -> Job:
    """A job whose own wake-up, on a busy machine a late one, is not taken for what comes after."""
    (job_id,) = new_ids(1)
    await hears(listening, lambda: add_one(queue, ids=[job_id]), Topic.READY)
    return await get(queue, job_id)


async def test_new_job_wakes_the_ready(queue: JobQueue, listening: JobQueue) -> None:
    await hears(listening, lambda: add_one(queue), Topic.READY, only=True)


@pytest.mark.parametrize("end", [completed, failed])
async def test_end_of_a_job_wakes_the_waiting(
    queue: JobQueue, listening: JobQueue, member: Member, end: End
) -> None:
    await enqueued(queue, listening)
    lease = await claim_one(member)

    await hears(listening, lambda: settle(member, end(lease)), Topic.FINISHED, only=True)


async def test_cancel_of_a_queued_job_wakes_the_waiting(
    queue: JobQueue, listening: JobQueue
) -> None:
    job = await enqueued(queue, listening)

    await hears(listening, lambda: queue.cancel(one(job)), Topic.FINISHED, only=True)


async def test_cancel_of_a_running_job_wakes_its_holder_too(
    queue: JobQueue, listening: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)

    await hears(listening, lambda: queue.cancel(one(job)), Topic.FINISHED, Topic.CANCELLED)
    await hears(listening, lambda: settle(member, cancel_seen(lease)), Topic.FINISHED)


async def test_job_handed_back_or_redriven_wakes_the_ready(
    queue: JobQueue, listening: JobQueue, member: Member
) -> None:
    job = await finish_as(queue, member, "failed")
    await hears(listening, lambda: queue.redrive(one(job)), Topic.READY)
    lease = await claim_one(member)
    await hears(listening, lambda: settle(member, handed_back(lease)), Topic.READY)


async def test_jobs_of_a_member_that_leaves_wake_the_ready(
    ledger: Ledger, queue: JobQueue, listening: JobQueue, member: Member
) -> None:
    await add_one(queue)
    await claim_one(member)

    await hears(listening, lambda: ledger.leave(member), Topic.READY)


async def test_change_in_a_log_wakes_the_waiting(
    queue: JobQueue, listening: JobQueue, member: Member
) -> None:
    await hears(listening, lambda: add_one(queue, log="paper"), Topic.FINISHED)
    lease = await claim_one(member)
    await hears(listening, lambda: settle(member, retry(lease)), Topic.FINISHED)


async def test_looking_wakes_nobody(queue: JobQueue, listening: JobQueue, member: Member) -> None:
    await enqueued(queue, listening)

    async def look() -> None:
        await queue.counts()
        await member.cancelled()
        await member.upkeep()
        await claim(member, 10, "other")

    await hears(listening, look, only=True)


async def test_wakeup_is_kept_while_nobody_waits(queue: JobQueue, listening: JobQueue) -> None:
    wakeup, witness = listening.listen(Topic.READY), listening.listen(Topic.READY)
    await silence(wakeup)
    await silence(witness)
    await add(queue, 3)
    assert await witness.wait(SOON)

    assert await wakeup.wait(SOON)
    await silence(wakeup)
    assert not await wakeup.wait(0.05), "several while nobody waits become one"


async def test_every_listener_is_woken(queue: JobQueue, listening: JobQueue) -> None:
    wakeups = [listening.listen(Topic.READY) for _ in range(5)]
    waiting = [asyncio.ensure_future(wakeup.wait(SOON)) for wakeup in wakeups]
    await add_one(queue)

    assert await asyncio.gather(*waiting) == [True] * 5


async def test_closed_listener_does_not_disturb_the_others(
    queue: JobQueue, listening: JobQueue
) -> None:
    closed, open_ = listening.listen(Topic.READY), listening.listen(Topic.READY)
    await silence(open_)
    closed.close()
    await add_one(queue)

    assert await open_.wait(SOON)


async def test_wait_without_news_ends_in_time(ledger: Ledger, queue: JobQueue) -> None:
    wakeup = (await connected(ledger, queue)).listen(Topic.READY)
    await silence(wakeup)
    loop = asyncio.get_running_loop()
    start = loop.time()

    assert not await wakeup.wait(0.05)
    assert not await wakeup.wait(0)
    assert loop.time() - start < SOON


async def test_change_can_be_read_when_its_wakeup_comes(
    queue: JobQueue, listening: JobQueue
) -> None:
    wakeup = listening.listen(Topic.READY)

    async def see(job_id: str) -> None:
        # Woken too early would mean: not there yet, and no second wake-up.
        while not await listening.get([job_id]):
            assert await wakeup.wait(SOON), "the wake-up came before the change, or never"

    for job_id in new_ids(40):
        await asyncio.gather(see(job_id), add_one(queue, ids=[job_id]))


async def test_cancelled_wait_loses_no_wakeup(queue: JobQueue, listening: JobQueue) -> None:
    wakeup = listening.listen(Topic.READY)
    await silence(wakeup)
    waiting = asyncio.ensure_future(wakeup.wait(None))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await add_one(queue)

    assert await wakeup.wait(SOON)


async def test_ring_wakes_only_the_listener_it_is_given_to(listening: JobQueue) -> None:
    mine, other = listening.listen(Topic.READY), listening.listen(Topic.READY)
    await asyncio.gather(silence(mine), silence(other))
    mine.ring()

    assert await mine.wait(SOON)
    assert not await other.wait(0.05)
