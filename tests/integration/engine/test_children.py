"""Children of jobs: how long they have, and what becomes of them with their parent."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.cli import main
from penstock.errors import ParentEnded
from tests.support.app_api import Site
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

PAGE = {"origin": "http://localhost"}
"""As a browser says it of a form on the server's own page."""
FAR = 1000.0
"""Seconds ahead that no test comes to see."""


@pytest.mark.parametrize(
    ("parents", "given", "expected"),
    [
        (FAR, {}, FAR),
        (FAR, {"deadline": 2 * FAR}, FAR),
        (FAR, {"deadline": FAR / 2}, FAR / 2),
        (FAR, {"detached": True}, None),
        (FAR, {"detached": True, "deadline": 2 * FAR}, 2 * FAR),
        (None, {}, None),
        (None, {"deadline": FAR}, FAR),
    ],
)
async def test_child_has_the_earlier_deadline_of_its_parents_and_its_own(
    farm: Farm, parents: float | None, given: dict[str, Any], expected: float | None
) -> None:
    """The time a run may take is the parent's own, and is not passed on."""
    app, now = farm.bare(), round(time.time())
    given = {name: now + at if name == "deadline" else at for name, at in given.items()}

    @app.job("parent", timeout=30)
    async def parent(ctx: JobContext) -> str:
        return (await ctx.enqueue("child", **given)).id

    async with app, app.running():
        ends = None if parents is None else now + parents
        done = await app.wait((await app.enqueue("parent", deadline=ends)).id, timeout=PATIENCE)
        child = await app.get(done.result)
    assert child.deadline == (None if expected is None else now + expected)


async def test_deadline_of_a_child_may_be_a_date(farm: Farm) -> None:
    app = farm.bare()
    ends = round(time.time()) + FAR

    @app.job("parent")
    async def parent(ctx: JobContext) -> list[str]:
        dates = [datetime.fromtimestamp(ends + more, UTC) for more in (-1, 1)]
        return [(await ctx.enqueue("child", {"n": 1}, deadline=at)).id for at in dates]

    async with app, app.running():
        done = await app.wait((await app.enqueue("parent", deadline=ends)).id, timeout=PATIENCE)
        deadlines = [(await app.get(child)).deadline for child in done.result]
    assert deadlines == [ends - 1, ends]


async def test_family_that_is_late_ends_at_the_deadline_of_the_parent(farm: Farm) -> None:
    app = farm.bare(max_workers=2)
    running: list[str] = []

    @app.job("parent")
    async def parent(ctx: JobContext) -> None:
        await ctx.enqueue("child", {"n": 1})
        await ctx.enqueue("nobody", {"n": 2})
        await asyncio.Event().wait()

    @app.job("child")
    async def child(ctx: JobContext, n: int) -> None:
        running.append(ctx.job.id)
        await asyncio.Event().wait()

    async with app, app.running():
        job = await app.enqueue("parent", deadline=time.time() + 6)
        done = await app.wait(job.id, timeout=PATIENCE)
        children = [await app.wait(one.id, timeout=PATIENCE) for one in await children_of(app, job)]
    assert len(running) == 1
    assert len(children) == 2
    for one in (done, *children):
        assert one.state is JobState.FAILED
        assert one.error is not None
        assert one.error.type == "DeadlineExceeded"


async def children_of(app: Penstock, job: Job) -> list[Job]:
    return await app.jobs(parent_id=job.id)


async def test_cancel_of_a_parent_ends_its_children_and_workers_live_on(farm: Farm) -> None:
    app = farm.bare(max_workers=2)
    begun: list[int] = []
    interrupted: list[int] = []

    @app.job("parent")
    async def parent(ctx: JobContext) -> None:
        made = [await ctx.enqueue("child", {"n": n}) for n in range(5)]
        made.append(await ctx.enqueue("free", detached=True))
        async for _ in ctx.finished(made):
            pass

    @app.job("child")
    async def child(ctx: JobContext, n: int) -> None:
        begun.append(n)
        try:
            await asyncio.Event().wait()
        finally:
            interrupted.append(n)

    @app.job("free")
    async def free(ctx: JobContext) -> str:
        return "done"

    async with app, app.running():
        job = await app.enqueue("parent")
        await until(lambda: len(begun) == 2, "two children to run")
        assert (await app.cancel(job.id)).state is JobState.CANCELLED
        family = await children_of(app, job)
        await app.drain(timeout=PATIENCE)
        (outlived,) = [one for one in await children_of(app, job) if one.kind == "free"]
    assert {one.state for one in family if one.kind == "child"} == {JobState.CANCELLED}
    assert (outlived.state, outlived.result) == (JobState.COMPLETED, "done")
    assert sorted(begun) == sorted(interrupted) == [0, 1]


@pytest.mark.parametrize("way", ["HTTP", "HTTP, by a filter", "dashboard", "command"])
async def test_children_go_with_their_parent_by_whatever_way_it_is_cancelled(
    farm: Farm, way: str
) -> None:
    app = farm.bare(max_workers=1)

    @app.job("parent")
    async def parent(ctx: JobContext) -> None:
        await ctx.enqueue("child")
        await asyncio.Event().wait()

    @app.job("child")
    async def child(ctx: JobContext) -> None:
        await asyncio.Event().wait()

    site = Site(app)
    async with app, app.running():
        job = await app.enqueue("parent")

        async def has_a_child() -> bool:
            return bool(await children_of(app, job))

        await until(has_a_child, "a child")
        async with await site.client() as client:
            match way:
                case "HTTP":
                    answer = await client.post(f"/v1/jobs/{job.id}/cancel")
                    assert answer.status_code == 200, answer.text
                case "HTTP, by a filter":
                    answer = await client.post("/v1/jobs/cancel", json={"kind": "parent"})
                    assert answer.status_code == 200, answer.text
                case "dashboard":
                    form = {"what": "cancel", "confirmed": "yes"}
                    answer = await client.post(f"/jobs/{job.id}/change", data=form, headers=PAGE)
                    assert answer.status_code == 303, answer.text
                case _:
                    words = ["jobs", "cancel", job.id, "--queue", farm.url]
                    assert await asyncio.to_thread(main, words) == 0
        await app.drain(timeout=PATIENCE)
        (one,) = await children_of(app, job)
        states = (await app.get(job.id)).state, one.state
    assert states == (JobState.CANCELLED, JobState.CANCELLED)


async def test_cancelled_handler_that_goes_on_can_enqueue_no_more(farm: Farm) -> None:
    app = farm.bare()
    begun, told = asyncio.Event(), asyncio.Event()

    @app.job("stubborn")
    async def stubborn(ctx: JobContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with pytest.raises(ParentEnded, match=f"{ctx.job.id} is over"):
                await ctx.enqueue("child")
            told.set()

    async with app, app.running():
        job = await app.enqueue("stubborn")
        await begun.wait()
        await app.cancel(job.id)
        await asyncio.wait_for(told.wait(), PATIENCE)
        assert await children_of(app, job) == []


async def test_rerun_of_a_job_is_not_cancelled_with_it(farm: Farm) -> None:
    app = farm.bare()
    async with app:
        job = await app.enqueue("work", {"n": 1})
        again = await app.rerun(job)
        await app.cancel(job.id)
        assert (again.rerun_of, again.parent_id) == (job.id, None)
        assert (await app.get(again.id)).state is JobState.QUEUED
