"""A PostgreSQL database as a store: the queue's own, or another."""

from __future__ import annotations

from collections.abc import Callable

from penstock.adapters.postgres import schema
from penstock.adapters.postgres.database import Database, Pool
from penstock.adapters.postgres.dialect import PostgresDatabase
from penstock.adapters.postgres.documents import PostgresDocuments
from penstock.adapters.sql.store import Store
from penstock.errors import QueueError

POOL_SIZE = 4


class PostgresStore(Store):
    """`shared` is the pool of a queue in the same place, which opens and closes it; without it the
    store has one of its own."""

    def __init__(self, database: Database, shared: Callable[[], Pool] | None = None) -> None:
        super().__init__(PostgresDatabase(database, self._pool))
        self._database = database
        self._shared = shared
        self._own: Pool | None = None

    async def open(self) -> None:
        if self._shared is None:
            await schema.prepare(self._database)
            self._own = Pool(self._database, "store", POOL_SIZE)

    async def close(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            await own.close()

    def _pool(self) -> Pool:
        if self._shared is not None:
            return self._shared()
        if self._own is None:
            raise QueueError("the store is not open; use it inside `async with app:`")
        return self._own

    def documents(self) -> PostgresDocuments:
        return PostgresDocuments(self._database, self._pool)
