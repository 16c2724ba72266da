"""Jobs that share a request to the embedder: who makes it, who is told what when it fails."""

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.documents import embed_batches as module
from penstock.documents.embed_batches import MAX_TEXTS, EmbedBatches
from penstock.engine.context import JobContext
from penstock.errors import EmbedderError, LaneBusy, RateLimited, Unavailable


class Wire:
    """Where requests go: notes them, holds them while `gate` is shut, and fails as told."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.problem: Callable[[Sequence[str]], Exception | None] = lambda texts: None

    async def send(self, ctx: JobContext, texts: Sequence[str]) -> list[bytes]:
        self.requests.append(list(texts))
        await self.gate.wait()
        if (problem := self.problem(texts)) is not None:
            raise problem
        return [text.encode() for text in texts]


@pytest.fixture(autouse=True)
def _pauses_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stood still for a moment is no slow embedder, and no lonely job."""
    for name in ("QUICK_SECONDS", "PATIENCE_SECONDS", "LONELY_SECONDS"):
        monkeypatch.setattr(module, name, 600.0)


def company(
    wire: Wire, lasts: bool = True, left: list[bool] | None = None
) -> Callable[..., asyncio.Task[list[bytes]]]:
    """Asks as jobs do, each in a task of its own; `left` gets an entry for each that leaves its
    lane."""
    jobs = EmbedBatches(wire.send)
    lanes = SimpleNamespace(leave=lambda: left.append(True) if left is not None else None)
    context: Any = SimpleNamespace(permit_lasts=lambda seconds: lasts, lanes=lanes)

    def ask(*texts: str) -> asyncio.Task[list[bytes]]:
        member = jobs.member(context)  # a job is there before it asks
        embed = member.__enter__()

        async def job() -> list[bytes]:
            try:
                return await embed(texts)
            finally:
                member.__exit__(None, None, None)

        return asyncio.create_task(job())

    return ask


async def sent(wire: Wire, count: int = 1) -> None:
    async with asyncio.timeout(60):
        while len(wire.requests) < count:  # noqa: ASYNC110 (a request is what is waited for)
            await asyncio.sleep(0.001)


async def test_jobs_that_ask_at_the_same_moment_share_a_request() -> None:
    wire = Wire()
    ask = company(wire)
    answers = await asyncio.gather(ask("a", "b"), ask("c"), ask("d", "e"))
    assert wire.requests == [["a", "b", "c", "d", "e"]]
    assert list(answers) == [[b"a", b"b"], [b"c"], [b"d", b"e"]]


async def test_a_request_holds_no_more_than_it_may() -> None:
    wire = Wire()
    ask = company(wire)
    asked = [[f"{job}.{n}" for n in range(20)] for job in range(5)]
    answers = await asyncio.gather(*(ask(*texts) for texts in asked))
    assert answers == [[text.encode() for text in texts] for texts in asked]
    assert [len(request) for request in wire.requests] == [40, 40, 20]
    assert max(map(len, wire.requests)) <= MAX_TEXTS


async def test_a_full_batch_waits_for_nobody() -> None:
    wire = Wire()
    ask = company(wire)
    wire.gate.clear()
    job = ask(*map(str, range(MAX_TEXTS)))
    await asyncio.sleep(0)
    assert len(wire.requests) == 1
    wire.gate.set()
    assert len(await job) == MAX_TEXTS


async def test_when_the_one_that_asks_is_cancelled_the_others_ask_again() -> None:
    wire = Wire()
    ask = company(wire)
    wire.gate.clear()
    first, second, third = ask("a"), ask("b"), ask("c")
    await sent(wire)
    first.cancel()
    wire.gate.set()
    assert [await second, await third] == [[b"b"], [b"c"]]
    assert first.cancelled()
    assert wire.requests == [["a", "b", "c"], ["b", "c"]]


async def test_when_the_one_that_gathers_is_cancelled_the_others_ask_without_it() -> None:
    wire = Wire()
    ask = company(wire)
    first, second = ask("a"), ask("b")
    await asyncio.sleep(0)
    first.cancel()
    assert await second == [b"b"]
    assert wire.requests == [["b"]]


async def test_nobody_waits_who_is_alone_or_whose_permit_would_not_last() -> None:
    wire = Wire()
    wire.gate.clear()
    lone = company(wire)("a")
    ask = company(wire, lasts=False)
    hurried = [ask("b"), ask("c")]
    for _ in range(3):  # turns of the loop, no time
        await asyncio.sleep(0)
    assert wire.requests == [["a"], ["b"], ["c"]]
    wire.gate.set()
    assert [await job for job in (lone, *hurried)] == [[b"a"], [b"b"], [b"c"]]


async def test_when_another_is_cancelled_nobody_notices() -> None:
    wire = Wire()
    ask = company(wire)
    wire.gate.clear()
    first, second, third = ask("a"), ask("b"), ask("c")
    await sent(wire)
    second.cancel()
    wire.gate.set()
    assert [await first, await third] == [[b"a"], [b"c"]]
    assert len(wire.requests) == 1


@pytest.mark.parametrize("position", [0, 1, 2])
async def test_a_text_that_is_refused_fails_only_its_own_job(position: int) -> None:
    wire = Wire()
    ask = company(wire)
    names = ["a", "b", "c"]
    wire.problem = lambda texts: EmbedderError("no") if names[position] in texts else None
    answers = await asyncio.gather(*map(ask, names), return_exceptions=True)
    for at, (name, answer) in enumerate(zip(names, answers, strict=True)):
        if at == position:
            assert isinstance(answer, EmbedderError)
        else:
            assert answer == [name.encode()]


@pytest.mark.parametrize(
    "problem", [Unavailable("gone"), RateLimited("later"), LaneBusy("embedder", 0.0, "full")]
)
async def test_where_no_text_is_to_blame_each_job_has_asked_once(problem: Exception) -> None:
    wire = Wire()
    ask = company(wire)
    wire.problem = lambda texts: problem
    answers = await asyncio.gather(ask("a"), ask("b"), return_exceptions=True)
    assert all(answer is problem for answer in answers)
    assert wire.requests == [["a", "b"], ["b"]]


async def test_who_comes_along_leaves_the_lane_to_others_once_the_embedder_was_quick() -> None:
    wire, left = Wire(), list[bool]()
    ask = company(wire, left=left)
    await asyncio.gather(ask("a"), ask("b"))
    assert left == [], "nothing is known of the embedder yet"
    await asyncio.gather(ask("a"), ask("b"), ask("c"))
    assert left == [True, True]


async def test_nobody_waits_long_outside_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)
    wire, left = Wire(), list[bool]()
    ask = company(wire, left=left)
    await asyncio.gather(ask("a"), ask("b"))
    wire.gate.clear()
    leading, following = ask("c"), ask("d")
    with pytest.raises(LaneBusy):
        await following
    wire.gate.set()
    assert await leading == [b"c"]
    assert len(left) == 1


async def test_nobody_leaves_the_lane_of_a_slow_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUICK_SECONDS", 0.0)
    wire, left = Wire(), list[bool]()
    ask = company(wire, left=left)
    for _ in range(2):
        await asyncio.gather(ask("a"), ask("b"))
    assert left == []
