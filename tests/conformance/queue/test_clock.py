"""A clock that jumps takes no job from a living process, and puts none off for longer."""

import time
from collections.abc import Awaitable, Callable

import pytest

from penstock.model.job import JobState
from penstock.ports.lanes import LaneCommand
from penstock.ports.queue import JobQueue, Lease, Member, Outcome, Settlement
from tests.conformance.queue.test_signals import suspended
from tests.conformance.support import (
    Ledger,
    add_one,
    claim,
    claim_one,
    completed,
    error_of,
    failed,
    get,
    one,
    released,
    settle,
    until,
)

HOUR = 3600.0
SHORT = 0.2


async def test_jobs_of_a_living_process_stay_its_own_when_the_clock_jumps_ahead(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue)
    lease = await claim_one(member)
    other = await ledger.join(await ledger.open())
    await other.upkeep()
    ledger.jump(2 * HOUR)
    for _ in range(3):
        await other.upkeep()
        assert await claim(other) == []

    assert len(await queue.processes()) == 2
    assert await settle(member, completed(lease)) == []
    assert (await get(queue, job.id)).state is JobState.COMPLETED


async def test_process_that_renews_is_not_ended_however_seldom_others_look(
    ledger: Ledger, queue: JobQueue
) -> None:
    living = await ledger.join(queue, lease_seconds=SHORT)
    watcher = await ledger.join(queue)
    begun = time.monotonic()
    while time.monotonic() < begun + 3 * SHORT:
        await watcher.upkeep()
        assert living.renew({}, [])

    assert len(await queue.processes()) == 2


def retry_planned(lease: Lease, at: float) -> Settlement:
    return Settlement(lease, Outcome.RETRY, at - 1, at, error=error_of(), run_at=at)


def release_planned(lease: Lease, at: float) -> Settlement:
    return Settlement(lease, Outcome.RELEASED, at - 1, at, error={"message": "not yet"}, run_at=at)


@pytest.mark.parametrize("planned", [retry_planned, release_planned])
async def test_what_is_put_off_while_the_clock_is_ahead_does_not_wait_until_it_is_there_again(
    queue: JobQueue, member: Member, planned: Callable[[Lease, float], Settlement]
) -> None:
    job = await add_one(queue)
    await settle(member, planned(await claim_one(member), time.time() + HOUR))
    assert await claim(member) == []
    await member.upkeep()

    assert (await claim_one(member)).id == job.id


async def test_delay_that_began_while_the_clock_was_ahead_is_as_long_as_it_was_meant(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    job = await add_one(queue, run_at=time.time() + HOUR)
    ledger.jump(-HOUR)
    before = time.time()
    await member.upkeep()

    waiting = await get(queue, job.id)
    assert waiting.run_at is not None
    assert before + HOUR / 2 < waiting.run_at < time.time() + HOUR + 1
    ledger.jump(HOUR)
    await member.upkeep()

    async def claims() -> list[Lease]:
        return await claim(member)

    assert [lease.id for lease in await until(claims, "its time")] == [job.id]


async def test_job_held_while_the_clock_was_ahead_is_free_again_afterwards(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    """Its last run occupied a thread, so its retry had to wait."""
    job = await add_one(queue)
    lease = await claim_one(member)
    now = time.time()
    await settle(member, retry_planned(lease, now))
    short = await ledger.join(queue, lease_seconds=SHORT)
    assert short.renew({"stuck": 1}, [lease])
    ledger.jump(-HOUR)
    await member.upkeep()

    async def claims() -> list[Lease]:
        return await claim(member)

    assert [one.id for one in await until(claims, "its time")] == [job.id]


async def wakes_by_its_signal(queue: JobQueue, lease: Lease) -> None:
    assert await queue.signal(lease.id, "go", "1", None)


async def wakes_by_a_lane(queue: JobQueue, lease: Lease) -> None:
    assert await queue.control("other", LaneCommand.RESUME)


async def redrives(queue: JobQueue, lease: Lease) -> None:
    assert await queue.redrive(one(lease)) == [lease.id]


def waits_for_a_lane(lease: Lease) -> Settlement:
    return released(lease, time.time() + 2 * HOUR)._replace(waits_lane="other")


@pytest.mark.parametrize(
    ("ends", "wakes"),
    [
        (lambda lease: suspended(lease, "go"), wakes_by_its_signal),
        (waits_for_a_lane, wakes_by_a_lane),
        (failed, redrives),
    ],
    ids=["signal", "lane", "redrive"],
)
async def test_job_that_is_let_run_while_the_clock_is_ahead_runs_once_it_is_set_back(
    ledger: Ledger,
    queue: JobQueue,
    member: Member,
    ends: Callable[[Lease], Settlement],
    wakes: Callable[[JobQueue, Lease], Awaitable[None]],
) -> None:
    """It was put off before the clock went ahead, and would sleep until it is there again."""
    await queue.configure(["other"])
    await add_one(queue)
    lease = await claim_one(member)
    await settle(member, ends(lease))
    ledger.jump(HOUR)
    await wakes(queue, lease)
    ledger.jump(-HOUR)
    await member.upkeep()

    assert (await claim_one(member)).id == lease.id


async def test_job_whose_signal_has_come_runs_although_the_clock_was_set_back_during_its_run(
    queue: JobQueue, member: Member
) -> None:
    await add_one(queue)
    lease = await claim_one(member)
    await wakes_by_its_signal(queue, lease)
    await settle(member, suspended(lease, "go")._replace(started_at=time.time() + HOUR))

    assert (await claim_one(member)).id == lease.id
