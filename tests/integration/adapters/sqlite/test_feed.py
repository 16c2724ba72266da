"""The feed in a file: who fills it, what is forgotten, and what reading it costs."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.adapters.sql.upkeep import retain
from penstock.adapters.sqlite import SqliteQueue
from penstock.adapters.sqlite.transaction import sql
from penstock.errors import ValidationError
from penstock.ports.queue import FEED_SECONDS
from tests.conformance.support import add

ALL = 10_000


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[SqliteQueue]:
    queue = SqliteQueue(f"sqlite:///{tmp_path}/jobs.db", durable=False)
    await queue.open()
    yield queue
    await queue.close()


@pytest.fixture
def file(queue: SqliteQueue) -> Iterator[sqlite3.Connection]:
    with closing(queue.connect()) as connection:
        yield connection


def shift(file: sqlite3.Connection, seconds: float, first: int) -> None:
    """Let the first entries have been written at another time."""
    for table, which in (("changes", "version"), ("feed", "position")):
        file.execute(f"UPDATE {table} SET at = at + ? WHERE {which} <= ?", (seconds, first))


@pytest.mark.parametrize("seconds", [-FEED_SECONDS - 60, 3 * FEED_SECONDS])
async def test_what_is_older_than_an_hour_or_from_a_wrong_clock_is_forgotten(
    queue: SqliteQueue, file: sqlite3.Connection, seconds: float
) -> None:
    await add(queue, 5000, log="paper")
    shift(file, seconds, first=4990)
    end = await queue.feed_end("default")
    await retain(queue)

    left = await queue.feed("default", None, ALL)
    assert [entry.change.version for entry in left] == list(range(4991, 5001))
    assert len(await queue.changes("default", "paper", 0, ALL)) == 5000, "the log keeps them"
    assert await queue.feed("default", end, ALL) == []


async def test_clock_that_is_set_back_a_little_forgets_nothing(
    queue: SqliteQueue, file: sqlite3.Connection
) -> None:
    await add(queue, 10, log="paper")
    shift(file, 60.0, first=10)
    await retain(queue)

    assert len(await queue.feed("default", None, ALL)) == 10


async def test_position_is_not_given_again_when_all_before_it_is_forgotten(
    queue: SqliteQueue, file: sqlite3.Connection
) -> None:
    await add(queue, 10, log="paper")
    last = (await queue.feed("default", None, ALL))[-1].position
    shift(file, -2 * FEED_SECONDS, first=10)
    await retain(queue)
    assert len(await queue.feed("default", None, ALL)) == 1, "positions are counted from it"
    assert await queue.feed_end("default") == last
    (job,) = await add(queue, 1, log="paper")

    assert [e.change.job_id for e in await queue.feed("default", last, ALL)] == [job.id]


async def test_position_past_the_end_belongs_to_another_file(queue: SqliteQueue) -> None:
    await add(queue, 3, log="paper")
    assert await queue.feed("default", "s3", ALL) == []
    with pytest.raises(ValidationError, match="'s4'"):
        await queue.feed("default", "s4", ALL)


@pytest.mark.parametrize("name", ["feed", "forget_feed"])
def test_statement_goes_by_index(file: sqlite3.Connection, name: str) -> None:
    values = {"tenant": "t", "after": 1, "limit": 10, "now": 1.0, "kept": 1.0}
    steps = [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {sql(name)}", values)]
    scans = [step for step in steps if step.startswith("SCAN") or "TEMP" in step]
    if name == "feed":
        assert any("feed_tenant (tenant=? AND rowid>?)" in step for step in steps), steps
        assert scans == []
    else:
        assert scans == ["SCAN feed"], "only of the first few, in their order"
        assert any("INTEGER PRIMARY KEY" in step for step in steps), steps
