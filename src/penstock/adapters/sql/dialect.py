"""Named statements, and the protocols by which shared operations run them on either database.

A `.sql` file holds the statements of one topic. `-- name: x` begins one; `-- name: x [sqlite]` and
`-- name: x [postgres]` are two forms of it, where the databases differ. `{y}` stands for the text
called y, such as a list of columns; `:value` for a value, given by name.

Shared statements are written for PostgreSQL. SQLite reads them without the namespace, casts and row
locks (whoever writes has locked the whole file), tests membership of a list in JSON, and takes the
queue's clock as a value: see `for_sqlite`.

A shared operation is `async def f(tx: Sql, ...)`. PostgreSQL awaits it; SQLite, which never waits,
runs it to its end on the thread that owns the connection.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Protocol, TypeVar

from penstock.errors import QueueUnavailable, StoreUnavailable
from penstock.ports.queue import Topic

T = TypeVar("T")
Row = Any
"""A row, by position or by the name of a column."""


class Sql(Protocol):
    """A transaction, or a snapshot to read from. A statement is a name or, where it has to be put
    together, a text. A list is a value like any other."""

    now: float
    """The queue's clock when it began."""

    async def execute(self, statement: str, /, **values: Any) -> int:
        """How many rows it changed, where it begins with INSERT, UPDATE or DELETE."""
        ...

    async def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]], /) -> None:
        """Run it once for each of `rows`."""
        ...

    async def fetch(self, statement: str, /, **values: Any) -> list[Row]: ...

    def wake(self, topic: Topic) -> None:
        """Send this wake-up when the transaction is committed."""
        ...

    async def one(self, statement: str, /, **values: Any) -> Row:
        """The first row; None: there is none."""
        ...


class SqlDatabase(Protocol):
    """Where shared operations run."""

    async def fetch(self, statement: str, /, **values: Any) -> list[Row]:
        """The rows of one statement that only reads."""
        ...

    async def read(self, operation: Callable[[Sql], Awaitable[T]], *, long: bool = False) -> T:
        """Run what only reads on one snapshot. `long`: each of its statements may take long."""
        ...

    async def write(
        self, operation: Callable[[Sql], Awaitable[T]], *, soft: bool = False, long: bool = False
    ) -> T:
        """Run it in a transaction, perhaps more than once. A `soft` one may be forgotten by a crash
        of the machine; `long` is as for `read`."""
        ...


class StoreDatabase:
    """A database whose callers are told StoreUnavailable while it cannot be reached."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def fetch(self, statement: str, /, **values: Any) -> list[Row]:
        with reaching_store():
            return await self._database.fetch(statement, **values)

    async def read(self, operation: Callable[[Sql], Awaitable[T]], *, long: bool = False) -> T:
        with reaching_store():
            return await self._database.read(operation, long=long)

    async def write(self, operation: Callable[[Sql], Awaitable[T]], *, soft: bool = False) -> T:
        with reaching_store():
            return await self._database.write(operation, soft=soft)


_NAME = re.compile(r"^-- name: (\w+)(?: \[(\w+)\])?\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_INCLUDED = re.compile(r"\{(\w+)\}")
_VALUE = re.compile(r"(?<![:\w]):([a-z]\w*)")

_FOR_SQLITE = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"\bpenstock\.clock\(\)", ":clock"),
        (r"\bpenstock\.", ""),
        (r"::\w+(\[\])?", ""),
        (r"\s+FOR (UPDATE|SHARE)( OF \w+)?( SKIP LOCKED| NOWAIT)?", ""),
        (r"= ANY \((:\w+)\)", r"IN (SELECT value FROM json_each(\1))"),
        (r"<> ALL \((:\w+)\)", r"NOT IN (SELECT value FROM json_each(\1))"),
        (r"= ANY \(ARRAY\(", "IN (SELECT * FROM ("),
        (r"\bIS NOT DISTINCT FROM\b", "IS"),
        (r"\bIS DISTINCT FROM\b", "IS NOT"),
    )
]


def load(dialect: str, own: Traversable | None = None) -> dict[str, str]:
    """All statements by name: those in the `.sql` files beside this one, and an adapter's own."""
    found: dict[str, str] = {}
    for folder in (files("penstock.adapters.sql"), *([own] if own else [])):
        for file in sorted(folder.iterdir(), key=lambda one: one.name):
            if not file.name.endswith(".sql"):
                continue
            _, *blocks = _NAME.split(file.read_text())
            for name, only, body in zip(*[iter(blocks)] * 3, strict=True):
                if only in (None, dialect):
                    if name in found:
                        raise ValueError(f"two statements are called {name}; see {file.name}")
                    found[name] = _COMMENT.sub("", body).strip()
    return {name: include(text, found) for name, text in found.items()}


def include(text: str, texts: Mapping[str, str]) -> str:
    """Replace each `{name}` by the text of that name."""
    return _INCLUDED.sub(lambda found: include(texts[found[1]], texts), text)


def for_sqlite(text: str) -> str:
    """A shared statement as SQLite takes it."""
    for pattern, replacement in _FOR_SQLITE:
        text = pattern.sub(replacement, text)
    return text


def numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """A statement with `$1`, `$2` ... for its values, and their names in that order."""
    names = names_of(text)
    return _VALUE.sub(lambda found: f"${names.index(found[1]) + 1}", text), names


def names_of(text: str) -> tuple[str, ...]:
    """The names of a statement's values, in the order of their first use."""
    return tuple(dict.fromkeys(_VALUE.findall(text)))


@contextmanager
def reaching_store() -> Iterator[None]:
    """Whatever speaks to a database speaks of a queue; here the database is a store."""
    try:
        yield
    except QueueUnavailable as error:
        raise StoreUnavailable(str(error)) from error
