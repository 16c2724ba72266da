"""Who is next at the parsers."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from types import SimpleNamespace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from penstock import JobContext
from penstock.documents.parse.packing import Frame
from penstock.documents.parse.pool import ParserPool
from penstock.documents.parse.tenant_turns import Turns
from penstock.documents.scan_readers import parser_for
from tests.support.waiting import until


class Line:
    """Those who ask for turns, each in a task of its own, and the order in which they have them."""

    def __init__(self, size: int = 1) -> None:
        self.turns = Turns(size)
        self.begun: list[str] = []
        self.at_work = self.most_at_work = 0
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, *names: str) -> None:
        """`b1` is a question of tenant `b`."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._one(name))
            await asyncio.sleep(0)

    async def _one(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.begun.append(name)
            self.at_work += 1
            self.most_at_work = max(self.most_at_work, self.at_work)
            try:
                await self._ends[name].wait()
            finally:
                self.at_work -= 1

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await asyncio.sleep(0)

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])
        await asyncio.sleep(0)

    async def end_all(self) -> list[str]:
        for name in self.begun:  # it grows meanwhile
            if not self._tasks[name].done():
                await self.end(name)
        return self.begun


async def test_tenants_take_turns_and_each_is_served_in_its_own_order() -> None:
    line = Line()
    await line.ask("b1", "b2", "b3", "b4", "a1", "a2", "c1")
    assert await line.end_all() == ["b1", "b2", "a1", "c1", "b3", "a2", "b4"]


async def test_who_comes_late_waits_for_one_of_each_other_tenant_at_most() -> None:
    line = Line()
    await line.ask(*(f"b{number}" for number in range(50)), "c0", "c1")
    await line.end("b0")
    await line.ask("a0")
    assert (await line.end_all())[:5] == ["b0", "b1", "c0", "b2", "a0"]


async def test_who_had_a_turn_and_comes_again_is_last_in_the_round() -> None:
    line = Line()
    await line.ask("b1", "a1", "c1")
    await line.end("b1")
    await line.ask("b2")
    await line.end("a1")
    await line.ask("a2")
    assert await line.end_all() == ["b1", "a1", "c1", "b2", "a2"]


async def test_turn_of_who_gives_up_goes_to_the_next() -> None:
    line = Line()
    await line.ask("b1", "b2", "a1", "c1")
    await line.cancel("a1")
    await line.cancel("b1")
    await line.cancel("b2")
    assert await line.end_all() == ["b1", "b2", "c1"]
    assert line.turns.waiting == 0
    await line.ask("d1")
    assert line.begun[-1] == "d1", "nothing is lost by giving up"


async def test_turn_that_is_given_to_who_is_just_cancelled_is_not_lost() -> None:
    line = Line()
    async with line.turns.turn("b"):
        await line.ask("a1")
    # It was given to a1, which has not noticed yet.
    await line.cancel("a1")
    assert line.begun == []
    await line.ask("c1")
    assert line.begun == ["c1"]
    await line.end("c1")


async def test_only_who_has_to_wait_enters_what_is_around_the_wait() -> None:
    turns = Turns(1)
    waits: list[str] = []

    @asynccontextmanager
    async def around() -> AsyncIterator[None]:
        waits.append("began")
        yield
        waits.append("over")

    async def other() -> None:
        async with turns.turn("b", around):
            waits.append("has its turn")

    async with turns.turn("a", around):
        assert waits == []
        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        assert waits == ["began"]
    await task
    assert waits == ["began", "over", "has its turn"]


class Instant(ParserPool):
    """A pool of one parser that needs no time, and may take none."""

    @property
    def longest_seconds(self) -> float:
        return 0.0

    def __init__(self) -> None:
        super().__init__(size=1)
        self.asked: list[str] = []

    async def _ask_twice(self, request: list[bytes]) -> Frame:
        self.asked.append(request[-1].decode())
        return {}, b""


def job_of(tenant: str) -> JobContext:
    def parked(*, timed: bool) -> nullcontext[None]:
        assert not timed
        return nullcontext()

    return cast(JobContext, SimpleNamespace(tenant=tenant, parked=parked))


async def test_questions_to_parsers_take_turns_and_no_wait_counts_toward_their_limit() -> None:
    pool = Instant()
    async with pool._turns.turn("a"):
        waiting = [
            asyncio.create_task(parser_for(job_of(name[0]), pool).ask({}, name.encode()))
            for name in ("a1", "a2", "a3", "b1", "c1")
        ]
        await until(lambda: pool._turns.waiting == len(waiting), "all to wait")
    await asyncio.gather(*waiting)
    assert pool.asked == ["a1", "b1", "c1", "a2", "a3"]


@given(st.integers(1, 4), st.lists(st.sampled_from("abcd"), max_size=30), st.integers())
def test_turns_are_never_more_than_there_are_and_none_is_lost(
    size: int, tenants: list[str], seed: int
) -> None:
    async def play() -> None:
        line, rng, counts = Line(size), random.Random(seed), Counter[str]()
        names = []
        for tenant in tenants:
            counts[tenant] += 1
            names.append(f"{tenant}{counts[tenant]}")
        await line.ask(*names)
        cancelled = set()
        for name in rng.sample(names, len(names) // 3):
            await line.cancel(name)
            cancelled.add(name)
        await line.end_all()
        assert line.most_at_work <= size
        assert line.turns.waiting == 0
        assert cancelled | set(line.begun) == set(names)
        await line.ask(*(f"z{number}" for number in range(size)))
        assert line.at_work == size, "every turn is there again"
        for number in range(size):
            await line.end(f"z{number}")

    asyncio.run(play())
