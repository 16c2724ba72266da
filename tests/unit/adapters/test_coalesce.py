"""What is asked for while others are served is done together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from penstock.adapters.coalesce import Coalesced


class Work:
    """Goes on when it is let; keeps what it was asked to do at a time."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.begun = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, key: str, asked: Sequence[int]) -> list[int | Exception]:
        self.groups.append(list(asked))
        self.begun.set()
        await self.go.wait()
        if 0 in asked:
            raise LookupError("all of them")
        return [ValueError(f"{one} alone") if one < 0 else one * 10 for one in asked]


async def test_those_who_come_meanwhile_are_served_together_and_in_order() -> None:
    work = Work()
    together = Coalesced(work, most=3)
    asks = [asyncio.create_task(together.ask("a", n)) for n in range(1, 7)]
    await work.begun.wait()
    work.go.set()
    assert await asyncio.gather(*asks) == [10, 20, 30, 40, 50, 60]
    assert work.groups == [[1, 2, 3], [4, 5, 6]] or work.groups == [[1], [2, 3, 4], [5, 6]]


async def test_keys_do_not_wait_for_each_other() -> None:
    work = Work()
    together = Coalesced(work, most=3)
    asks = [asyncio.create_task(together.ask(key, 1)) for key in ("a", "b")]
    await work.begun.wait()
    assert work.groups == [[1], [1]], "both are under way"
    work.go.set()
    assert await asyncio.gather(*asks) == [10, 10]


async def test_error_of_one_is_raised_to_it_alone_and_that_of_the_work_to_all() -> None:
    work = Work()
    together = Coalesced(work, most=9)
    first = asyncio.create_task(together.ask("a", 1))
    await work.begun.wait()
    rest = [asyncio.create_task(together.ask("a", n)) for n in (2, -3, 4)]
    await asyncio.sleep(0)
    work.go.set()
    assert await first == 10
    told = await asyncio.gather(*rest, return_exceptions=True)
    assert [told[0], str(told[1]), told[2]] == [20, "-3 alone", 40]
    work.go.clear()
    both = [asyncio.create_task(together.ask("a", n)) for n in (0, 5)]
    work.go.set()
    again = await asyncio.gather(*both, return_exceptions=True)
    assert isinstance(again[0], LookupError)
    assert 5 in work.groups[-1]


async def test_cancelling_the_one_who_works_costs_nobody_else_the_answer() -> None:
    work = Work()
    together = Coalesced(work, most=9)
    first = asyncio.create_task(together.ask("a", 1))
    await work.begun.wait()
    others = [asyncio.create_task(together.ask("a", n)) for n in (2, 3)]
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.go.set()
    assert await asyncio.gather(*others) == [20, 30]
    assert work.groups == [[1], [2, 3]]
    assert together._lines == {}
