"""Documents in a PostgreSQL database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from penstock.adapters.coalesce import Coalesced
from penstock.adapters.postgres.database import LONG_SECONDS, Database, Pool, Transaction, own
from penstock.adapters.postgres.dialect import PostgresDatabase
from penstock.adapters.postgres.documents import search as find
from penstock.adapters.postgres.documents import vectors
from penstock.adapters.postgres.documents.publish import (
    AT_ONCE,
    VersionChange,
    chunk_row,
    publish,
    replace_counts,
    tenant_number,
)
from penstock.adapters.postgres.documents.schema import prepare
from penstock.adapters.postgres.documents.vectors import BEFORE_ALL
from penstock.adapters.sql import unused_vectors
from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.documents import DocumentStore
from penstock.adapters.sql.unused_vectors import Key, StoredVector
from penstock.errors import QueueError
from penstock.model.document import NewChunk
from penstock.ports.documents import DocumentQuery, Findings, Version

T = TypeVar("T")
STAGED_AT_ONCE = 500
"""Chunks in one statement: none takes long, and none is large."""
SEARCHES = 2
"""How many run at once, so that jobs find a connection while many search."""


class PostgresDocuments(DocumentStore):
    """Documents in PostgreSQL. `pool` is that of the store it is in."""

    _before_all = BEFORE_ALL

    def __init__(self, database: Database, pool: Callable[[], Pool]) -> None:
        super().__init__(PostgresDatabase(database, self._pool))
        self._database = database
        self._store_pool = pool
        self._opened = False
        self._searches = asyncio.Semaphore(SEARCHES)
        self._models: dict[tuple[str, int], int] = {}
        self._tenants: dict[str, int] = {}
        self._publications = Coalesced(self._publish, AT_ONCE)

    async def open(self) -> None:
        await prepare(self._database)
        self._opened = True

    async def close(self) -> None:
        self._opened = False

    def _pool(self) -> Pool:
        if not self._opened:
            raise QueueError("the documents is not open; use it inside `async with app:`")
        return self._store_pool()

    async def _write(self, operation: Callable[[Transaction], Awaitable[T]]) -> T:
        # A document may have ten thousand chunks: what is done with all of them takes long.
        return await self._pool().write(operation, seconds=LONG_SECONDS)

    async def put_vectors(self, tenant: str, model: str, known: Mapping[str, bytes]) -> None:
        widths = {len(vector) // 4 for vector in known.values()}
        numbers = [await self._model(model, width) for width in widths]  # refuses a second width
        if not numbers:
            return
        owner, width = await self._owner(tenant), widths.pop()
        # A crash of the server may forget the last of them: they are asked for once more then.
        await self._pool().write(
            lambda tx: vectors.put(tx, owner, numbers[0], width, known),
            soft=True,
            seconds=LONG_SECONDS,
        )

    async def _owner(self, tenant: str) -> int:
        """The number of a tenant, which is its for ever."""
        if tenant not in self._tenants:
            number = await self._write(lambda tx: tenant_number(tx, tenant))
            self._tenants[tenant] = number
        return self._tenants[tenant]

    async def _model(self, name: str, width: int) -> int:
        """The number of a model whose vectors have this width; its index is there."""
        if (name, width) not in self._models:
            # In a transaction of its own: making an index takes a lock that others wait for.
            number = await self._write(lambda tx: vectors.add_model(tx, name, width))
            self._models[name, width] = number
        return self._models[name, width]

    async def publish(self, version: Version, model: str) -> bool:
        return await self._publications.ask((version.ref.tenant, model), version)

    async def _publish(
        self, of: tuple[str, str], versions: Sequence[Version]
    ) -> list[bool | Exception]:
        tenant, model = of
        return await self._write(lambda tx: publish(tx, tenant, versions, model))

    async def find(self, wanted: DocumentQuery) -> Findings:
        async with self._searches, self._pool().connection() as connection:
            return await find.find(self._database, connection, wanted)

    async def _keep_vectors(self, tx: Sql) -> None:
        await vectors.keep(own(tx))

    async def _put_chunks(
        self, tx: Sql, owner: Any, document: int, generation: int, chunks: Sequence[NewChunk]
    ) -> None:
        for first in range(0, len(chunks), STAGED_AT_ONCE):
            some = chunks[first : first + STAGED_AT_ONCE]
            columns = zip(*(chunk_row(owner, chunk) for chunk in some), strict=True)
            place = (document, generation, owner, first)
            await own(tx).execute("stage_chunks", *place, *columns)

    async def _withdraw(self, tx: Sql, tenant: str, document: int, live: int | None) -> None:
        await replace_counts(own(tx), tenant, [VersionChange(document, live, None)])

    async def _switched(self, tx: Sql) -> None:
        """Searches ask the database which model serves."""

    async def _look(self, after: Key, limit: int) -> tuple[list[StoredVector], float]:
        # It writes nothing, but goes by index whatever the statistics say, as all that write do.
        return await self._shared.write(
            lambda tx: unused_vectors.look_now(tx, after, limit), long=True
        )

    async def _purge(self, tx: Sql, after: Key, keep_seconds: float, limit: int) -> int:
        return await vectors.purge(own(tx), after, keep_seconds, limit)
