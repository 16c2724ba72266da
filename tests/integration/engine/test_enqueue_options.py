"""What may be said of a job when it is enqueued, and what is told of mistakes."""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pydantic
import pytest

from penstock import Job, JobContext, JobFailed, JobState, Penstock
from penstock.errors import JobCancelled, QueueError, ValidationError, WaitTimeout
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SOON = 60.0


@dataclass
class Size:
    width: int


class Page(pydantic.BaseModel):
    id: UUID
    at: datetime
    sizes: set[int] = set()


async def test_result_of_a_job_is_what_another_can_be_given(farm: Farm) -> None:
    app = farm.bare()
    page = Page(id=UUID(int=7), at=datetime(2026, 1, 2, tzinfo=UTC), sizes={1})

    @app.job
    async def load(ctx: JobContext, page: Page, size: Size) -> Page:
        assert isinstance(page, Page)
        assert isinstance(size, Size)
        return page

    @app.job
    async def measure(ctx: JobContext, at: datetime) -> dict[UUID, Size]:
        return {page.id: Size(at.year)}

    async with app.running():
        job = await app.enqueue("load", {"page": page, "size": Size(3)})
        assert job.payload["size"] == {"width": 3}, "as it is stored, and as all others see it"
        assert job.payload == (await app.get(job.id)).payload
        loaded = await app.result(job.id, timeout=SOON)
        assert Page.model_validate(loaded) == page
        again = await app.enqueue("load", {"page": loaded, "size": {"width": 3}})
        assert await app.result(again.id, timeout=SOON) == loaded
        measured = await app.enqueue("measure", {"at": page.at})
        assert await app.result(measured.id, timeout=SOON) == {str(page.id): {"width": 2026}}


async def test_lane_is_computed_from_what_is_stored(farm: Farm) -> None:
    app = farm.bare()
    seen: list[dict[str, Any]] = []

    def lane(payload: dict[str, Any]) -> str:
        seen.append(payload)
        return "one"

    @app.job(lane=lane)
    async def load(ctx: JobContext, page: UUID) -> None: ...

    async with app:
        await app.enqueue("load", {"page": UUID(int=7)})
    assert seen == [{"page": str(UUID(int=7))}]


async def test_same_key_and_same_data_is_the_same_job(farm: Farm) -> None:
    async with farm.bare() as app:
        first = await app.enqueue("load", {"ids": {UUID(int=n) for n in range(9)}}, key="k")
        second = await app.enqueue("load", {"ids": [str(UUID(int=n)) for n in range(9)]}, key="k")
    assert second.id == first.id


async def test_job_may_have_a_timeout_and_retries_of_its_own(farm: Farm) -> None:
    app = farm.bare()

    @app.job("add", timeout=30, max_retries=5)
    async def add(ctx: JobContext) -> None: ...

    @app.job
    async def parent(ctx: JobContext) -> list[str]:
        one = await ctx.enqueue("add", timeout=7, max_retries=1)
        return [one.id, *(job.id for job in await ctx.enqueue_many("add", [None], timeout=8))]

    async with app:
        jobs = [
            await app.enqueue("add"),
            await app.enqueue("add", timeout=5, max_retries=0),
            *await app.enqueue_many("add", [None], timeout=6.5),
            await app.enqueue("unknown", timeout=5),
        ]
        async with app.running():
            made = await app.result((await app.enqueue("parent")).id, timeout=SOON)
        jobs += [await app.get(job_id) for job_id in made]
        stored = [await app.get(job.id) for job in jobs]
    assert [(job.timeout, job.max_retries) for job in stored] == [
        *((30, 5), (5, 0), (6.5, 5), (5, None), (7, 1), (8, 5)),
    ]


async def test_own_timeout_and_retries_of_a_job_hold(farm: Farm) -> None:
    """Also where the kind was unknown when it was enqueued."""
    app = farm.bare()

    @app.job("fail", timeout=300, max_retries=5)
    async def fail(ctx: JobContext) -> None:
        assert ctx.job.timeout == 70
        assert ctx.remaining() <= 70
        raise OSError("again")

    async with farm.bare() as stranger, app:
        jobs = [await one.enqueue("fail", timeout=70, max_retries=1) for one in (stranger, app)]
        async with app.running():
            ended = [await app.wait(job.id, timeout=SOON) for job in jobs]
    assert [(job.state, job.attempts) for job in ended] == [(JobState.FAILED, 2)] * 2
    assert [job.error["type"] for job in ended if job.error] == ["OSError"] * 2


@pytest.mark.parametrize(
    "wrong",
    [{"timeout": 0}, {"timeout": "5"}, {"timeout": 1e9}, {"max_retries": -1}, {"max_retries": 1.5}],
    ids=str,
)
async def test_impossible_bounds_of_a_job_are_refused(farm: Farm, wrong: dict[str, Any]) -> None:
    async with farm.bare() as app:
        with pytest.raises(ValidationError, match=f"{next(iter(wrong))} of the job must be"):
            await app.enqueue("add", **wrong)
        assert await app.jobs() == []


@pytest.mark.parametrize(
    "wrong", ["5", timedelta(seconds=5), True, -1, float("nan"), 1e300], ids=str
)
async def test_a_delay_or_a_time_to_wait_that_is_none_is_refused(farm: Farm, wrong: Any) -> None:
    async with farm.bare() as app:
        with pytest.raises(ValidationError, match="delay is a number of seconds, 0 or more, not"):
            await app.enqueue("add", delay=wrong)
        assert await app.jobs() == []
        if wrong == "5" or wrong == timedelta(seconds=5):
            job = await app.enqueue("add")
            for wait in (app.wait(job.id, wrong), app.result(job.id, wrong), app.drain(wrong)):
                with pytest.raises(ValidationError, match="timeout is a number of seconds, or"):
                    await wait


async def test_deadline_that_has_passed_is_refused(farm: Farm) -> None:
    app = farm.bare()
    refused: list[str] = []

    @app.job
    async def parent(ctx: JobContext) -> None:
        for detached in (False, True):
            try:
                await ctx.enqueue("child", deadline=time.time() - 1, detached=detached)
            except ValidationError as error:
                refused.append(str(error))

    async with app:
        for passed in (time.time() - 5, datetime.now(UTC) - timedelta(seconds=5)):
            with pytest.raises(
                ValidationError, match=r"the deadline has passed, \d+(\.\d+)? s ago"
            ):
                await app.enqueue("parent", deadline=passed)
        with pytest.raises(ValidationError, match=r"passed, 2,592,00\d\.\d s ago"):
            await app.enqueue("parent", deadline=time.time() - 30 * 86400)
        assert await app.jobs() == []
        async with app.running():
            job = await app.enqueue("parent", deadline=time.time() + 3600)
            await app.result(job.id, timeout=SOON)
    assert len(refused) == 2
    assert all("the deadline has passed" in text for text in refused)


async def test_kind_that_is_much_like_a_known_one_is_warned_of_once(
    farm: Farm, caplog: pytest.LogCaptureFixture
) -> None:
    app = farm.bare()

    @app.job
    async def thumbnail(ctx: JobContext) -> None: ...

    with caplog.at_level(logging.WARNING, "penstock"):
        async with app:
            await app.enqueue("another.program")
            assert caplog.text == ""
            for _ in range(3):
                await app.enqueue("thumbnial")
            assert len(await app.jobs(kind="thumbnial")) == 3, "a warning, no more"
    assert len(caplog.records) == 1
    assert "'thumbnial'" in caplog.text
    assert "did you mean 'thumbnail'?" in caplog.text


Ask = Callable[[Penstock, str], Awaitable[object]]


@pytest.mark.parametrize(
    "ask",
    [
        lambda app, job_id: app.wait(job_id, timeout=SOON),
        lambda app, job_id: app.result(job_id, timeout=SOON),
        lambda app, job_id: app.changes("log", wait=SOON),
    ],
    ids=["wait", "result", "changes"],
)
async def test_waiting_without_an_open_queue_says_so_at_once(farm: Farm, ask: Ask) -> None:
    async with farm.bare() as app:
        job = await app.enqueue("add")
    for other in (app, farm.bare()):
        with pytest.raises(QueueError, match="use it inside `async with app:`"):
            await ask(other, job.id)


async def test_result_is_given_or_the_failure_raised(farm: Farm) -> None:
    app = farm.bare()

    @app.job(max_retries=0)
    async def divide(ctx: JobContext, by: int) -> float:
        return 6 / by

    async with app.running():
        done = await app.enqueue("divide", {"by": 2})
        bad = await app.enqueue("divide", {"by": 0})
        gone = await app.enqueue("divide", {"by": 1}, delay=3600)
        assert await app.result(done.id, timeout=SOON) == 3
        with pytest.raises(JobFailed, match=r"\(divide\) failed: ZeroDivisionError: ") as why:
            await app.result(bad.id, timeout=SOON)
        assert (why.value.job_id, why.value.error["type"]) == (bad.id, "ZeroDivisionError")
        with pytest.raises(WaitTimeout):
            await app.result(gone.id, timeout=0.01)
        await app.cancel(gone.id)
        with pytest.raises(JobCancelled, match="was cancelled"):
            await app.result(gone.id, timeout=SOON)


async def test_own_backoff_of_a_kind_says_when_it_is_run_again(farm: Farm) -> None:
    app = farm.bare()

    @app.job(backoff=[0, 3600])
    async def fail(ctx: JobContext) -> None:
        raise OSError("again")

    async with app.running():
        job = await app.enqueue("fail")

        async def twice() -> Job | None:
            now = await app.get(job.id)
            return now if now.attempts == 2 and now.state is JobState.QUEUED else None

        await until(twice, "the second run to fail")
        waits = await app.get(job.id)
    assert 3500 < waits.run_at - time.time() < 3601


async def test_many_children_are_stored_together_and_made_once(farm: Farm) -> None:
    app = farm.bare()

    @app.job
    async def parent(ctx: JobContext) -> list[str]:
        same = await ctx.enqueue("child", {"n": 0})
        many = await ctx.enqueue_many("child", [{"n": n % 2} for n in range(4)], priority="low")
        keyed = await ctx.enqueue_many("child", [{"n": 9}], keys=["nine"])
        if ctx.attempt == 1:
            raise OSError("once more")
        return [job.id for job in (same, *many, *keyed)]

    async with app.running():
        job = await app.enqueue("parent", log="log", deadline=round(time.time()) + 3600)
        ids = await app.result(job.id, timeout=SOON)
        children = await app.jobs(parent_id=job.id)
    assert len(set(ids)) == 6
    assert {child.id for child in children} == set(ids)
    assert [(child.payload["n"], child.priority.name, child.key) for child in children[::-1]] == [
        (0, "MEDIUM", None),
        *((n % 2, "LOW", None) for n in range(4)),
        (9, "MEDIUM", "nine"),
    ]
    assert {(child.log, child.deadline) for child in children} == {("log", job.deadline)}


@pytest.mark.parametrize("wrong", ["", "x", "a/b", "A" * 32, "a" * 33, 5, True, "a\0b"])
async def test_id_of_ones_own_has_the_form_of_an_id(farm: Farm, wrong: Any) -> None:
    async with farm.bare() as app:
        with pytest.raises(ValidationError, match="job_id is 32 hex digits"):
            await app.enqueue("load", job_id=wrong)
        job = await app.enqueue("load", job_id="a" * 32)
        assert [one.id for one in await app.jobs()] == [job.id] == ["a" * 32]
