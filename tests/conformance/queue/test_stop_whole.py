"""Stopping a log whose running jobs may finish with their children."""

import asyncio
from typing import Any

import pytest

from penstock.errors import LogStopped, ParentEnded
from penstock.model.job import Job, JobState
from penstock.ports.queue import JobFilter, JobQueue, Lease, Member, ParentRun, Stopped
from tests.conformance.support import (
    End,
    Ledger,
    add,
    add_one,
    cancel_seen,
    claim,
    claim_one,
    completed,
    get,
    handed_back,
    ids_of,
    released,
    retry,
    settle,
)
from tests.support.waiting import PATIENCE

PAPER = ("default", "paper")
LIVE = [JobState.QUEUED, JobState.RUNNING]


async def stop(queue: JobQueue, *, running: bool = False, whole: bool = True) -> Stopped:
    return await queue.stop(*PAPER, running=running, whole=whole)


async def runs(queue: JobQueue, member: Member, **options: Any) -> Lease:
    """A job of the log that runs, and may have children."""
    await add_one(queue, kind="search", log="paper", **options)
    return await claim_one(member, "search")


async def bear(
    queue: JobQueue, member: Member, lease: Lease, count: int = 1, **options: Any
) -> list[Job]:
    run = ParentRun(lease.token, member.id)
    child = {"parent_id": lease.id, "parent_run": run, "attached": True, "log": "paper"}
    return await add(queue, count, **{**child, **options})


async def live(queue: JobQueue) -> list[str]:
    return ids_of(await queue.find(JobFilter(tenant="default", log="paper", states=LIVE), 1000))


async def test_running_job_finishes_with_the_children_it_has_and_makes(
    queue: JobQueue, member: Member
) -> None:
    search = await runs(queue, member)
    before = await bear(queue, member, search, 2)
    others = await add(queue, 2, log="paper")

    assert await stop(queue) == Stopped(cancelled=2, running=3)

    after = await bear(queue, member, search, 2)
    leases = await claim(member)
    assert sorted(ids_of(leases)) == sorted(ids_of(before + after))
    assert await settle(member, *map(completed, leases)) == []
    assert await settle(member, completed(search)) == []
    assert {(await get(queue, job.id)).state for job in others} == {JobState.CANCELLED}
    assert await live(queue) == []
    assert await queue.stopped([PAPER]) == [True]


async def test_nothing_else_is_taken(ledger: Ledger, queue: JobQueue, member: Member) -> None:
    search = await runs(queue, member)
    await add_one(queue, kind="search", log="other")
    stranger = await claim_one(member, "search")
    await stop(queue)

    for refused in (
        {"parent_id": None, "parent_run": None, "attached": False},
        {"attached": False},
        {"parent_id": stranger.id, "parent_run": ParentRun(stranger.token, member.id)},
    ):
        with pytest.raises(LogStopped):
            await bear(queue, member, search, **refused)
    await settle(member, completed(search))
    with pytest.raises(ParentEnded):
        await bear(queue, member, search)
    assert await live(queue) == []


async def test_children_made_after_the_stop_have_none_themselves(
    queue: JobQueue, member: Member
) -> None:
    """Else a family that grows by itself would never end."""
    search = await runs(queue, member)
    await stop(queue)
    await bear(queue, member, search, kind="search")
    child = await claim_one(member, "search")

    with pytest.raises(LogStopped):
        await bear(queue, member, child)


@pytest.mark.parametrize("end", [retry, released, handed_back])
async def test_child_is_run_again_for_as_long_as_its_parent_runs(
    queue: JobQueue, member: Member, end: End
) -> None:
    search = await runs(queue, member)
    (child,) = await bear(queue, member, search)
    await stop(queue)
    await settle(member, end(await claim_one(member)))

    lease = await claim_one(member)
    assert lease.id == child.id
    await settle(member, completed(search))
    await settle(member, end(lease))
    assert (await get(queue, child.id)).state is JobState.CANCELLED


@pytest.mark.parametrize("end", [retry, released, handed_back])
async def test_parent_that_would_be_run_again_is_cancelled_and_its_children_with_it(
    queue: JobQueue, member: Member, end: End
) -> None:
    search = await runs(queue, member)
    await bear(queue, member, search, 2)
    await bear(queue, member, search, log="elsewhere")
    await stop(queue)
    lease = await claim_one(member)

    await settle(member, end(search))
    await member.upkeep()

    assert (await get(queue, search.id)).state is JobState.CANCELLED
    assert await settle(member, cancel_seen(lease)) == []
    assert not await queue.work_left(None)


async def test_family_of_a_process_that_lapsed_is_cancelled(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    other = await ledger.join(queue)
    search = await runs(queue, member)
    await bear(queue, member, search, 3)
    await claim(member, 2)
    await stop(queue)
    ledger.lapse(member)

    await other.upkeep()
    await other.upkeep()

    assert await live(queue) == []
    assert await claim(other) == []


async def test_second_stop_changes_nothing_unless_it_is_stricter(
    queue: JobQueue, member: Member
) -> None:
    search = await runs(queue, member)
    children = await bear(queue, member, search, 2)

    assert await stop(queue) == Stopped(0, 3)
    assert await stop(queue) == Stopped(0, 3)
    children += await bear(queue, member, search)
    assert await stop(queue, whole=False) == Stopped(3, 1)
    with pytest.raises(LogStopped):
        await bear(queue, member, search)
    assert await stop(queue) == Stopped(0, 1)
    with pytest.raises(LogStopped):
        await bear(queue, member, search)
    assert await stop(queue, running=True, whole=False) == Stopped(1, 0)
    assert {(await get(queue, job.id)).state for job in children} == {JobState.CANCELLED}


async def test_immediate_stop_cancels_the_whole_family_at_once(
    queue: JobQueue, member: Member
) -> None:
    search = await runs(queue, member)
    await bear(queue, member, search, 2)
    await stop(queue)

    assert await stop(queue, running=True, whole=False) == Stopped(3, 0)

    with pytest.raises(ParentEnded):
        await bear(queue, member, search)
    assert await live(queue) == []


async def test_resumed_task_takes_all_jobs_and_the_next_stop_is_its_own(
    queue: JobQueue, member: Member
) -> None:
    search = await runs(queue, member)
    await stop(queue)
    await queue.reopen(*PAPER)
    await bear(queue, member, search)
    await add_one(queue, log="paper")

    assert await stop(queue, whole=False) == Stopped(2, 1)
    with pytest.raises(LogStopped):
        await bear(queue, member, search)


async def test_only_children_slip_in_while_a_task_is_stopped(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    """A running job has children as fast as it can, and others enqueue from elsewhere."""
    search = await runs(queue, member)
    children: list[str] = []
    others: list[str] = []
    other = await ledger.open()

    async def fan_out() -> None:
        last = False
        while not last:
            last = over.is_set() and len(children) > 30
            children.extend(ids_of(await bear(queue, member, search, 2)))
            if len(children) > 300:  # enough, until there is one after the stop
                await over.wait()

    async def intrude() -> None:
        while True:
            await asyncio.sleep(0.001)
            try:
                others.extend(ids_of(await add(other, 2, log="paper")))
            except LogStopped:
                return

    over, stopper = asyncio.Event(), await ledger.open()
    async with asyncio.timeout(PATIENCE):
        tasks = [asyncio.create_task(fan_out()), asyncio.create_task(intrude())]
        await asyncio.sleep(0.02)
        await stopper.stop(*PAPER, running=False, whole=True)
        over.set()
        await asyncio.gather(*tasks)

    assert sorted(await live(queue)) == sorted([search.id, *children])
    found = await queue.get(others)
    assert {job.state for job in found.values()} <= {JobState.CANCELLED}
