"""Shared operations on a SQLite file: see `penstock.adapters.sql.dialect`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar, cast

from penstock import runtime
from penstock.adapters.sql.dialect import Row, Sql
from penstock.adapters.sqlite.database import sql
from penstock.adapters.sqlite.file import SqliteFile

T = TypeVar("T")


class SqliteSql:
    """See `penstock.adapters.sql.dialect.Sql`. Nothing in it waits."""

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        self._connection = connection
        self.now = now

    async def execute(self, statement: str, /, **values: Any) -> int:
        return self._run(statement, values).rowcount

    async def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]], /) -> None:
        self._connection.executemany(sql(statement), [self._bound(row) for row in rows])

    async def fetch(self, statement: str, /, **values: Any) -> list[Row]:
        return self._run(statement, values).fetchall()

    async def one(self, statement: str, /, **values: Any) -> Row:
        # All rows are read: what is left of a statement would keep the transaction from its end.
        rows = self._run(statement, values).fetchall()
        return rows[0] if rows else None

    def _run(self, statement: str, values: Mapping[str, Any]) -> sqlite3.Cursor:
        cursor = self._connection.cursor()
        cursor.row_factory = sqlite3.Row
        return cursor.execute(sql(statement), self._bound(values))

    def _bound(self, values: Mapping[str, Any]) -> dict[str, Any]:
        bound = {
            name: json.dumps(value) if isinstance(value, list | tuple) else value
            for name, value in values.items()
        }
        return bound | {"clock": self.now}


class SqliteDatabase:
    """See `penstock.adapters.sql.dialect.SqlDatabase`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def fetch(self, statement: str, /, **values: Any) -> list[Row]:
        return await self.read(lambda tx: tx.fetch(statement, **values))

    async def read(
        self,
        operation: Callable[[Sql], Awaitable[T]],
        *,
        long: bool = False,
    ) -> T:
        return await self._file.read(
            lambda connection: run(operation(SqliteSql(connection, runtime.now())))
        )

    async def write(
        self,
        operation: Callable[[Sql], Awaitable[T]],
        *,
        soft: bool = False,
        long: bool = False,
    ) -> T:
        return await self._file.write(
            lambda tx: run(operation(SqliteSql(tx.connection, tx.now))), soft=soft
        )


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
