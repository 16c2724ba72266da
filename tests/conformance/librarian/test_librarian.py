"""What every librarian promises, in this process or as a service of its own."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import (
    AuthenticationError,
    LaneBusy,
    RateLimited,
    Unavailable,
    ValidationError,
)
from penstock.ports.librarian import MAX_ROUNDS
from tests.support.librarian_callers import Counter, counter_at
from tests.support.librarians import PASSAGE
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

TWO_MINUTES = 120.0


@pytest.fixture(params=["local", "remote"])
async def counter(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Counter]:
    farm = Farm(tmp_path)
    remote = request.param == "remote"
    async with counter_at(farm, remote=remote, keepalive_seconds=TWO_MINUTES) as counter:
        yield counter
    await farm.close()


async def test_rounds_come_as_they_were_found(counter: Counter) -> None:
    first, second = await counter.ask("round", "round")
    assert first.evidence == (PASSAGE,)
    assert (first.number, first.queries, first.missing) == (1, ("tides", "潮汐"), ("the sun",))
    assert (first.enough, first.note, second.enough) == (False, "a note", True)
    assert (second.evidence[0].number, second.next) == (2, ("moon",))


async def test_round_is_there_before_the_next_one_is(counter: Counter) -> None:
    errand = counter.errand("round", "block")
    async with aclosing(counter.librarian.search(counter.asking(), errand)) as rounds:
        async with asyncio.timeout(PATIENCE):
            assert (await anext(rounds)).number == 1
        assert counter.diary.notes("ended") == []


async def test_errand_arrives_whole(counter: Counter) -> None:
    found = (PASSAGE, replace(PASSAGE, number=2, pages=None))
    rounds = await counter.ask("round", collections=("a", "b"), found=found, rounds_done=2)
    assert [turn.number for turn in rounds] == [3]
    (began,) = counter.diary.notes("began")
    assert (began["tenant"], began["asking"]) == ("acme", "acme")
    assert (began["found"], began["collections"]) == ([1, 2], ["a", "b"])


async def test_no_collection_is_not_all_of_them(counter: Counter) -> None:
    await counter.ask("round", collections=())
    await counter.ask("round", collections=None)
    assert [began["collections"] for began in counter.diary.notes("began")] == [[], None]


async def test_never_more_rounds_than_promised(counter: Counter) -> None:
    assert len(await counter.ask(*["round"] * 9)) == MAX_ROUNDS


async def test_search_ends_when_its_time_is_up_with_what_has_come(counter: Counter) -> None:
    began, seconds = time.monotonic(), 0.0
    for seconds in (0.8, 10.0):  # a busy machine may need more for the first round
        began = time.monotonic()
        with contextlib.suppress(Unavailable):
            await counter.ask("round", "wait", "round", seconds=seconds)
        if counter.came:
            break
    assert len(counter.came) == 1
    assert seconds - 0.3 < time.monotonic() - began < seconds + PATIENCE
    await until(lambda: counter.diary.notes("ended"), "it to end by itself")


async def test_no_round_begins_after_the_end(counter: Counter) -> None:
    assert await counter.ask("round", seconds=-1.0) == []


async def test_whoever_wants_no_more_ends_the_search(counter: Counter) -> None:
    errand = counter.errand("round", "block")
    async with aclosing(counter.librarian.search(counter.asking(), errand)) as rounds:
        await anext(rounds)
        if counter.process:  # the one in this process has not been asked for more
            await until(lambda: counter.diary.notes("waits"), "it to go on")
    await until(
        lambda: counter.diary.notes("cancelled") or counter.diary.notes("closed"), "it to stop"
    )


async def test_cancelled_search_stops(counter: Counter) -> None:
    asking = counter.asking(TWO_MINUTES)
    search = counter.ask("round", "block", seconds=TWO_MINUTES, asking=asking)
    task = asyncio.create_task(search)
    await until(lambda: counter.diary.notes("waits"), "it to search")
    task.cancel()
    await until(lambda: counter.diary.notes("cancelled"), "it to stop")
    assert (await asyncio.gather(task, return_exceptions=True))[0].__class__ is (
        asyncio.CancelledError
    )


async def test_searches_do_not_wait_for_each_other(counter: Counter) -> None:
    slow = asyncio.create_task(counter.ask("block"))
    await until(lambda: counter.diary.notes("waits"), "one to search")
    rounds = counter.librarian.search(counter.asking(), counter.errand("round"))
    assert [turn.number async for turn in rounds] == [1]
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


async def test_rounds_that_came_before_trouble_are_kept(counter: Counter) -> None:
    with pytest.raises(Unavailable):
        await counter.ask("round", "round", "gone:llm.search")
    assert [turn.number for turn in counter.came] == [1, 2]


async def test_trouble_of_a_lane_is_told_as_that_of_the_lane(counter: Counter) -> None:
    with pytest.raises(Unavailable, match="ConnectError") as gone:
        await counter.ask("gone:llm.search")
    with pytest.raises(RateLimited) as limited:
        await counter.ask("limited:llm.search")
    with pytest.raises(AuthenticationError) as refused:
        await counter.ask("refused:llm.search")
    lanes = {gone.value.lane, limited.value.lane, refused.value.lane}
    assert (lanes, limited.value.retry_after) == ({"llm.search"}, 9.0)


async def test_busy_lane_is_told_with_when_to_come_back(counter: Counter) -> None:
    before = counter.app.queue.now()
    with pytest.raises(LaneBusy) as busy:
        await counter.ask("busy:llm.search")
    assert (busy.value.lane, busy.value.why) == ("llm.search", "its breaker is open")
    assert before <= busy.value.until - 7 + 0.1
    assert busy.value.until <= counter.app.queue.now() + 7


async def test_errand_that_cannot_be_run_is_refused(counter: Counter) -> None:
    with pytest.raises(ValidationError, match="no such collection"):
        await counter.ask("invalid")
