"""Shared operations on a SQLite file: see `penstock.adapters.sql.dialect`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from penstock import runtime
from penstock.adapters.sql.dialect import Row, Sql
from penstock.adapters.sqlite.file import SqliteFile
from penstock.adapters.sqlite.transaction import SqliteSql, run

T = TypeVar("T")


class SqliteDatabase:
    """See `penstock.adapters.sql.dialect.SqlDatabase`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def fetch(self, statement: str, /, **values: Any) -> list[Row]:
        return await self.read(lambda tx: tx.fetch(statement, **values))

    async def read(self, operation: Callable[[Sql], Awaitable[T]], *, long: bool = False) -> T:
        return await self._file.read(
            lambda connection: run(operation(SqliteSql(connection, runtime.now())))
        )

    async def write(
        self, operation: Callable[[Sql], Awaitable[T]], *, soft: bool = False, long: bool = False
    ) -> T:
        return await self._file.write(lambda tx: run(operation(tx.shared)), soft=soft)
