"""Wake-ups between processes that share a SQLite file.

One small file per topic lies beside the database. A process writes a byte to it after it has
committed; every process watches it with inotify. So a wake-up never comes before the change
can be read, idle processes do nothing at all, and no reader polls. (Watching the WAL instead
was tried: its writes are seen before the commit is, so every event had to be followed by
polling.) Where inotify is missing, `PRAGMA data_version` is polled, more slowly while idle.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from penstock import runtime
from penstock.adapters.listener import Listeners
from penstock.adapters.private_files import open_private, private_folder
from penstock.aio import end_tasks
from penstock.ports.queue import Topic
from penstock.runtime.inotify import MODIFIED, OVERFLOW, Inotify

log = logging.getLogger("penstock.sqlite")

_POLL_FIRST, _POLL_LAST = 0.1, 1.0


class Wakeups(Listeners):
    """Sends and hears wake-ups. Belongs to the event loop it was opened in."""

    def __init__(self, folder: Path, data_version: Callable[[], Awaitable[int]]) -> None:
        super().__init__()
        self._folder = folder
        self._data_version = data_version
        self._bells: dict[Topic, int] = {}
        self._inotify: Inotify | None = None
        self._watches: dict[int, Topic] = {}
        self._poller: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        private_folder(self._folder)
        for topic in Topic:
            path = self._folder / f"{topic.value}.bell"
            self._bells[topic] = open_private(path, os.O_RDWR | os.O_CREAT)
            os.pwrite(self._bells[topic], b".", 0)  # allocate now: later writes need no space
        self._inotify = runtime.open_inotify()
        if self._inotify is None:
            self._poller = asyncio.create_task(self._poll(), name="penstock-wakeup-poll")
            return
        for topic in Topic:
            path = self._folder / f"{topic.value}.bell"
            self._watches[self._inotify.watch(path, MODIFIED)] = topic
        self._loop.add_reader(self._inotify, self._read_events)

    async def close(self) -> None:
        if self._poller is not None:
            await end_tasks([self._poller])
        if self._inotify is not None:
            self._loop.remove_reader(self._inotify)
            self._inotify.close()
            self._inotify = None
        for bell in self._bells.values():
            os.close(bell)
        self._bells.clear()

    def send(self, topics: set[Topic]) -> None:
        """Wake every process, this one included. Called from the writing thread."""
        heard = self._inotify is not None
        try:
            for topic in topics:
                os.pwrite(self._bells[topic], b".", 0)
        except OSError as error:
            # What was committed stays committed; other processes find it when they next look.
            log.warning("cannot wake other processes: %s", error)
            heard = False
        if not heard:
            try:
                self._loop.call_soon_threadsafe(self.ring, topics)
            except RuntimeError:
                log.debug("the event loop closed before a wake-up arrived")

    def _read_events(self) -> None:
        assert self._inotify is not None
        watches = {change.watch for change in self._inotify.read()}
        anything = OVERFLOW in watches
        self.ring(set(Topic) if anything else {self._watches[watch] for watch in watches})

    async def _poll(self) -> None:
        seen, pause = -1, _POLL_FIRST
        while True:
            try:
                version = await self._data_version()
            except Exception as error:
                log.debug("cannot poll for changes: %s", error)
                version = seen
            if version != seen:
                seen, pause = version, _POLL_FIRST
                self.ring(Topic)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _POLL_LAST)
