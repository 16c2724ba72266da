"""A SQLite file shared by several processes: its threads and its wake-ups."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from penstock import runtime
from penstock.adapters.listener import Listener
from penstock.adapters.sqlite.database import (
    OLDEST_SQLITE,
    ReaderThread,
    WriterThread,
    connect,
    explain,
)
from penstock.adapters.sqlite.schema import migrate, refuse_foreign
from penstock.adapters.sqlite.transaction import Transaction
from penstock.adapters.sqlite.wakeups import Wakeups
from penstock.errors import ConfigError, QueueError, QueueUnavailable, QueueUnusable
from penstock.ports.queue import Topic

T = TypeVar("T")
SCHEME = "sqlite:///"


class SqliteFile:
    """`durable`: every commit reaches the disk (survives a power loss). Without it commits
    survive the death of processes only."""

    def __init__(self, url: str, *, durable: bool = True) -> None:
        if not url.startswith(SCHEME) or not url[len(SCHEME) :]:
            raise ConfigError(f"{url!r} names no file; write sqlite:///jobs.db")
        self.url = url
        self.path = Path(url[len(SCHEME) :]).expanduser()
        self.folder = self.path.with_name(self.path.name + "-run")
        self._synchronous = "FULL" if durable else "NORMAL"
        self._writer: WriterThread | None = None
        self._reader: ReaderThread | None = None
        self._wakeups = Wakeups(self.folder, self._data_version)

    async def open(self) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            oldest = ".".join(map(str, OLDEST_SQLITE))
            raise QueueUnusable(f"SQLite {sqlite3.sqlite_version} is too old; {oldest} is needed")
        try:
            await runtime.in_thread(self._prepare)
            self._wakeups.open()
        except OSError as error:
            raise QueueUnavailable(f"cannot use {self.folder}: {error.strerror}") from error
        self._writer = WriterThread(self.path, self.connect, self._wakeups.send, self._synchronous)
        self._reader = ReaderThread(self.path, self._connect_reader)

    def _prepare(self) -> None:
        try:
            refuse_foreign(self.path)
            connection = self.connect()
            try:
                migrate(connection, self.path)
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def connect(self) -> sqlite3.Connection:
        return connect(self.path, self._synchronous)

    def _connect_reader(self) -> sqlite3.Connection:
        connection = self.connect()
        connection.execute("PRAGMA query_only = 1")
        return connection

    async def close(self) -> None:
        if self._writer is not None and self._reader is not None:
            writer, reader = self._writer, self._reader
            self._writer = self._reader = None
            await runtime.in_thread(writer.close)
            await runtime.in_thread(reader.close)
            await self._wakeups.close()

    @property
    def waiting(self) -> int:
        """Callers whose turn has not come."""
        return sum(one.waiting for one in (self._writer, self._reader) if one is not None)

    def another_reader(self, name: str) -> ReaderThread:
        """A thread that reads beside the file's own, for what may take long: each is answered by
        itself."""
        return ReaderThread(self.path, self._connect_reader, name, together=1)

    async def write(self, operation: Callable[[Transaction], T], *, soft: bool = False) -> T:
        """Run `operation` in a write transaction; see `WriterThread` for `soft`."""
        return await self.submit(operation, soft=soft)

    def submit(
        self, operation: Callable[[Transaction], T], *, soft: bool = False
    ) -> asyncio.Future[T]:
        """The same, begun at once."""
        if self._writer is None:
            raise QueueError("the queue is not open; use it inside `async with app:`")
        return self._writer.submit(operation, soft=soft)

    def send(self, topics: set[Topic]) -> None:
        """Wake every process, this one included."""
        self._wakeups.send(topics)

    async def read(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Run `operation` on a snapshot."""
        if self._reader is None:
            raise QueueError("the queue is not open; use it inside `async with app:`")
        return await self._reader.submit(operation)

    async def _data_version(self) -> int:
        # Outside a transaction: inside one the snapshot, and with it the version, stands still.
        def read(connection: sqlite3.Connection) -> int:
            connection.execute("COMMIT")
            version: int = connection.execute("PRAGMA data_version").fetchone()[0]
            connection.execute("BEGIN")
            return version

        return await self.read(read)

    def listen(self, topic: Topic) -> Listener:
        return self._wakeups.listen(topic)
