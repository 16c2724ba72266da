"""Follows the feeds of tenants: one read of the queue per wake-up serves all followers.

A reader for each tenant that is followed keeps the newest entries. A follower is a place among
them, so it costs nothing while it waits, and one that does not read holds up nobody: what it has
not read is forgotten, and it is told so.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from typing import Self

from penstock.aio import end_tasks
from penstock.engine.retry import reconnect_delay
from penstock.errors import QueueUnavailable, TooSlow
from penstock.model.settings import Settings
from penstock.ports.queue import FeedEntry, JobQueue, Topic

log = logging.getLogger("penstock")

PAGE = 500
PAUSE_SECONDS = 0.002
"""Between two looks, so that a busy queue is not read without end."""


class Feeds:
    """The feeds followed in this process. `keep`: how many entries of each feed are kept, and so
    how far a follower may fall behind."""

    def __init__(self, queue: JobQueue, settings: Settings, *, keep: int = 2000) -> None:
        self._queue = queue
        self._settings = settings
        self._keep = keep
        self._readers: dict[str, _Reader] = {}

    @asynccontextmanager
    async def follow(self, tenant: str, after: str | None = None) -> AsyncIterator[Follower]:
        """The tenant's changes after a position, or from now on, in batches, each once and in
        order: `async with feeds.follow(tenant) as batches: async for batch in batches`.

        It ends when `close` is called, and raises TooSlow when it has fallen too far behind. While
        the queue cannot be reached it waits, also here. ValidationError if `after` is no
        position of this queue.
        """
        reader = self._readers.get(tenant)
        if reader is None or reader.over:
            reader = self._readers[tenant] = _Reader(
                self._queue, self._settings, tenant, self._keep
            )
        reader.followers += 1
        try:
            follower = Follower(reader)
            await follower.start(after)
            yield follower
        finally:
            reader.followers -= 1
            if reader.followers == 0:
                await self._end(reader)

    async def close(self) -> None:
        """End every reader; whoever follows is told that it is over."""
        for reader in list(self._readers.values()):
            await self._end(reader)

    async def _end(self, reader: _Reader) -> None:
        if self._readers.get(reader.tenant) is reader:  # or whoever comes next would share its end
            del self._readers[reader.tenant]
        await reader.end()


class Follower:
    """One who follows a feed: an iterator over batches of entries."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader
        self._place: int | None = None
        """How many of the reader's entries it has had; None while it reads from the queue."""
        self._position = ""
        self._first: list[FeedEntry] = []

    async def start(self, after: str | None) -> None:
        await self._reader.look(1)
        if after is None:
            self._place = self._reader.count
        else:
            self._position = after
            self._first = await self._catch_up()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[FeedEntry]:
        batch, self._first = self._first, []
        while not batch and not self._reader.over:
            batch = await self._catch_up() if self._place is None else await self._next()
        if not batch:
            self._reader.raise_failure()
            raise StopAsyncIteration
        return batch

    async def _next(self) -> list[FeedEntry]:
        assert self._place is not None
        batch = self._reader.since(self._place)
        self._place += len(batch)
        if not batch:
            await self._reader.news.wait()
        return batch

    async def _catch_up(self) -> list[FeedEntry]:
        """The next page from the queue, until the reader can take over. Positions cannot be
        compared, only looked up. Where this one is not among the reader's but the queue has nothing
        after it, the reader has nothing after it either, so far; and it has looked since the
        position was given out, so all that it reads from then on is after it."""
        reader = self._reader
        await reader.look(reader.looks_begun + 1)
        self._place = reader.place_of(self._position)
        if self._place is not None or reader.over:
            return []
        count = reader.count
        page = await reader.page(self._position)
        if page:
            self._position = page[-1].position
        else:
            self._place = count
        return page


class _Reader:
    """Reads one tenant's feed from its end on, and keeps the newest entries."""

    def __init__(self, queue: JobQueue, settings: Settings, tenant: str, keep: int) -> None:
        self._queue = queue
        self._settings = settings
        self.tenant = tenant
        self.followers = 0
        self.count = 0
        """How many entries it has read."""
        self.looks_begun = 0
        self._looks_ended = 0
        self._kept: deque[FeedEntry] = deque(maxlen=keep)
        self._position = ""
        self._places: dict[str, int] = {}
        """How many entries there are up to a position: of those kept, and before the first."""
        self.news = asyncio.Event()
        """Set, and replaced, when there is an entry, when a look has ended, and at the end."""
        self.over = False
        self._listener = queue.listen(Topic.FINISHED)
        self._task = asyncio.create_task(self._run(), name="penstock-feed")

    async def end(self) -> None:
        await end_tasks([self._task])

    def raise_failure(self) -> None:
        """What ended it, if nobody asked for that."""
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def look(self, number: int) -> None:
        """Wait until so many looks have ended, having asked for one, or until it is over."""
        if self._looks_ended < number:
            self._listener.ring()
        while self._looks_ended < number and not self.over:
            await self.news.wait()

    def since(self, place: int) -> list[FeedEntry]:
        """The entries after the first `place`; TooSlow if some of them are not kept any more."""
        first = self.count - len(self._kept)
        if place < first:
            raise TooSlow(self._kept.maxlen or 0)
        return list(islice(self._kept, place - first, None))

    def place_of(self, position: str) -> int | None:
        return self._places.get(position)

    async def page(self, after: str) -> list[FeedEntry]:
        """Entries from the queue, for one who is not as far as this reader."""
        failures = 0
        while not self.over:
            try:
                return await self._queue.feed(self.tenant, after, PAGE)
            except QueueUnavailable as error:
                failures += 1
                await self._wait_for_the_queue(failures, error)
        return []

    async def _run(self) -> None:
        failures = 0
        try:
            while True:
                self.looks_begun += 1
                try:
                    await self._look()
                except QueueUnavailable as error:
                    failures += 1
                    await self._wait_for_the_queue(failures, error)
                    continue
                failures = 0
                self._looks_ended = self.looks_begun
                self._announce()
                await asyncio.sleep(PAUSE_SECONDS)
                await self._listener.wait(self._settings.poll_seconds)
        finally:
            self.over = True
            self._listener.close()
            self._announce()

    async def _look(self) -> None:
        """Read all there is."""
        if not self._position:
            self._position = await self._queue.feed_end(self.tenant)
            self._places[self._position] = 0
            return
        page = await self._queue.feed(self.tenant, self._position, PAGE)
        while page:
            for entry in page:
                self._keep(entry)
            self._announce()
            more = len(page) == PAGE
            page = await self._queue.feed(self.tenant, self._position, PAGE) if more else []

    def _keep(self, entry: FeedEntry) -> None:
        if len(self._kept) == self._kept.maxlen:
            del self._places[next(iter(self._places))]  # the oldest
        self._kept.append(entry)
        self.count += 1
        self._position = entry.position
        self._places[entry.position] = self.count

    def _announce(self) -> None:
        news, self.news = self.news, asyncio.Event()
        news.set()

    async def _wait_for_the_queue(self, failures: int, error: QueueUnavailable) -> None:
        log.debug("cannot read the feed of %s: %s", self.tenant, error)
        await asyncio.sleep(reconnect_delay(failures, self._settings))
