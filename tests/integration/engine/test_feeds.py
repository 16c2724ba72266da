"""Following a feed: everybody gets each change once and in order, and nobody waits for another."""

import asyncio
import gc
import logging
import random
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.adapters.sqlite import SqliteQueue
from penstock.engine.feeds import Feeds, Follower
from penstock.errors import QueueUnavailable, QueueUnusable, TooSlow, ValidationError
from penstock.model.ids import new_id
from penstock.model.settings import EngineConfig
from penstock.ports.queue import JobQueue
from penstock.types import FeedEntry
from tests.conformance.support import BACKENDS, Ledger, add
from tests.support.database_servers import redis_url
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import until

SOON = 60.0
READER = "penstock-feed"
QUIET = EngineConfig(poll_seconds=600.0)
"""A look without a wake-up would come too late to help."""


class CountedQueue(SqliteQueue):
    """Counts how often feeds are read, and can hold up those who do."""

    def __init__(self, url: str) -> None:
        super().__init__(url, durable=False)
        self.reads = 0
        self.reads_of_others = 0
        """Not by the reader that serves all: it looks again whenever it hears something."""
        self.broken: Exception | None = None
        self.reader_may_ask = asyncio.Event()
        self.reader_may_ask.set()
        self.others_may_hear = asyncio.Event()
        self.others_may_hear.set()

    async def feed(self, tenant: str, after: str | None, limit: int) -> list[FeedEntry]:
        self.reads += 1
        if self.broken is not None:
            raise self.broken
        task = asyncio.current_task()
        if task is not None and task.get_name() == READER:
            await self.reader_may_ask.wait()
            return await super().feed(tenant, after, limit)
        self.reads_of_others += 1
        found = await super().feed(tenant, after, limit)
        await self.others_may_hear.wait()
        return found


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[CountedQueue]:
    queue = CountedQueue(f"sqlite:///{tmp_path}/jobs.db")
    await queue.open()
    yield queue
    await queue.close()


@pytest.fixture
async def feeds(queue: CountedQueue) -> AsyncIterator[Feeds]:
    feeds = Feeds(queue, QUIET, keep=200)
    yield feeds
    await feeds.close()


async def take(batches: Follower, count: int) -> list[FeedEntry]:
    """The next entries, at least so many."""
    found: list[FeedEntry] = []
    async with asyncio.timeout(SOON):
        while len(found) < count:
            found += await anext(batches)
    return found


def running() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name() == READER]


async def test_thousand_followers_are_served_by_one_read_of_each_change(
    queue: CountedQueue, feeds: Feeds
) -> None:
    ready = 0
    seen: list[list[FeedEntry]] = [[] for _ in range(1000)]

    async def follow(number: int) -> None:
        nonlocal ready
        async with feeds.follow("default") as batches:
            ready += 1
            while len(seen[number]) < 10:
                seen[number] += await anext(batches)

    def told(count: int) -> bool:
        return all(len(each) == count for each in seen)

    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        for number in range(1000):
            group.create_task(follow(number))
        await until(lambda: ready == 1000, "all to follow")
        before = queue.reads
        for n in range(10):
            await add(queue, 1, log=f"log{n % 3}")
            await until(partial(told, n + 1), "all to be told")
        reads = queue.reads - before

    assert all(each == seen[0] for each in seen)
    assert [entry.change.log for entry in seen[0]] == [f"log{n % 3}" for n in range(10)]
    # A wake-up that comes while one looks is worth another look, for all.
    assert 10 <= reads <= 30
    assert running() == []


async def test_follower_starts_where_the_feed_ends(queue: CountedQueue, feeds: Feeds) -> None:
    await add(queue, 5, log="before")
    async with feeds.follow("default") as first:
        await add(queue, 1, log="a")
        assert [e.change.log for e in await take(first, 1)] == ["a"]
        async with feeds.follow("default") as second:
            await add(queue, 1, log="b")
            assert [e.change.log for e in await take(second, 1)] == ["b"]
        assert [e.change.log for e in await take(first, 1)] == ["b"]


async def test_follower_resumes_from_memory_without_a_read(
    queue: CountedQueue, feeds: Feeds
) -> None:
    async with feeds.follow("default") as first:
        await add(queue, 50, log="paper")
        entries = await take(first, 50)
        async with feeds.follow("default", entries[9].position) as again:
            assert await take(again, 40) == entries[10:]
    assert queue.reads_of_others == 0


async def test_follower_resumes_from_the_queue_where_memory_ends(
    queue: CountedQueue, feeds: Feeds
) -> None:
    await add(queue, 1300, log="paper")
    entries = await queue.feed("default", None, 2000)
    for position in (entries[0].position, entries[700].position):
        async with feeds.follow("default", position) as batches:
            rest = entries[entries.index(_at(entries, position)) + 1 :]
            assert await take(batches, len(rest)) == rest
            (job,) = await add(queue, 1, log="paper")
            (entry,) = await take(batches, 1)
            assert entry.change.job_id == job.id
            entries.append(entry)


def _at(entries: list[FeedEntry], position: str) -> FeedEntry:
    return next(entry for entry in entries if entry.position == position)


async def test_follower_resumes_from_an_end_that_is_no_entry_of_its_tenant(
    queue: CountedQueue, feeds: Feeds
) -> None:
    await add(queue, 2, log="paper", tenant="mine")
    async with feeds.follow("mine"):
        await add(queue, 3, log="paper", tenant="theirs")
        end = await queue.feed_end("mine")
        async with feeds.follow("mine", end) as batches:
            await add(queue, 1, log="book", tenant="mine")
            assert [e.change.log for e in await take(batches, 1)] == ["book"]


async def test_follower_that_is_ahead_of_the_reader_gets_nothing_twice(
    queue: CountedQueue, feeds: Feeds
) -> None:
    await add(queue, 3, log="paper")
    before = await queue.feed("default", None, 100)
    async with feeds.follow("default"):
        queue.reader_may_ask.clear()
        await add(queue, 3, log="paper")
        told = asyncio.create_task(_versions(feeds, before[0].position, 6))
        await asyncio.sleep(0.1)  # in which it could get ahead of the reader
        queue.reader_may_ask.set()
        await until(lambda: not told.done() and queue.reads > 3, "it to have read")
        await add(queue, 1, log="paper")
        assert await told == [2, 3, 4, 5, 6, 7]


async def test_follower_is_told_what_came_while_it_heard_that_there_was_nothing(
    queue: CountedQueue, feeds: Feeds
) -> None:
    await add(queue, 1, log="paper", tenant="other")
    end = await queue.feed_end("default")
    await add(queue, 1, log="paper", tenant="other")
    async with feeds.follow("default") as first:
        queue.others_may_hear.clear()
        before = queue.reads
        told = asyncio.create_task(_versions(feeds, end, 2))
        await until(lambda: queue.reads > before + 1, "it to ask")
        await asyncio.sleep(0.1)  # in which the queue answers: nothing
        await add(queue, 1, log="paper")
        await take(first, 1)
        queue.others_may_hear.set()
        await add(queue, 1, log="paper")
        assert await told == [1, 2]


async def _versions(feeds: Feeds, position: str, count: int) -> list[int]:
    """The versions that one is told who follows from there, at least so many."""
    async with feeds.follow("default", position) as batches:
        return [entry.change.version for entry in await take(batches, count)]


async def test_malformed_position_is_refused_before_anything_is_followed(feeds: Feeds) -> None:
    with pytest.raises(ValidationError):
        async with feeds.follow("default", "nonsense"):
            pytest.fail("it must not get here")
    assert running() == []


async def test_follower_that_does_not_read_is_dropped_and_hurts_nobody(
    queue: CountedQueue, feeds: Feeds
) -> None:
    async with feeds.follow("default") as slow, feeds.follow("default") as quick:
        await add(queue, 1, log="paper")
        last = (await take(slow, 1))[-1]
        await take(quick, 1)
        for _ in range(10):
            await add(queue, 50, log="paper")
            assert len(await take(quick, 50)) == 50
        with pytest.raises(TooSlow, match="200"):
            await anext(slow)
        await add(queue, 1, log="paper")
        assert len(await take(quick, 1)) == 1
        async with feeds.follow("default", last.position) as again:
            versions = [entry.change.version for entry in await take(again, 501)]
        assert versions == list(range(2, 503)), "what it missed is in the queue"


async def test_follower_that_is_a_little_behind_gets_all_at_once(
    queue: CountedQueue, feeds: Feeds
) -> None:
    async with feeds.follow("default") as slow, feeds.follow("default") as quick:
        for _ in range(4):
            await add(queue, 50, log="paper")
            await take(quick, 50)
        assert [e.change.version for e in await anext(slow)] == list(range(1, 201))


async def test_close_ends_every_follower_and_leaves_no_task(
    queue: CountedQueue, feeds: Feeds
) -> None:
    ready = 0

    async def follow(tenant: str) -> int:
        nonlocal ready
        async with feeds.follow(tenant) as batches:
            ready += 1
            return len([batch async for batch in batches])

    tasks = [asyncio.create_task(follow(f"t{n % 3}")) for n in range(30)]
    await until(lambda: ready == 30, "all to follow")
    assert len(running()) == 3
    await feeds.close()
    async with asyncio.timeout(SOON):
        assert await asyncio.gather(*tasks) == [0] * 30
    assert running() == []
    async with feeds.follow("t1") as batches:
        await add(queue, 1, log="paper", tenant="t1")
        await take(batches, 1)


async def test_follower_that_is_cancelled_leaves_nothing_behind(
    queue: CountedQueue, feeds: Feeds
) -> None:
    async def follow() -> None:
        async with feeds.follow("default") as batches:
            async for _ in batches:
                pass

    for _ in range(20):
        tasks = [asyncio.create_task(follow()) for _ in range(3)]
        for _ in range(random.randrange(30)):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert running() == []
    gc.collect()  # a task that nobody awaited would say so now


async def test_error_that_no_waiting_mends_reaches_every_follower(
    queue: CountedQueue, feeds: Feeds
) -> None:
    async with feeds.follow("default") as one, feeds.follow("default") as two:
        queue.broken = QueueUnusable("damaged")
        await add(queue, 1, log="paper")
        for batches in (one, two):
            with pytest.raises(QueueUnusable):
                await take(batches, 1)
        queue.broken = None
        async with feeds.follow("default") as anew:
            await add(queue, 1, log="paper")
            assert len(await take(anew, 1)) == 1


@pytest.mark.parametrize("backend", sorted(BACKENDS))
async def test_who_comes_and_goes_sees_each_change_once_and_in_order(
    backend: str, tmp_path: Path
) -> None:
    """Followers leave after every batch or two, at any moment, while two processes write."""
    ledger = Ledger(backend, tmp_path)
    queue, writers = await ledger.open(), [await ledger.open() for _ in range(2)]
    feeds = Feeds(queue, EngineConfig(poll_seconds=0.2), keep=20)
    start, total = await queue.feed_end("default"), 2 * 40 * 3
    chance = random.Random(1)

    async def write(writer: JobQueue, number: int) -> None:
        for n in range(40):
            await add(writer, 3, log=f"log{(n + number) % 3}")
            await add(writer, 1, log="noise", tenant="other")

    async def follow() -> list[FeedEntry]:
        seen: list[FeedEntry] = []
        while len(seen) < total:
            position = seen[-1].position if seen else start
            async with feeds.follow("default", position) as batches:
                for _ in range(chance.randint(1, 3)):
                    if len(seen) < total:
                        try:
                            seen += await anext(batches)
                        except TooSlow:
                            break
                    for _ in range(chance.randrange(10)):
                        await asyncio.sleep(0)
        return seen

    async with asyncio.timeout(SOON):
        results: list[Any] = await asyncio.gather(
            *(follow() for _ in range(5)), *(write(writers[n], n) for n in range(2))
        )
    expected = await queue.feed("default", start, 1000)
    assert len(expected) == total
    assert all(seen == expected for seen in results[:5])
    await feeds.close()
    await ledger.close()


async def test_followers_wait_while_the_queue_is_away_and_miss_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "penstock")
    with Proxy(redis_url("redis")) as proxy:
        url = f"{proxy.url}?namespace={new_id()}"
        async with Penstock(url, reconnect_cap_seconds=0.2, poll_seconds=0.2) as app:
            await app.enqueue("work", log="paper")
            (first,) = await app.feed()
            async with (
                app.feeds.follow("default") as batches,
                app.feeds.follow("default", first.position) as resumed,
            ):
                proxy.leave()
                late = asyncio.create_task(_first_after(app, first.position))
                waiting = [late, *(asyncio.create_task(take(b, 1)) for b in (batches, resumed))]
                tries = "cannot read the feed of default"
                await until(lambda: caplog.text.count(tries) > 3, "several tries in vain")
                assert not any(task.done() for task in waiting)
                proxy.come_back()
                job = await until(lambda: _enqueued(app), "the queue to be back")
                for told in await asyncio.gather(*waiting):
                    assert [entry.change.job_id for entry in told] == [job]
    assert running() == []


async def _first_after(app: Penstock, position: str) -> list[FeedEntry]:
    """What one is told who begins to follow with the queue away."""
    async with app.feeds.follow("default", position) as batches:
        return await take(batches, 1)


async def _enqueued(app: Penstock) -> str | None:
    try:
        return (await app.enqueue("work", log="paper", key="once")).id
    except QueueUnavailable:
        return None


async def test_app_waits_for_the_first_change(tmp_path: Path) -> None:
    async with Penstock(f"sqlite:///{tmp_path}/jobs.db", poll_seconds=600.0) as app:
        assert await app.feed() == []
        assert await app.feed(wait=0.05) == []
        waiting = asyncio.create_task(app.feed(wait=SOON))
        await until(running, "somebody to wait")
        await app.enqueue_many("work", [{}] * 3, log="paper")
        async with asyncio.timeout(SOON):
            found = await waiting
        assert [entry.change.version for entry in found] == [1, 2, 3][: len(found)]
        assert found
        assert len(await app.feed(limit=2)) == 2
        assert len(await app.feed(after=(await app.feed())[0].position)) == 2
        assert await app.feed("another") == []
        with pytest.raises(ValidationError):
            await app.feed(after="nonsense", wait=1.0)
    assert running() == []
