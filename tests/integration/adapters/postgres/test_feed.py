"""The feed where transactions overlap: what commits late is told, and told in its place."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from penstock.adapters.postgres import PostgresQueue
from penstock.adapters.postgres.feed import _place, _position
from penstock.errors import ValidationError
from penstock.ports.queue import FeedEntry, Topic
from tests.conformance.support import add, new_jobs
from tests.support.postgres import Psql, new_url, psql
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("patient_postgres")
ALL = 1000
SOON = 60.0
LOG = "SELECT penstock.log_changes_1('default', $1, 1, '{queued}', ARRAY[$2], ARRAY['{}'])"


@pytest.fixture
def url() -> str:
    return new_url()


@pytest.fixture
async def queue(url: str) -> AsyncIterator[PostgresQueue]:
    queue = PostgresQueue(url)
    await queue.open()
    yield queue
    await queue.close()


@pytest.fixture
async def mine(queue: PostgresQueue, url: str) -> AsyncIterator[Psql]:
    async with psql(url) as mine:
        yield mine


async def entries(queue: PostgresQueue, count: int, after: str | None = None) -> list[FeedEntry]:
    async def enough() -> list[FeedEntry]:
        found = await queue.feed("default", after, ALL)
        return found if len(found) >= count else []

    return await until(enough, f"{count} entries")


def jobs_of(found: list[FeedEntry]) -> list[str]:
    return [entry.change.job_id for entry in found]


async def test_transaction_that_commits_late_is_not_skipped(
    queue: PostgresQueue, mine: Psql
) -> None:
    seen: list[FeedEntry] = []
    async with mine.connection.transaction():
        late = (await queue.enqueue(new_jobs(log="late"), conn=mine.connection))[0]
        for n in range(5):
            await add(queue, 1, log=f"quick{n}")
            seen += await queue.feed("default", seen[-1].position if seen else None, ALL)
        end = await queue.feed_end("default")
    after = seen[-1].position if seen else None
    seen += await entries(queue, 6 - len(seen), after)

    assert sorted(entry.change.log for entry in seen) == ["late", *(f"quick{n}" for n in range(5))]
    assert late.id in jobs_of(seen)
    assert late.id in jobs_of(await queue.feed("default", end, ALL))


async def test_transaction_that_is_rolled_back_holds_nothing_up_for_good(
    queue: PostgresQueue, mine: Psql
) -> None:
    transaction = mine.connection.transaction()
    await transaction.start()
    await queue.enqueue(new_jobs(log="never"), conn=mine.connection)
    await add(queue, 1, log="quick")
    await transaction.rollback()

    assert [entry.change.log for entry in await entries(queue, 1)] == ["quick"]


async def test_versions_ascend_where_the_older_transaction_writes_last(
    queue: PostgresQueue, mine: Psql, url: str
) -> None:
    """The first to begin writes to the log after another that began later has committed."""
    async with psql(url) as other, mine.connection.transaction():
        await mine.fetchval("SELECT pg_current_xact_id()::text")
        await other.execute(LOG, "paper", "second")
        await mine.execute(LOG, "another", "first")
        await mine.execute(LOG, "paper", "third")
        await other.execute(LOG, "last", "fourth")

    found = await entries(queue, 4)
    paper = [(e.change.version, e.change.job_id) for e in found if e.change.log == "paper"]
    assert paper == [(1, "second"), (2, "third")]


async def test_new_log_that_two_begin_at_once_is_in_order(
    queue: PostgresQueue, mine: Psql, url: str
) -> None:
    async with psql(url) as other:
        async with mine.connection.transaction():
            await other.execute("BEGIN")
            await other.fetchval("SELECT pg_current_xact_id()::text")  # the older of the two
            await mine.execute(LOG, "paper", "first")
            waiting = asyncio.create_task(other.execute(LOG, "paper", "second"))
            await until(lambda: _is_blocked(mine), "the other to wait for the log")
        await waiting
        await other.execute("COMMIT")

    found = await entries(queue, 2)
    assert [(e.change.version, e.change.job_id) for e in found] == [(1, "first"), (2, "second")]


async def _is_blocked(mine: Psql) -> bool:
    count = (
        "SELECT count(*) FROM pg_locks"
        " WHERE NOT granted AND transactionid = pg_current_xact_id()::xid"
    )
    return bool(await mine.fetchval(count))


async def test_whoever_was_woken_too_early_is_woken_again(queue: PostgresQueue, mine: Psql) -> None:
    """The only wake-up comes while an older transaction is open, of somebody who wakes nobody."""
    wakeup = queue.listen(Topic.FINISHED)
    looks = 0

    async def look_when_woken() -> list[FeedEntry]:
        nonlocal looks
        while not (found := await queue.feed("default", None, ALL)):
            looks += 1
            assert await wakeup.wait(60)
        return found

    async with mine.connection.transaction():
        await mine.fetchval("SELECT pg_current_xact_id()::text")
        await add(queue, 1, log="paper")
        while await wakeup.wait(0.5):
            pass
        looking = asyncio.create_task(look_when_woken())
        await until(lambda: looks > 2, "it to be woken again and again")
    async with asyncio.timeout(SOON):
        assert [entry.change.log for entry in await looking] == ["paper"]
    turns = 0
    while await wakeup.wait(1.5):  # one may have been under way
        turns += 1
        assert turns < 5, "and not for longer than there is reason"
    wakeup.close()


async def test_nobody_is_woken_while_there_is_nothing_to_come(queue: PostgresQueue) -> None:
    wakeup = queue.listen(Topic.FINISHED)
    assert await wakeup.wait(SOON), "no connection for wake-ups"
    await add(queue, 1, log="paper")
    (entry,) = await entries(queue, 1)
    while await wakeup.wait(0.5):
        pass
    assert await queue.feed("default", entry.position, ALL) == []
    assert not await wakeup.wait(0.2)
    wakeup.close()


async def test_dump_from_a_server_with_higher_ids_does_not_silence_its_logs(
    queue: PostgresQueue, mine: Psql
) -> None:
    await add(queue, 1, log="paper")
    (old,) = await entries(queue, 1)
    far = "feed = (feed::text::bigint + 1000000000)::text::xid8"
    await mine.execute(f"UPDATE penstock.logs SET {far}")
    await mine.execute(f"UPDATE penstock.changes SET {far}")
    feed, log, version = _place(old.position)
    with pytest.raises(ValidationError):
        await queue.feed("default", _position(feed + 1000000000, log, version), ALL)

    (new,) = await add(queue, 1, log="paper")

    assert jobs_of(await entries(queue, 1)) == [new.id]


async def test_reading_a_feed_costs_what_is_read_whatever_the_table_holds(
    queue: PostgresQueue, mine: Psql
) -> None:
    await mine.execute("ALTER TABLE penstock.changes SET (autovacuum_enabled = off)")
    await pages(mine, "p1.0.")  # planned while there was nothing
    await mine.execute(
        "INSERT INTO penstock.changes (tenant, log, version, at, what, job_id, data, feed)"
        " SELECT 't' || n % 3, 'log' || n % 50, n, 1, 'queued', n::text, '{}',"
        "        pg_current_xact_id()"
        " FROM generate_series(1, 30000) AS n"
    )
    middle = (await queue.feed("t1", None, 5000))[-1]

    assert await pages(mine, middle.position) < 60


async def pages(mine: Psql, position: str) -> int:
    """How many pages it takes to read ten entries after this."""
    rows = await mine.fetch(
        "EXPLAIN (ANALYZE, BUFFERS, TIMING off)"
        " SELECT * FROM penstock.feed_1('t1', $1::bigint::text::xid8, $2, $3, 10)",
        *_place(position),
    )
    text = next(row[0] for row in rows if "Buffers" in row[0])
    return sum(int(number) for number in re.findall(r"(?:hit|read)=(\d+)", text))
