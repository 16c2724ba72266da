"""Shared operations in a PostgreSQL database: see `penstock.adapters.sql.dialect`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from penstock.adapters.postgres.database import (
    COMMAND_SECONDS,
    LONG_SECONDS,
    Connection,
    Database,
    Pool,
    Transaction,
)
from penstock.adapters.sql.dialect import Row, Sql

T = TypeVar("T")


class PostgresDatabase:
    """See `penstock.adapters.sql.dialect.SqlDatabase`. `pool` is that of the store it is in."""

    def __init__(self, database: Database, pool: Callable[[], Pool]) -> None:
        self._database = database
        self._pool = pool

    async def fetch(self, statement: str, /, **values: Any) -> list[Row]:
        async with self._pool().connection() as connection:
            return await self._reading(connection, COMMAND_SECONDS).fetch(statement, **values)

    async def read(self, operation: Callable[[Sql], Awaitable[T]], *, long: bool = False) -> T:
        async with (
            self._pool().connection() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            return await operation(self._reading(connection, _seconds(long)))

    async def write(
        self, operation: Callable[[Sql], Awaitable[T]], *, soft: bool = False, long: bool = False
    ) -> T:
        return await self._pool().write(operation, soft=soft, seconds=_seconds(long))

    def _reading(self, connection: Connection, seconds: float) -> Transaction:
        return Transaction(self._database, connection, self._database.clock.now(), seconds)


def _seconds(long: bool) -> float:
    return LONG_SECONDS if long else COMMAND_SECONDS
