"""Handles: the function itself when called, and typed ways to enqueue."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints
from uuid import UUID

import pytest
from pydantic import BaseModel

from penstock import JobContext, Penstock
from penstock.engine.results import reader
from penstock.errors import ConfigError, JobFailed, KeyConflict, ValidationError, WaitTimeout
from penstock.types import JobRef


@dataclass
class Size:
    width: int
    height: int


class Picture(BaseModel):
    id: UUID
    taken: datetime
    size: Size


PICTURE = Picture(id=UUID(int=1), taken=datetime(2026, 5, 1, tzinfo=UTC), size=Size(800, 600))
library = Penstock("sqlite:///never-opened.db")


@library.job
async def by_name(ctx: JobContext, url: str, width: int = 800) -> str:
    """Found by its name."""
    return f"{url}-{width}"


def double_of(ctx: object, n: int) -> int:
    return 2 * n


class Pictures:
    """Has a handler."""

    @library.job
    @staticmethod
    def thumbnail(ctx: JobContext) -> None: ...


@pytest.fixture
def app(tmp_path: Path) -> Penstock:
    return Penstock(f"sqlite:///{tmp_path}/jobs.db", durable=False, retry_base_seconds=0.01)


async def test_a_handle_is_the_function_when_it_is_called() -> None:
    nobody: Any = None

    assert await by_name(nobody, "a", width=2) == "a-2"
    assert str(inspect.signature(by_name)) == (
        "(ctx: 'JobContext', url: 'str', width: 'int' = 800) -> 'str'"
    )
    assert (by_name.__name__, by_name.__doc__) == ("by_name", "Found by its name.")
    assert get_type_hints(by_name)["width"] is int
    assert inspect.iscoroutinefunction(by_name.__call__), "which is how frameworks find it out"
    assert pickle.loads(pickle.dumps(by_name)) is by_name  # noqa: S301
    assert "by_name" in repr(by_name)


def test_a_kind_is_the_qualified_name_within_the_module_or_function() -> None:
    @library.job(timeout=3)
    def inner(ctx: JobContext) -> None: ...

    assert by_name.kind == "by_name"
    assert Pictures.thumbnail.kind == "Pictures.thumbnail"
    assert inner.kind == "inner"
    with pytest.raises(ConfigError, match="not a valid kind"):
        library.job(lambda ctx: None)
    with pytest.raises(ConfigError, match="not a valid kind"):
        library.job(partial(double_of, 1))


async def test_payload_and_result_have_the_types_of_the_signature(app: Penstock) -> None:
    @app.job
    async def crop(ctx: JobContext, picture: Picture, to: Size) -> Picture:
        assert isinstance(to, Size)
        return picture.model_copy(update={"size": to})

    @app.job
    def sizes(ctx: JobContext, picture: Picture) -> dict[str, Size]:
        return {"own": picture.size}

    @app.job
    async def plain(ctx: JobContext, number: int) -> int:
        return number

    async with app.running():
        ref = await crop.enqueue(PICTURE, to=Size(4, 3))
        assert await ref.result(timeout=250) == PICTURE.model_copy(update={"size": Size(4, 3)})
        assert (await ref.get()).payload["to"] == {"width": 4, "height": 3}
        assert (await app.result(ref.id))["size"] == {"width": 4, "height": 3}, "as it is stored"
        assert await (await sizes.enqueue(PICTURE)).result(250) == {"own": PICTURE.size}
        assert await (await plain.enqueue(number=3)).result(250) == 3
        assert await crop.ref(ref.id).result() == await ref.result()


async def test_many_jobs_and_options(app: Penstock) -> None:
    @app.job("double", max_retries=0)
    async def double(ctx: JobContext, n: int) -> int:
        return 2 * n

    async with app.running():
        some = [double.payload(n) for n in range(3)]
        refs = await double.enqueue_many(some, keys=["a", "b", None])
        assert [await ref.result(250) for ref in refs] == [0, 2, 4]
        assert await double.with_options(key="a").enqueue(0) == refs[0], "the same job"
        with pytest.raises(KeyConflict):
            await double.with_options(key="a").enqueue(1)
        later = double.with_options(delay=3600, priority="high").with_options(tenant="us")
        ref = await later.enqueue(n=7)
        with pytest.raises(WaitTimeout):
            await ref.result(timeout=0.01)
        job = await ref.get()
        assert (job.tenant, job.priority.name, job.state) == ("us", "HIGH", "queued")
        plain = await (await double.enqueue(n=8)).get()
        assert (plain.tenant, plain.priority.name) == ("default", "MEDIUM"), "as it was before"
        assert (await ref.cancel()).state == "cancelled"
        assert [event.kind async for event in ref.follow()][-1] == "end"
        assert double.with_options().kind == "double"


async def test_arguments_that_do_not_fit_are_refused_before_anything_is_stored(
    app: Penstock,
) -> None:
    @app.job
    async def resize(ctx: JobContext, url: str, *, width: int = 1) -> None: ...

    anything: Any = resize
    async with app:
        refusals: list[tuple[Callable[[], Any], str]] = [
            (lambda: anything.enqueue(), "url is missing"),
            (lambda: anything.enqueue("a", 2), "2 arguments were given by place, and it has 1"),
            (lambda: anything.enqueue("a", url="b"), "url was given twice"),
            (lambda: anything.enqueue("a", key="b"), "key is not an argument"),
            (lambda: anything.enqueue(ctx=1, url="b"), "the job's context, not an argument"),
            (lambda: anything.enqueue("a", width="wide"), "width: Input should be a valid integer"),
            (lambda: anything.with_options(key="a").enqueue_many([{"url": "a"}]), "keys="),
            (lambda: anything.with_options(detached=True).enqueue("a"), "give parent=ctx"),
            (lambda: anything.with_options(parent=app).enqueue("a"), "context of a running job"),
        ]
        for refused, words in refusals:
            with pytest.raises(ValidationError, match=words):
                await refused()
        assert await app.jobs() == []
    with pytest.raises(TypeError, match="no option lane"):
        anything.with_options(lane="a")


async def test_children_are_enqueued_with_a_parent_and_waited_for(app: Penstock) -> None:
    @app.job
    async def square(ctx: JobContext, n: int) -> int:
        return n * n

    @app.job(max_retries=1)
    async def total(ctx: JobContext) -> int:
        child = square.with_options(parent=ctx)
        refs = await child.enqueue_many([square.payload(n) for n in range(3)])
        refs.append(await child.enqueue(n=10))
        async for job in ctx.finished(refs):
            assert job.parent_id == ctx.job.id
        if ctx.attempt == 1:
            raise ConnectionError("once more")
        return sum([await ref.result() for ref in refs])

    async with app.running():
        ref = await total.enqueue()
        assert await ref.result(timeout=250) == 105
        assert len(await app.jobs(kind="square")) == 4, "the rerun has made no others"


async def test_a_handler_of_two_apps_has_two_handles(tmp_path: Path) -> None:
    first, second = (Penstock(f"sqlite:///{tmp_path}/{name}.db", durable=False) for name in "ab")

    @first.job
    async def work(ctx: JobContext) -> str:
        return "done"

    other = second.job("other")(work)
    assert (work.kind, other.kind, other.function) == ("work", "other", work.function)
    async with first.running(), second.running():
        assert await (await work.enqueue()).result(250) == "done"
        assert await (await other.enqueue()).result(250) == "done"
        assert len(await first.jobs()) == len(await second.jobs()) == 1
    elsewhere = first.on_queue(second.queue)
    async with elsewhere:
        ref = await work.on(elsewhere).enqueue()
        assert (await ref.get()).kind == "work"


async def test_a_failed_job_raises_and_a_result_of_another_type_is_told(app: Penstock) -> None:
    @app.job(max_retries=0)
    async def measure(ctx: JobContext, fail: bool) -> Size:
        if fail:
            raise ValueError("no")
        return Size(1, 2)

    async with app.running():
        with pytest.raises(JobFailed, match="no"):
            await (await measure.enqueue(fail=True)).result(250)
        ref = await measure.enqueue(fail=False)
        await ref.wait(250)
    read = reader("measure", int_of)
    assert read(3) == 3
    with pytest.raises(
        ValidationError, match=r"of a 'measure' job is no int.*app\.result gives it"
    ):
        read({"width": 1})


def int_of(ctx: JobContext) -> int:
    return 3


def unresolved(ctx: JobContext) -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821


def unannotated(ctx):  # type: ignore[no-untyped-def]
    ...


def anything(ctx: JobContext) -> Any: ...


class Address(str):
    """A text that pydantic cannot make."""

    __slots__ = ()


def address(ctx: JobContext) -> Address:
    return Address()


@pytest.mark.parametrize("function", [unresolved, unannotated, anything, address])
def test_a_result_of_no_known_type_is_given_as_it_is_stored(function: Callable[..., Any]) -> None:
    assert reader("kind", function)({"width": 1}) == {"width": 1}


def optional(ctx: JobContext) -> Size | None: ...


def nothing(ctx: JobContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "stored", "read"),
    [
        (optional, None, None),
        (optional, {"width": 1, "height": 2}, Size(1, 2)),
        (nothing, None, None),
    ],
)
def test_results_are_read_as_their_type(
    function: Callable[..., Any], stored: Any, read: Any
) -> None:
    assert reader("kind", function)(json.loads(json.dumps(stored))) == read


def test_references_are_equal_by_id() -> None:
    one: JobRef[str] = by_name.ref("a" * 32)
    assert {one, by_name.ref("a" * 32)} == {one}
    assert one != by_name.ref("b" * 32)
    assert repr(one) == f"JobRef('{'a' * 32}')"
