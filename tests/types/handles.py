"""Calls of typed handles that type checkers must accept, and calls that they must refuse.

Checked by mypy and by pyright, and never run. Each refusal is expected by two comments; a checker
complains of a comment that nothing has needed.
"""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, assert_type

from pydantic import BaseModel

from penstock import Job, JobContext, Penstock
from penstock.types import AsyncJobHandle, JobHandle, JobRef, SyncJobHandle

app = Penstock("sqlite:///types.db")


@dataclass
class Size:
    width: int
    height: int


class Picture(BaseModel):
    name: str


class Resources:
    """What a lifespan yields."""


@app.job("resize", timeout=30)
async def resize(ctx: JobContext, url: str, width: int = 800) -> Picture:
    return Picture(name=f"{url}-{width}")


@app.job
async def crop(ctx: JobContext[Resources], picture: Picture, *, to: Size) -> Size:
    return to


@app.job
def count(ctx: JobContext, words: list[str]) -> int:
    return len(words)


async def accepted(ctx: JobContext[Any], own: JobContext[Resources]) -> None:
    ref = await resize.enqueue(url="cat.jpg", width=64)
    assert_type(ref, JobRef[Picture])
    assert_type(await ref.result(timeout=5), Picture)
    assert_type(await ref.wait(), Job)
    assert_type(await (await resize.enqueue("cat.jpg")).result(), Picture)
    assert_type(await (await crop.enqueue(Picture(name="a"), to=Size(1, 2))).result(), Size)
    assert_type(await (await count.enqueue(words=["a"])).result(), int)
    some = [resize.payload(url=url) for url in ("a", "b")]
    assert_type(await resize.enqueue_many(some, keys=["a", None]), list[JobRef[Picture]])
    urgent = resize.with_options(priority="high", delay=5, key="cat", tenant="us", max_retries=1)
    assert_type(await urgent.enqueue(url="cat.jpg"), JobRef[Picture])
    assert_type(await resize.with_options(parent=ctx).enqueue("cat.jpg"), JobRef[Picture])
    typed = resize.with_options(debounce=5, debounce_key="user:7", max_wait=60)
    assert_type(await typed.enqueue(url="cat.jpg"), JobRef[Picture])
    each = resize.with_options(unique_for=60.0, unique_key=["a", "b"])
    assert_type(await each.enqueue_many(some), list[JobRef[Picture]])
    assert_type(resize.ref("0" * 32), JobRef[Picture])
    # Called, they are the functions they were.
    called = resize(ctx, "cat.jpg", width=2)
    coroutine: Coroutine[Any, Any, Picture] = called
    assert coroutine is called
    assert_type(await called, Picture)
    assert_type(await crop(own, Picture(name="a"), to=Size(1, 2)), Size)
    assert_type(count(ctx, ["a"]), int)
    # By kind, as before.
    assert_type(await app.enqueue("resize", {"url": "cat.jpg"}), Job)
    assert_type(await app.enqueue(resize.kind, resize.payload("cat.jpg")), Job)
    async for event in ref.follow(after=3):
        print(event.position)


def handles() -> tuple[JobHandle[..., Picture], JobRef[object]]:
    one: AsyncJobHandle[JobContext, ..., Picture] = resize
    other: SyncJobHandle[JobContext, [list[str]], int] | None = None
    assert other is None
    return one, resize.ref("0" * 32)


async def refused(ctx: JobContext[Any]) -> None:
    await resize.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await resize.enqueue(link="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await resize.enqueue(url=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await resize.enqueue("x", "y")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await resize.enqueue("x", 1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await resize.enqueue(ctx, "x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await resize.enqueue("x", key="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await crop.enqueue(Picture(name="a"), Size(1, 2))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await resize.enqueue_many([{"url": "x"}])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    await resize.enqueue_many([count.payload(["x"])])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    resize.with_options(priority="urgent")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    resize.with_options(debounce="5 s")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    resize.with_options(lane="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await resize("cat.jpg")  # type: ignore[arg-type,call-arg]  # pyright: ignore[reportCallIssue]
    words: str = await (await count.enqueue(["x"])).result()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    print(words)
