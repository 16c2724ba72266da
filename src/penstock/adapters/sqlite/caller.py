"""Stores jobs in a caller's transaction on the queue's file, with the statements of `enqueue`."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from penstock import runtime
from penstock.adapters.callers import Driver, async_driver, driver, is_async
from penstock.adapters.sqlite import database
from penstock.adapters.sqlite.commit_watch import CommitWatch
from penstock.adapters.sqlite.enqueue import enqueue
from penstock.adapters.sqlite.fairness import Weights
from penstock.adapters.sqlite.transaction import Transaction
from penstock.errors import ConfigError
from penstock.model.job import Job
from penstock.model.lane import LaneConfig
from penstock.ports.queue import NewJobs, Topic
from penstock.runtime.calling_thread import calling_thread, finished

if TYPE_CHECKING:
    from penstock.adapters.sqlite.queue import SqliteQueue

T = TypeVar("T")
PAUSE = 0.01
"""Between two attempts at the file's lock. SQLite itself would wait for it in the event loop."""
_SAVEPOINT = "penstock_enqueue"


class StoredForCaller(NamedTuple):
    """The jobs of a batch, the id of one that is new, if any is, and whom to tell once it is
    committed."""

    jobs: list[Job]
    new: str | None
    topics: set[Topic]


class CallersJobs:
    """Stores jobs for those who bring a transaction of their own, and tells of their commits."""

    def __init__(self, queue: SqliteQueue) -> None:
        self._queue = queue
        self._commits = CommitWatch(queue.read, queue.send)

    async def enqueue(self, conn: Any, batch: NewJobs) -> list[Job]:
        queue = self._queue
        await queue.read(lambda connection: None)  # QueueError unless it is open
        stored = await store_in(queue.path, conn, batch, queue.weights, queue.lane_config)
        if stored.new is not None:
            self._commits.expect(stored.new, stored.topics)
        return stored.jobs

    async def close(self) -> None:
        await self._commits.close()


class _Run(Protocol):
    """Does something with a connection, where that may be used."""

    def __call__(self, work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]: ...


async def store_in(
    path: Path,
    conn: Any,
    batch: NewJobs,
    weights: Weights,
    lane_config: Callable[[str], LaneConfig],
) -> StoredForCaller:
    """Store the batch in the transaction of `conn`, or in one that is begun on it where Python's
    sqlite3 would begin one by itself. A refusal leaves it as it was, also without a transaction:
    nobody would end that, and others could not write."""
    run = await _runner(conn)
    begun = False

    def store(connection: sqlite3.Connection) -> StoredForCaller:
        with _as_it_comes(connection), _savepoint(connection):
            tx = Transaction(connection, {})
            (last,) = tx.execute("SELECT coalesce(max(seq), 0) FROM jobs").fetchone()
            jobs = enqueue(tx, batch, weights, lane_config)
            if tx.new:
                tx.wake(Topic.READY)
            new = tx.execute("SELECT id FROM jobs WHERE seq > ? LIMIT 1", (last,)).fetchone()
            return StoredForCaller(jobs, new and new[0], tx.topics)

    def lock(connection: sqlite3.Connection) -> sqlite3.OperationalError | None:
        nonlocal begun
        without = not connection.in_transaction
        busy = _lock(connection)
        begun = without and busy is None
        return busy

    try:
        await run(lambda connection: _check(connection, path))
        end = runtime.monotonic() + database.BUSY_SECONDS
        while (busy := await run(lock)) is not None:
            if busy.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT":
                raise ConfigError(
                    f"the transaction of conn= has read {path} before somebody else wrote to it, "
                    "and SQLite lets it write no more; begin it with BEGIN IMMEDIATE"
                )
            if runtime.monotonic() > end:
                raise busy
            await asyncio.sleep(PAUSE)
        return await run(store)
    except BaseException as error:
        if begun:
            await run(lambda connection: connection.rollback())
        if not isinstance(error, sqlite3.Error):
            raise
        if isinstance(error, sqlite3.ProgrammingError):  # closed, or of another thread
            raise ConfigError(f"conn= cannot be used here: {error}") from error
        raise database.explain(error, path) from error


async def _runner(conn: Any) -> _Run:
    if is_async(conn):
        found = await async_driver(conn)
        if found.name != "aiosqlite":
            raise _other(found)
        return _of_aiosqlite(found.conn)
    if (thread := calling_thread()) is not None:
        # Found there, too: Django's is another one in each thread.
        return lambda work: thread.call(lambda: work(_sqlite3(conn)))
    connection = _sqlite3(conn)

    async def here(work: Callable[[sqlite3.Connection], T]) -> T:
        # The lock is had, or asked for without waiting: that takes no longer than a statement.
        return work(connection)

    return here


def _of_aiosqlite(conn: Any) -> _Run:
    """In the connection's own thread, before whatever it is asked next."""
    try:
        connection, execute = conn._conn, conn._execute
    except AttributeError as error:  # its public methods take SQL alone
        raise ConfigError(f"this version of aiosqlite is not known: {error}") from error
    except ValueError as error:
        raise ConfigError(f"conn= cannot be used: {error}") from error

    async def there(work: Callable[[sqlite3.Connection], T]) -> T:
        return await finished(asyncio.ensure_future(execute(work, connection)))

    return there


def _sqlite3(conn: Any) -> sqlite3.Connection:
    found = driver(conn)
    if not isinstance(found.conn, sqlite3.Connection):
        raise _other(found)
    return found.conn


def _other(found: Driver) -> ConfigError:
    return ConfigError(
        f"conn= is used over {found.name}, and the queue is a SQLite file: enqueue with a "
        "connection to that file"
    )


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """ConfigError unless it is a connection to this file that can have a transaction."""
    with _as_it_comes(connection):
        named = {name: file for _, name, file in connection.execute("PRAGMA database_list")}
    file = Path(named["main"]) if named["main"] else None
    if file is None or not file.exists() or not file.samefile(path):
        raise ConfigError(
            f"conn= is a connection to {file or 'no file'}, and the queue is {path}: both have to "
            "be the same file"
        )
    if not connection.in_transaction and connection.isolation_level is None:
        raise ConfigError(
            "conn= needs a transaction open on it: this connection commits each statement by "
            "itself; execute BEGIN IMMEDIATE first"
        )


def _lock(connection: sqlite3.Connection) -> sqlite3.OperationalError | None:
    """Have the file's lock, for as long as the transaction lasts; why not, if others have it."""
    with _as_it_comes(connection):
        ((patience,),) = connection.execute("PRAGMA busy_timeout").fetchall()
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            if connection.in_transaction:
                connection.execute("UPDATE jobs SET key = key WHERE false")
            else:
                connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname.startswith("SQLITE_BUSY"):
                return error
            raise
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(patience)}")
    return None


@contextmanager
def _as_it_comes(connection: sqlite3.Connection) -> Iterator[None]:
    """Have rows and texts as the queue's statements expect them, whatever the caller prefers."""
    before = connection.row_factory, connection.text_factory
    connection.row_factory, connection.text_factory = None, str
    try:
        yield
    finally:
        connection.row_factory, connection.text_factory = before


@contextmanager
def _savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute(f"SAVEPOINT {_SAVEPOINT}")
    try:
        yield
    except BaseException:
        # Without a transaction there is nothing left to go back to, as when the disk is full.
        if connection.in_transaction:
            connection.execute(f"ROLLBACK TO {_SAVEPOINT}")
            connection.execute(f"RELEASE {_SAVEPOINT}")
        raise
    connection.execute(f"RELEASE {_SAVEPOINT}")
