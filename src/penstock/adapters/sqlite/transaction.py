"""A write transaction, for this adapter's own statements and for shared operations."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar, cast

from penstock import runtime
from penstock.adapters.sql.dialect import Row, Sql, for_sqlite, include, load, names_of
from penstock.ports.queue import Topic

if TYPE_CHECKING:
    from penstock.adapters.sqlite.direct_handover import WaitingClaim

T = TypeVar("T")


@cache
def _statements() -> dict[str, str]:
    texts = load("sqlite", files("penstock.adapters.sqlite") / "sql")
    return {name: for_sqlite(text) for name, text in texts.items()}


@lru_cache(2000)
def sql(name_or_text: str) -> str:
    """A statement by its name, or a text in the words of shared statements."""
    if name_or_text.isidentifier():
        return _statements()[name_or_text]
    return for_sqlite(include(name_or_text, _statements()))


@lru_cache(2000)
def _named(name_or_text: str) -> tuple[str, tuple[str, ...]]:
    """A statement, and the names of its values."""
    text = sql(name_or_text)
    return text, names_of(text)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write, all or nothing, having locked the file."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class Transaction:
    """A write transaction under way. `now` is the queue's clock, read after the lock was had."""

    __slots__ = ("connection", "new", "now", "shared", "standing", "topics", "woken")

    def __init__(self, connection: sqlite3.Connection, standing: dict[str, WaitingClaim]) -> None:
        self.connection = connection
        self.standing = standing
        """Who waits for jobs in this process, by the id of the membership."""
        self.now = runtime.now()
        self.shared = SqliteSql(connection, self.now, self)
        """Itself, as shared operations take it."""
        self.new: list[str] = []
        """Ids of jobs stored in it that may start at once."""
        self.topics: set[Topic] = set()
        self.woken: list[tuple[str, str]] = []
        """Lines (lane, kind) that a freed slot is for; see `lanes.announce`."""

    def execute(self, statement: str, parameters: Any = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement, parameters)

    def wake(self, topic: Topic) -> None:
        """Send this wake-up once the transaction is committed."""
        self.topics.add(topic)


class SqliteSql:
    """See `penstock.adapters.sql.dialect.Sql`. Nothing in it waits. Without a transaction it only
    reads."""

    __slots__ = ("connection", "now", "tx")

    def __init__(
        self, connection: sqlite3.Connection, now: float, tx: Transaction | None = None
    ) -> None:
        self.connection = connection
        self.tx = tx
        self.now = now

    async def execute(self, statement: str, /, **values: Any) -> int:
        return self._run(statement, values).rowcount

    async def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]], /) -> None:
        text, names = _named(statement)
        self.connection.executemany(text, [self._bound(names, row) for row in rows])

    async def fetch(self, statement: str, /, **values: Any) -> list[Row]:
        return self._run(statement, values).fetchall()

    async def one(self, statement: str, /, **values: Any) -> Row:
        # All rows are read: what is left of a statement would keep the transaction from its end.
        rows = self._run(statement, values).fetchall()
        return rows[0] if rows else None

    def wake(self, topic: Topic) -> None:
        assert self.tx is not None
        self.tx.wake(topic)

    def _run(self, statement: str, values: Mapping[str, Any]) -> sqlite3.Cursor:
        text, names = _named(statement)
        cursor = (self.tx or self.connection).execute(text, self._bound(names, values))
        cursor.row_factory = sqlite3.Row
        return cursor

    def _bound(self, names: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.now if name == "clock" else _stored(values[name]) for name in names}


def own(tx: Sql) -> Transaction:
    """The transaction that a shared operation was given."""
    assert isinstance(tx, SqliteSql)
    assert tx.tx is not None
    return tx.tx


def _stored(value: Any) -> Any:
    """A value as SQLite takes it: a list as JSON."""
    return json.dumps(value) if isinstance(value, list | tuple) else value


def run(operation: Awaitable[T]) -> T:
    """Run a shared operation to its end."""
    coroutine = cast(Coroutine[Any, Any, T], operation)
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise AssertionError("an operation on SQLite cannot wait for anything else")
