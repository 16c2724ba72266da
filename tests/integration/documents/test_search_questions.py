"""The questions of searches keep to the embedder's lane, and no search waits for one in trouble."""

import asyncio
import time
from typing import Any

import pytest

from penstock import Penstock
from penstock.documents.jobs import EMBED
from penstock.ports.lanes import LaneInfo
from tests.support.document_app import LANE, SOON, Shelf, completed
from tests.support.embedder import PATH
from tests.support.rate_windows import most_at_once
from tests.support.waiting import PATIENCE, until

LONG = 600.0
"""Seconds; nobody waits so long."""
SOON_ENOUGH = 0.5
"""Seconds that a search takes at most while the breaker of the embedder's lane is open."""


def limit(shelf: Shelf, seconds: float = LONG, **lane: Any) -> None:
    shelf.farm.settings |= {
        "lanes": {"embedder": {**LANE, "timeout_seconds": LONG, **lane}},
        "question_seconds": seconds,
    }


async def embedder(app: Penstock) -> LaneInfo:
    (lane,) = [lane for lane in await app.lane_infos() if lane.name == "embedder"]
    return lane


async def test_searches_ask_no_more_at_a_time_than_the_lane_allows(shelf: Shelf) -> None:
    limit(shelf, max_parallel=1)
    shelf.embedder.delay = 0.01
    async with shelf.farm.app("documents") as app:  # which has no workers
        results = await asyncio.gather(*(app.documents.search(f"question {n}") for n in range(20)))
        assert {result.mode for result in results} == {"hybrid"}
        (process,) = await app.processes()
        assert (process.kinds, process.max_workers) == ([], 0)
    assert len(shelf.embedder.requests) == 20
    assert most_at_once(shelf.embedder.spans(PATH)) == 1
    assert shelf.farm.query("SELECT * FROM slots") == []
    assert shelf.farm.query("SELECT * FROM processes") == []


async def test_questions_go_through_the_membership_of_the_workers(shelf: Shelf) -> None:
    async with shelf.running() as app:
        assert (await app.documents.search("question")).mode == "hybrid"
        assert len(await app.processes()) == 1


@pytest.mark.parametrize("slots", [1, 2])
async def test_neither_a_bulk_of_documents_nor_one_of_questions_starves_the_other(
    shelf: Shelf, slots: int
) -> None:
    limit(shelf, max_parallel=slots)
    shelf.embedder.delay = 0.05
    async with shelf.running() as app:
        await app.control_lane("embedder", "pause")  # so that there is always a document that waits
        for n in range(12):
            # Other words, so that each is a request of its own.
            await app.documents.add("\n\n".join(f"{n} {m} " * 40 for m in range(8)), id=f"d{n}")

        async def parsed() -> bool:
            return len(await app.jobs(kind=EMBED, states=["queued"], limit=100)) == 12

        await until(parsed, "all to wait for the embedder", SOON)
        await app.control_lane("embedder", "resume")
        left = 12
        while left:  # a question always waits, too
            pair = asyncio.gather(*(app.documents.search(f"question {left} {n}") for n in range(2)))
            assert {result.mode for result in await pair} == {"hybrid"}
            left = len(await app.jobs(kind=EMBED, states=["queued", "running"], limit=100))
        assert await app.dead_letters() == []
    assert most_at_once(shelf.embedder.spans(PATH)) <= slots


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [("hang", 5.0), ("reset", 2 * LONG)],
    ids=["in time for nothing", "in time for the next try"],
)
async def test_searches_open_the_breaker_and_then_wait_for_nothing(
    shelf: Shelf, fault: str, seconds: float
) -> None:
    limit(shelf, seconds, breaker_first_seconds=LONG, breaker_cap_seconds=LONG)
    async with shelf.running() as app:
        await app.documents.add(b"some text", id="a")
        await completed(app, "a")
        asked = len(shelf.embedder.requests)
        shelf.embedder.fault = fault
        both = await asyncio.gather(app.documents.search("text"), app.documents.search("some text"))
        assert [one.mode for one in both] == ["text", "text"]

        async def is_open() -> bool:
            return (await embedder(app)).breaker == "open"

        await until(is_open, "two searches to be witnesses enough")
        # A busy machine may hold up any of them, but not make one faster: one is proof enough that
        # they need no longer. Each that waited for a permit or an answer would take `seconds`.
        took: list[float] = []
        while len(took) < 20 and min(took, default=LONG) >= SOON_ENOUGH:
            begun = time.monotonic()
            result = await asyncio.wait_for(app.documents.search("text"), PATIENCE)
            took.append(time.monotonic() - begun)
            assert [one.text for one in result.passages] == ["some text"]
            assert (result.mode, "its breaker is open" in result.note) == ("text", True)
        assert len(shelf.embedder.requests) == asked + 2
        assert min(took) < SOON_ENOUGH


async def test_search_does_not_wait_for_the_try_it_makes_and_a_good_one_closes_the_breaker(
    shelf: Shelf,
) -> None:
    limit(shelf, breaker_first_seconds=0.01, breaker_cap_seconds=0.01)
    async with shelf.farm.app("documents") as app:
        shelf.embedder.fault = "reset"
        for n in range(2):
            assert (await app.documents.search(f"question {n}")).mode == "text"
        shelf.embedder.fault = "hang"
        asked = len(shelf.embedder.requests)

        async def tried() -> bool:
            return "an attempt is in progress" in (await app.documents.search("question")).note

        await asyncio.wait_for(until(tried, "a search to make the try"), PATIENCE)
        await until(lambda: len(shelf.embedder.requests) > asked, "the try to arrive")
        (hit,) = shelf.embedder.requests[asked:]
        assert (hit.answered, hit.lost) == (None, None), "the try goes on"
        # While it does there is no other.
        assert "its breaker is open" in (await app.documents.search("question")).note
        assert len(shelf.embedder.requests) == asked + 1
        shelf.embedder.down()
        shelf.embedder.fault = None
        shelf.embedder.up()

        async def back() -> bool:
            return (await app.documents.search("question")).mode == "hybrid"

        await until(back, "searches by meaning again")

        async def closed() -> bool:
            return (await embedder(app)).breaker == "closed"

        await until(closed, "the breaker to close")


async def test_search_whose_time_is_up_gives_its_place_back(shelf: Shelf) -> None:
    limit(shelf, max_parallel=1)
    shelf.embedder.fault = "hang"
    async with shelf.farm.app("documents") as app:
        with pytest.raises(TimeoutError):
            await app.documents.search("question", seconds=0.5)
        shelf.embedder.fault = None
        assert (await app.documents.search("question")).mode == "hybrid"


async def test_stop_of_the_workers_waits_for_the_question_that_goes_through_them(
    shelf: Shelf,
) -> None:
    limit(shelf)
    shelf.embedder.delay = 0.5
    async with shelf.farm.app("documents") as app:
        async with app.running():
            asked = asyncio.create_task(app.documents.search("question"))
            await until(lambda: bool(shelf.embedder.requests), "the question to be asked")
        assert (await asked).mode == "hybrid"
        assert (await app.documents.search("another")).mode == "hybrid", (
            "by a membership of its own"
        )
