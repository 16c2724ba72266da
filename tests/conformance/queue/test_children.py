"""Children: cancelled with their parent, made only by a run that goes on."""

import asyncio
from typing import Any

import pytest

from penstock.errors import ParentEnded
from penstock.model.job import Job, JobState
from penstock.ports.queue import JobFilter, JobQueue, Lease, Member, ParentRun
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
    get,
    handed_back,
    ids_of,
    new_jobs,
    one,
    released,
    retry,
    settle,
)
from tests.support.waiting import PATIENCE

MANY = 1200
"""More children than are cancelled in one transaction."""


async def parent_of(queue: JobQueue, member: Member, **options: Any) -> Lease:
    """A job that runs."""
    await add_one(queue, kind="parent", **options)
    return await claim_one(member, "parent")


def child_of(lease: Lease, member: Member, *, attached: bool = True) -> dict[str, Any]:
    """What makes a job the child of a run."""
    run = ParentRun(lease.token, member.id)
    return {"parent_id": lease.id, "parent_run": run, "attached": attached}


async def bear(
    queue: JobQueue, member: Member, lease: Lease, count: int = 1, **options: Any
) -> list[Job]:
    return await add(queue, count, **child_of(lease, member), **options)


async def states(queue: JobQueue, jobs: list[Job]) -> list[JobState]:
    found = await queue.get(ids_of(jobs))
    return [found[job.id].state for job in jobs]


async def count(queue: JobQueue, state: JobState, kind: str = "work") -> int:
    return sum(one.states.get(state, 0) for one in await queue.counts() if one.kind == kind)


async def test_children_are_cancelled_with_their_parent(queue: JobQueue, member: Member) -> None:
    parent, other = await parent_of(queue, member), await parent_of(queue, member)
    children = await bear(queue, member, parent, 3, log="paper")
    later = await bear(queue, member, parent, run_at=queue.now() + 100)
    running = await claim_one(member)
    others = await bear(queue, member, other, 2)
    unrelated = await add(queue, 2)

    assert await queue.cancel(one(parent)) == [parent.id]

    assert await states(queue, children + later) == [JobState.CANCELLED] * 4
    assert await states(queue, others + unrelated) == [JobState.QUEUED] * 4
    assert sorted(await member.cancelled()) == sorted([parent.seq, running.seq])
    words = [change.what for change in await queue.changes("default", "paper", 0, 100)]
    assert words == ["queued"] * 3 + ["cancelled"] * 3
    assert await settle(member, cancel_seen(parent), cancel_seen(running)) == []
    assert sorted(ids_of(await claim(member))) == sorted(ids_of(others + unrelated))


async def test_children_of_children_are_cancelled_too(queue: JobQueue, member: Member) -> None:
    oldest = parent = await parent_of(queue, member)
    family: list[Job] = []
    for _ in range(4):
        family += await bear(queue, member, parent, kind="parent")
        parent = await claim_one(member, "parent")
    family += await bear(queue, member, parent, 2)

    await queue.cancel(one(oldest))

    assert await states(queue, family) == [JobState.CANCELLED] * 6


async def test_detached_child_outlives_the_cancel_of_its_parent(
    queue: JobQueue, member: Member
) -> None:
    parent = await parent_of(queue, member)
    free = await add(queue, 2, **child_of(parent, member, attached=False))
    bound = await bear(queue, member, parent)

    await queue.cancel(one(parent))

    assert await states(queue, free + bound) == [JobState.QUEUED] * 2 + [JobState.CANCELLED]
    assert {(await get(queue, job.id)).parent_id for job in free} == {parent.id}


@pytest.mark.parametrize("end", [completed, failed])
async def test_parent_that_ends_by_itself_leaves_its_children_alone(
    queue: JobQueue, member: Member, end: End
) -> None:
    parent = await parent_of(queue, member)
    children = await bear(queue, member, parent, 2)

    await settle(member, end(parent))
    await queue.cancel(one(parent))
    await member.upkeep()

    assert await states(queue, children) == [JobState.QUEUED] * 2


async def test_finished_children_stay_as_they_are(queue: JobQueue, member: Member) -> None:
    parent = await parent_of(queue, member)
    children = await bear(queue, member, parent, 3)
    first, second, _ = await claim(member)
    await settle(member, completed(first), failed(second))

    await queue.cancel(one(parent))

    expected = [JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED]
    assert await states(queue, children) == expected


@pytest.mark.parametrize("end", [completed, failed, retry, released, handed_back, None])
@pytest.mark.parametrize("attached", [True, False])
async def test_run_that_is_over_can_enqueue_no_more(
    queue: JobQueue, member: Member, end: End | None, attached: bool
) -> None:
    parent = await parent_of(queue, member)
    if end is None:
        await queue.cancel(one(parent))
    else:
        await settle(member, end(parent))

    with pytest.raises(ParentEnded, match=f"{parent.id} is over"):
        await add(queue, 2, **child_of(parent, member, attached=attached))

    assert await count(queue, JobState.QUEUED) == 0


async def test_run_that_was_taken_over_can_enqueue_no_more(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    """The process is thought dead and is not: another one runs its job by now."""
    other = await ledger.join(queue, "parent")
    stale = await parent_of(queue, member)
    member.mark_started(stale)
    ledger.lapse(member)
    await other.upkeep()
    newer = await claim_one(other, "parent")

    for claimed in (stale, newer):  # also with the right token, under a membership of before
        with pytest.raises(ParentEnded):
            await bear(queue, member, claimed)

    assert newer.id == stale.id
    (child,) = await bear(queue, other, newer)
    assert child.parent_id == newer.id


async def test_run_of_a_job_that_is_gone_can_enqueue_no_more(
    queue: JobQueue, member: Member
) -> None:
    parent = await parent_of(queue, member)
    await settle(member, failed(parent))
    await queue.discard(one(parent))

    with pytest.raises(ParentEnded):
        await bear(queue, member, parent)


async def test_next_run_of_a_parent_finds_its_children(queue: JobQueue, member: Member) -> None:
    first = await parent_of(queue, member)
    batch = new_jobs(3, **child_of(first, member))
    children = await queue.enqueue(batch)
    await settle(member, handed_back(first))
    second = await claim_one(member, "parent")
    again = new_jobs(ids=ids_of(children), payloads=["{}"] * 3, **child_of(second, member))

    assert ids_of(await queue.enqueue(again)) == ids_of(children)
    assert await count(queue, JobState.QUEUED) == 3
    await queue.cancel(one(second))
    assert await states(queue, children) == [JobState.CANCELLED] * 3


async def test_large_family_is_cancelled_in_batches(queue: JobQueue, member: Member) -> None:
    """And none of it is left behind if whoever cancelled the parent dies in between."""
    parent = await parent_of(queue, member)
    await bear(queue, member, parent, MANY)
    steps: Any = queue
    whole, steps.cancel_children = steps.cancel_children, nothing

    assert await queue.cancel(one(parent)) == [parent.id]
    assert await count(queue, JobState.CANCELLED) == 0
    await whole(0.0)
    some = await count(queue, JobState.CANCELLED)
    assert 0 < some <= 500

    steps.cancel_children = whole
    await member.upkeep()
    assert await count(queue, JobState.CANCELLED) == MANY
    assert await count(queue, JobState.QUEUED) == 0


async def nothing(seconds: float = 0.0) -> None:
    """Dies before it could cancel any children."""


async def test_any_process_goes_on_with_what_another_left(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    parent = await parent_of(queue, member)
    (child,) = await bear(queue, member, parent, kind="parent")
    grandchildren = await bear(queue, member, await claim_one(member, "parent"), 2)
    dying: Any = await ledger.open()
    dying.cancel_children = nothing
    await dying.cancel(one(parent))
    assert await states(queue, [child]) == [JobState.RUNNING]

    await (await ledger.join(await ledger.open())).upkeep()

    assert await states(queue, [child, *grandchildren]) == [JobState.CANCELLED] * 3


async def test_cancel_of_a_filter_gives_those_that_match_and_takes_their_children(
    queue: JobQueue, member: Member
) -> None:
    parents = [await parent_of(queue, member, tenant="a") for _ in range(3)]
    mine = [job for parent in parents for job in await bear(queue, member, parent, 2, tenant="a")]
    (theirs,) = await bear(queue, member, parents[0], tenant="b")

    assert sorted(await queue.cancel(JobFilter(kind="parent"))) == sorted(ids_of(parents))
    assert await states(queue, [*mine, theirs]) == [JobState.CANCELLED] * 7


async def test_child_that_races_the_cancel_of_its_parent_is_refused_or_cancelled(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    other = await ledger.open()
    for n in range(10):
        parent = await parent_of(queue, member)
        made: list[Job] = []

        async def fan_out(parent: Lease = parent, made: list[Job] = made) -> None:
            while True:
                try:
                    made += await bear(queue, member, parent, 2)
                except ParentEnded:
                    return

        async with asyncio.timeout(PATIENCE):
            fanning = [asyncio.create_task(fan_out()) for _ in range(3)]
            await asyncio.sleep(0.001 * n)
            await other.cancel(one(parent))
            await asyncio.gather(*fanning)
        await settle(member, cancel_seen(parent))
        assert set(await states(queue, made)) <= {JobState.CANCELLED}
    assert not await queue.work_left(None)
