"""Documents in a PostgreSQL database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from penstock.adapters.coalesce import Coalesced
from penstock.adapters.postgres.database import (
    LONG_SECONDS,
    Connection,
    Database,
    Pool,
    Transaction,
)
from penstock.adapters.postgres.documents import counts, purge, scans, serving, vectors
from penstock.adapters.postgres.documents import search as find
from penstock.adapters.postgres.documents import versions as documents
from penstock.adapters.postgres.documents.publish import AT_ONCE, publish
from penstock.adapters.postgres.documents.schema import prepare
from penstock.adapters.sql.unused_vectors import plan
from penstock.errors import QueueError
from penstock.model.document import (
    Document,
    DocumentRef,
    DocumentState,
    Staged,
    StoredChunk,
    Upload,
)
from penstock.ports.documents import (
    Accepted,
    Arrived,
    DocumentQuery,
    Findings,
    Pending,
    Purged,
    ScannedPage,
    ServingModel,
    ToEmbed,
    Version,
)

T = TypeVar("T")
SEARCHES = 2
"""How many run at once, so that jobs find a connection while many search."""


class PostgresDocuments:
    """See `penstock.ports.documents.DocumentStore`. `pool` is that of the store it is in."""

    def __init__(self, database: Database, pool: Callable[[], Pool]) -> None:
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

    async def _read(self, operation: Callable[[Database, Connection], Awaitable[T]]) -> T:
        async with self._pool().connection() as connection:
            return await operation(self._database, connection)

    async def accept(self, upload: Upload) -> Accepted:
        return await self._write(lambda tx: documents.accept(tx, upload))

    async def fetched(self, version: Version, blob: str, arrived: Arrived) -> Document | None:
        return await self._write(lambda tx: documents.fetched(tx, version, blob, arrived))

    async def stage(self, version: Version, staged: Staged) -> bool:
        tenant = await self._tenant(version.ref.tenant)
        return await self._write(lambda tx: documents.stage(tx, tenant, version, staged))

    async def scanned(self, version: Version, basis: str) -> dict[int, ScannedPage] | None:
        return await self._read(
            lambda database, connection: scans.read(database, connection, version, basis)
        )

    async def put_scan(self, version: Version, basis: str, page: int, read: ScannedPage) -> bool:
        return await self._write(lambda tx: scans.put(tx, version, basis, page, read))

    async def to_embed(self, version: Version, model: str) -> list[ToEmbed] | None:
        return await self._read(
            lambda database, connection: vectors.to_embed(database, connection, version, model)
        )

    async def put_vectors(self, tenant: str, model: str, known: Mapping[str, bytes]) -> None:
        widths = {len(vector) // 4 for vector in known.values()}
        numbers = [await self._model(model, width) for width in widths]  # refuses a second width
        if not numbers:
            return
        owner, width = await self._tenant(tenant), widths.pop()
        # A crash of the server may forget the last of them: they are asked for once more then.
        await self._pool().write(
            lambda tx: vectors.put(tx, owner, numbers[0], width, known),
            soft=True,
            seconds=LONG_SECONDS,
        )

    async def _tenant(self, name: str) -> int:
        """The number of a tenant, which is its for ever."""
        if name not in self._tenants:
            self._tenants[name] = await self._write(lambda tx: counts.tenant_number(tx, name))
        return self._tenants[name]

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

    async def mark(
        self,
        version: Version,
        *,
        state: DocumentState,
        stage: str,
        progress: float,
        message: str = "",
        error: Mapping[str, Any] | None = None,
    ) -> bool:
        # What is under way is marked again by the next run: no need to wait for the disk.
        return await self._pool().write(
            lambda tx: documents.mark(tx, version, state, stage, progress, message, error),
            soft=state is DocumentState.PROCESSING,
        )

    async def retry(self, version: Version) -> Document | None:
        return await self._write(lambda tx: documents.retry(tx, version))

    async def processing(self, *, after: int, older_than: float, limit: int) -> list[Pending]:
        return await self._read(
            lambda database, connection: documents.processing(
                database, connection, after, older_than, limit
            )
        )

    async def in_progress(self, tenant: str, collections: Sequence[str] | None) -> int:
        return await self._read(
            lambda database, connection: documents.in_progress(
                database, connection, tenant, collections
            )
        )

    async def original(self, ref: DocumentRef) -> str | None:
        return await self._read(
            lambda database, connection: documents.original(database, connection, ref)
        )

    async def blobs_in_use(self, keys: Sequence[str], *, published: bool) -> set[str]:
        return await self._read(
            lambda database, connection: documents.blobs_in_use(
                database, connection, keys, published
            )
        )

    async def delete(self, ref: DocumentRef) -> str | None:
        return await self._write(lambda tx: documents.delete(tx, ref))

    async def get(self, ref: DocumentRef) -> Document | None:
        return await self._read(
            lambda database, connection: documents.read(database, connection, ref)
        )

    async def documents(
        self,
        tenant: str,
        *,
        collection: str | None = None,
        states: Sequence[DocumentState] | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[Document]:
        return await self._read(
            lambda database, connection: documents.documents(
                database, connection, tenant, collection, states, limit, before
            )
        )

    async def collections(self, tenant: str, document_id: str | None = None) -> list[str]:
        return await self._read(
            lambda database, connection: documents.collections(
                database, connection, tenant, document_id
            )
        )

    async def chunks(self, ref: DocumentRef) -> list[StoredChunk]:
        return await self._read(
            lambda database, connection: documents.chunks(database, connection, ref)
        )

    async def text(self, ref: DocumentRef) -> str | None:
        return await self._read(
            lambda database, connection: documents.text(database, connection, ref)
        )

    async def find(self, wanted: DocumentQuery) -> Findings:
        async with self._searches:
            return await self._read(
                lambda database, connection: find.find(database, connection, wanted)
            )

    async def serving(self) -> ServingModel:
        return await self._read(serving.read)

    async def want(self, model: str) -> None:
        await self._write(lambda tx: serving.want(tx, model))

    async def to_reembed(self, model: str, limit: int) -> list[tuple[str, ToEmbed]]:
        return await self._read(
            lambda database, connection: serving.to_reembed(database, connection, model, limit)
        )

    async def serve(self, model: str) -> bool:
        return await self._write(lambda tx: serving.serve(tx, model))

    async def purge(
        self, *, after: tuple[Any, ...] | None, keep_seconds: float, limit: int
    ) -> Purged:
        # It writes nothing, but goes by index whatever the statistics say, as all that write do.
        looked = await self._write(lambda tx: purge.look(tx, after, limit))
        deleted = 0
        if plan(looked, self._database.clock.now(), keep_seconds):
            # Once more in the transaction that does it: what is staged by then counts.
            deleted = await self._write(lambda tx: purge.purge(tx, after, keep_seconds, limit))
        return Purged(deleted, looked[-1].key if len(looked) == limit else None)
