"""Shared operations in a PostgreSQL database: see `penstock.adapters.sql.dialect`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, TypeVar

from penstock.adapters.postgres.database import (
    COMMAND_SECONDS,
    LONG_SECONDS,
    Connection,
    Database,
    Pool,
    Transaction,
    changed,
    in_schema,
)
from penstock.adapters.sql.dialect import Row, Sql, load, numbered

T = TypeVar("T")


class PostgresSql:
    """See `penstock.adapters.sql.dialect.Sql`. Each statement may take `seconds`."""

    def __init__(
        self, schema: str, connection: Connection, now: float, seconds: float = COMMAND_SECONDS
    ) -> None:
        self._schema = schema
        self._connection = connection
        self._seconds = seconds
        self.now = now

    async def execute(self, statement: str, /, **values: Any) -> int:
        text, bound = self._bound(statement, values)
        return changed(await self._connection.execute(text, *bound, timeout=self._seconds))

    async def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]], /) -> None:
        text, names = _statement(statement, self._schema)
        await self._connection.executemany(
            text, [[row[name] for name in names] for row in rows], timeout=self._seconds
        )

    async def fetch(self, statement: str, /, **values: Any) -> list[Row]:
        text, bound = self._bound(statement, values)
        rows: list[Row] = await self._connection.fetch(text, *bound, timeout=self._seconds)
        return rows

    async def one(self, statement: str, /, **values: Any) -> Row | None:
        text, bound = self._bound(statement, values)
        return await self._connection.fetchrow(text, *bound, timeout=self._seconds)

    def _bound(self, statement: str, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
        text, names = _statement(statement, self._schema)
        return text, [values[name] for name in names]


class PostgresDatabase:
    """See `penstock.adapters.sql.dialect.SqlDatabase`. `pool` is that of the store it is in."""

    def __init__(self, database: Database, pool: Callable[[], Pool]) -> None:
        self._database = database
        self._pool = pool

    async def fetch(self, statement: str, /, **values: Any) -> list[Row]:
        async with self._pool().connection() as connection:
            return await self._sql(connection).fetch(statement, **values)

    async def read(self, operation: Callable[[Sql], Awaitable[T]], *, long: bool = False) -> T:
        async with (
            self._pool().connection() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            return await operation(self._sql(connection, LONG_SECONDS if long else COMMAND_SECONDS))

    async def write(self, operation: Callable[[Sql], Awaitable[T]], *, soft: bool = False) -> T:
        return await self._pool().write(lambda tx: operation(shared(tx)), soft=soft)

    def _sql(self, connection: Connection, seconds: float = COMMAND_SECONDS) -> PostgresSql:
        clock = self._database.clock.now()
        return PostgresSql(self._database.address.schema, connection, clock, seconds)


def shared(tx: Transaction) -> PostgresSql:
    """A transaction as shared operations take it."""
    return PostgresSql(tx.database.address.schema, tx.connection, tx.now, tx.seconds)


@cache
def _shared() -> dict[str, str]:
    return load("postgres", ("penstock.adapters.sql", "."))


@lru_cache(1000)
def _statement(name_or_text: str, schema: str) -> tuple[str, tuple[str, ...]]:
    """A statement for a namespace, and the names of its values in their order."""
    return numbered(in_schema(_shared().get(name_or_text, name_or_text), schema))
