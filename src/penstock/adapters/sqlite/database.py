"""Two connections to one SQLite file, each owned by its own thread.

All writes of a process go through one thread that commits whatever has gathered meanwhile in
one transaction: under load, many callers share one fsync.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from penstock import runtime
from penstock.adapters.private_files import open_private
from penstock.adapters.sqlite.direct_handover import WaitingClaim, hand_over
from penstock.adapters.sqlite.transaction import Transaction, transaction
from penstock.errors import PenstockError, QueueError, QueueUnavailable, QueueUnusable
from penstock.ports.queue import Topic
from penstock.runtime.threads import Batches

log = logging.getLogger("penstock.sqlite")
T = TypeVar("T")

OLDEST_SQLITE = (3, 38, 0)
BUSY_SECONDS = 5.0
DAMAGED = "surrogateescape"
"""How bytes that are no text can be told when a row is read for work: as lone surrogates."""
_making = threading.Lock()
MAX_TOGETHER = 64
"""Operations that share one transaction at most, so that other processes get their turn."""
STEPS = 100_000
"""Steps of SQLite's virtual machine, some 5 ms, between two looks whether anybody still waits. Each
look needs the interpreter, for which a thread may wait as long."""


def connect(path: Path, synchronous: str) -> sqlite3.Connection:
    _make_private(path)
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _use_wal(connection)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA cache_size = -32768")
        connection.execute("PRAGMA journal_size_limit = 67108864")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _make_private(path: Path) -> None:
    """Make the file before SQLite does, which would leave its mode to the umask; what SQLite puts
    beside it gets the mode of the file."""
    if path.exists():
        return
    # Closing a file ends all locks that the process has on it, those of SQLite too: so it is only
    # ever opened where it was not there, and one thread at a time. Where that fails somebody else
    # was faster, or it cannot be made and SQLite is about to say so.
    with _making, suppress(OSError):
        os.close(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def _use_wal(connection: sqlite3.Connection) -> None:
    # The switch does not wait for other connections, busy time or not.
    end = runtime.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or runtime.monotonic() > end:
                raise
            runtime.sleep(0.01)


def explain(error: Exception, path: Path) -> QueueError:
    """The error of ours that says what a SQLite error means and what to do about it."""
    name = getattr(error, "sqlite_errorname", "") or ""
    text = "text that is not UTF-8" if str(error).startswith(UNDECODABLE) else str(error)
    if name.startswith("SQLITE_FULL"):
        return QueueUnavailable(f"disk full: {path} cannot grow; free some space ({text})")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        from penstock.adapters.sqlite.lock_holder import who_locked

        return QueueUnavailable(f"{path} was locked by {who_locked(path, BUSY_SECONDS)} ({text})")
    if name.startswith("SQLITE_READONLY") or not _writable(path):
        return QueueUnavailable(f"{path} is read-only; make it and its folder writable ({text})")
    if name.startswith("SQLITE_CANTOPEN"):
        return QueueUnavailable(f"cannot open {path}: does its folder exist? ({text})")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return QueueUnusable(
            f"{path} is damaged or not a SQLite file ({text}); restore a backup, or move the "
            "file away to start an empty queue"
        )
    return QueueUnavailable(f"{path}: {text}")


UNDECODABLE = "Could not decode to UTF-8"
"""How the errors begin that tell of text that is none. They go on with the text itself."""


@contextmanager
def leniently(connection: sqlite3.Connection, errors: str) -> Iterator[None]:
    """Read text that is not UTF-8, too; see `bytes.decode` for `errors`. It is slower."""
    connection.text_factory = lambda text: text.decode("utf-8", errors)
    try:
        yield
    finally:
        connection.text_factory = str


def _is_undecodable(error: sqlite3.Error) -> bool:
    return str(error).startswith(UNDECODABLE)


def _writable(path: Path) -> bool:
    """Whether the file, what lies beside it and its folder take writes; SQLite reports a
    read-only one in several ways."""
    try:
        if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            return False
    except OSError:
        return True
    places = [path.parent, *(path.with_name(path.name + end) for end in ("", "-wal", "-shm"))]
    return all(os.access(place, os.W_OK) for place in places if place.exists())


class _Order(NamedTuple):
    operation: Callable[[Any], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    soft: bool


class _Thread:
    """A thread that owns a connection and runs what it is handed, in order."""

    together = MAX_TOGETHER
    """How many orders are answered at once."""

    def __init__(self, name: str, open_connection: Callable[[], sqlite3.Connection], path: Path):
        self._open_connection = open_connection
        self._connection: sqlite3.Connection | None = None
        self._path = path
        self._closed = False
        self._batches: Batches[_Order] = runtime.start_batches(
            name, self._do, self.drop_connection, self.together
        )

    def submit(self, operation: Callable[[Any], T], *, soft: bool = False) -> asyncio.Future[T]:
        if self._closed:
            raise QueueError("the queue is closed; use it inside `async with app:`")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._batches.put(_Order(operation, future, loop, soft))
        return future

    @property
    def waiting(self) -> int:
        """How much it was handed and has not begun."""
        return self._batches.waiting

    def close(self) -> None:
        """Finish what was handed in, then end the thread."""
        if not self._closed:
            self._closed = True
            self._batches.close()

    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open_connection()
        return self._connection

    def drop_connection(self) -> None:
        """Start afresh after an error that may have left the connection unusable."""
        if self._connection is not None:
            try:
                self._connection.close()
            except sqlite3.Error as error:
                log.warning("closing %s: %s", self._path, error)
            self._connection = None

    def _do(self, batch: list[_Order]) -> None:
        soft = all(order.soft for order in batch)
        outcomes = self._perform(batch, soft)
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for order, outcome in zip(batch, outcomes, strict=True):
            by_loop.setdefault(order.loop, []).append((order.future, outcome))
        for loop, answers in by_loop.items():
            try:
                loop.call_soon_threadsafe(_answer, answers)
            except RuntimeError:
                log.debug("the event loop closed before an answer of %s arrived", self._path)

    def _perform(self, orders: Sequence[_Order], soft: bool) -> list[Any]:
        raise NotImplementedError


class OperationFailure:
    """An operation's exception on its way back to the caller."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def _answer(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, outcome in answers:
        if future.done():
            continue
        if type(outcome) is OperationFailure:
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome)


class WriterThread(_Thread):
    """Runs operations in write transactions. `committed` hears of the topics to wake.

    An operation that refuses (raises a PenstockError) must do so before it writes. A `soft` one
    (a claim) may be forgotten by a power loss, as long as nothing that follows it is: then its
    jobs are queued, as they were. It needs no fsync of its own; the next commit's covers it.
    """

    def drop_connection(self) -> None:
        super().drop_connection()
        self._soft = False

    def __init__(
        self,
        path: Path,
        open_connection: Callable[[], sqlite3.Connection],
        committed: Callable[[set[Topic]], None],
        synchronous: str,
    ) -> None:
        self._committed = committed
        self._synchronous = synchronous
        self._soft = False
        self._standing: dict[str, WaitingClaim] = {}
        super().__init__("penstock-write", open_connection, path)

    def _perform(self, orders: Sequence[_Order], soft: bool) -> list[Any]:
        try:
            try:
                return self._commit(orders, soft)
            except sqlite3.OperationalError as error:
                if not _is_undecodable(error):
                    raise
            with leniently(self.connection(), DAMAGED):
                return self._commit(orders, soft)
        except sqlite3.OperationalError as error:
            self.drop_connection()
            return [OperationFailure(explain(error, self._path))] * len(orders)
        except sqlite3.DatabaseError as error:
            self.drop_connection()
            if len(orders) == 1 or not isinstance(error, sqlite3.IntegrityError):
                return [OperationFailure(explain(error, self._path))] * len(orders)
        except Exception as error:
            if len(orders) == 1:
                return [OperationFailure(error)]
        # One of several is at fault; the rest must not pay for it.
        return [self._perform([order], soft)[0] for order in orders]

    def _commit(self, orders: Sequence[_Order], soft: bool) -> list[Any]:
        connection = self.connection()
        if soft != self._soft:
            connection.execute(f"PRAGMA synchronous = {'NORMAL' if soft else self._synchronous}")
            self._soft = soft
        with transaction(connection):
            tx = Transaction(connection, self._standing)
            outcomes = [_refusable(order.operation, tx) for order in orders]
            handed = hand_over(tx) if tx.new else []
        for standing, leases in handed:
            standing.give(leases)
        if tx.topics:
            self._committed(tx.topics)
        return outcomes


def _refusable(operation: Callable[[Transaction], Any], tx: Transaction) -> Any:
    try:
        return operation(tx)
    except PenstockError as refusal:
        return OperationFailure(refusal)


class ReaderThread(_Thread):
    """Runs operations on a connection that cannot write, each on its own snapshot. One that nobody
    waits for any more is not begun, and is interrupted where it was."""

    def __init__(
        self,
        path: Path,
        open_connection: Callable[[], sqlite3.Connection],
        name: str = "penstock-read",
        together: int = MAX_TOGETHER,
    ) -> None:
        self.together = together
        self._uninterrupted = False
        super().__init__(name, open_connection, path)

    @contextmanager
    def uninterrupted(self) -> Iterator[None]:
        """In an operation: go on although nobody waits, for what later ones need too."""
        self._uninterrupted = True
        try:
            yield
        finally:
            self._uninterrupted = False

    async def stop(self) -> None:
        await runtime.in_thread(self.close)

    def _perform(self, orders: Sequence[_Order], soft: bool) -> list[Any]:
        return [None if order.future.cancelled() else self._read(order) for order in orders]

    def _read(self, order: _Order) -> Any:
        try:
            connection = self.connection()
            try:
                return self._look(connection, order)
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
                    return None  # nobody waits for it
                if not _is_undecodable(error):
                    raise
            with leniently(connection, "replace"):
                return self._look(connection, order)
        except sqlite3.Error as error:
            self.drop_connection()
            return OperationFailure(explain(error, self._path))
        except Exception as error:
            return OperationFailure(error)

    def _look(self, connection: sqlite3.Connection, order: _Order) -> Any:
        connection.execute("BEGIN")
        # Not `interrupt`, called by whoever leaves: that may hit the operation that comes next.
        connection.set_progress_handler(
            lambda: order.future.cancelled() and not self._uninterrupted, STEPS
        )
        try:
            return order.operation(connection)
        finally:
            connection.set_progress_handler(None, 0)
            connection.execute("COMMIT")
