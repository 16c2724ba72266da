"""Documents in a SQLite file."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from penstock import runtime
from penstock.adapters.sql.unused_vectors import plan
from penstock.adapters.sqlite.database import ReaderThread, Transaction
from penstock.adapters.sqlite.documents import purge, scans, serving, vectors
from penstock.adapters.sqlite.documents import search as find
from penstock.adapters.sqlite.documents import versions as documents
from penstock.adapters.sqlite.documents.vectors import Matrix
from penstock.adapters.sqlite.file import SqliteFile
from penstock.errors import QueueError
from penstock.model.document import (
    Document,
    DocumentRef,
    DocumentState,
    Hit,
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

MATRICES = 8
"""Tenants and models whose vectors are kept in memory; of others they are read again."""


class SqliteDocuments:
    """See `penstock.ports.documents.DocumentStore`. Searches have threads and a connection of their
    own: no job waits for them."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._searcher: ReaderThread | None = None
        self._matrices: OrderedDict[tuple[str, str], Matrix] = OrderedDict()

    async def open(self) -> None:
        self._searcher = self._file.another_reader("penstock-search")
        self._comparer = runtime.thread_pool(1, "penstock-compare")

    async def close(self) -> None:
        if self._searcher is not None:
            searcher, self._searcher = self._searcher, None
            await searcher.stop()
            self._comparer.shutdown()

    async def accept(self, upload: Upload) -> Accepted:
        return await self._file.write(lambda tx: documents.accept(tx, upload))

    async def fetched(self, version: Version, blob: str, arrived: Arrived) -> Document | None:
        return await self._file.write(lambda tx: documents.fetched(tx, version, blob, arrived))

    async def stage(self, version: Version, staged: Staged) -> bool:
        return await self._file.write(lambda tx: documents.stage(tx, version, staged))

    async def scanned(self, version: Version, basis: str) -> dict[int, ScannedPage] | None:
        return await self._file.read(lambda connection: scans.read(connection, version, basis))

    async def put_scan(self, version: Version, basis: str, page: int, read: ScannedPage) -> bool:
        return await self._file.write(lambda tx: scans.put(tx, version, basis, page, read))

    async def to_embed(self, version: Version, model: str) -> list[ToEmbed] | None:
        return await self._file.read(
            lambda connection: vectors.to_embed(connection, version, model)
        )

    async def put_vectors(self, tenant: str, model: str, known: Mapping[str, bytes]) -> None:
        await self._file.write(lambda tx: vectors.put(tx, tenant, model, known))

    async def publish(self, version: Version, model: str) -> bool:
        def publish(tx: Transaction) -> bool:
            if model and (missing := vectors.without_vector(tx, version, model)):
                raise QueueError(f"{missing} chunks of {version.ref.id} have no vector yet")
            scope = find.scope_terms(version.ref.tenant, version.ref.collection)
            if model and documents.number_of(tx, version) is not None:
                serving.use(tx, model)
            return documents.publish(tx, version, scope)

        return await self._file.write(publish)

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
        return await self._file.write(
            lambda tx: documents.mark(tx, version, state, stage, progress, message, error)
        )

    async def retry(self, version: Version) -> Document | None:
        return await self._file.write(lambda tx: documents.retry(tx, version))

    async def processing(self, *, after: int, older_than: float, limit: int) -> list[Pending]:
        before = runtime.now() - older_than
        return await self._file.read(
            lambda connection: documents.processing(connection, after, before, limit)
        )

    async def in_progress(self, tenant: str, collections: Sequence[str] | None) -> int:
        return await self._file.read(
            lambda connection: documents.in_progress(connection, tenant, collections)
        )

    async def original(self, ref: DocumentRef) -> str | None:
        return await self._file.read(lambda connection: documents.original(connection, ref))

    async def blobs_in_use(self, keys: Sequence[str], *, published: bool) -> set[str]:
        return await self._file.read(
            lambda connection: documents.blobs_in_use(connection, keys, published)
        )

    async def delete(self, ref: DocumentRef) -> str | None:
        return await self._file.write(lambda tx: documents.delete(tx, ref))

    async def get(self, ref: DocumentRef) -> Document | None:
        return await self._file.read(lambda connection: documents.read(connection, ref))

    async def documents(
        self,
        tenant: str,
        *,
        collection: str | None = None,
        states: Sequence[DocumentState] | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[Document]:
        return await self._file.read(
            lambda connection: documents.documents(
                connection, tenant, collection, states, limit, before
            )
        )

    async def collections(self, tenant: str, document_id: str | None = None) -> list[str]:
        return await self._file.read(
            lambda connection: documents.collections(connection, tenant, document_id)
        )

    async def chunks(self, ref: DocumentRef) -> list[StoredChunk]:
        return await self._file.read(lambda connection: documents.chunks(connection, ref))

    async def text(self, ref: DocumentRef) -> str | None:
        return await self._file.read(lambda connection: documents.text(connection, ref))

    async def find(self, wanted: DocumentQuery) -> Findings:
        if self._searcher is None:
            raise QueueError("the documents is not open; use it inside `async with app:`")
        searcher = self._searcher
        return await searcher.submit(lambda connection: self._find(searcher, connection, wanted))

    def _find(
        self, searcher: ReaderThread, connection: sqlite3.Connection, wanted: DocumentQuery
    ) -> Findings:
        some = find.documents_in(connection, wanted.scope)
        comparing = self._compare(searcher, connection, wanted, some)
        try:
            text = find.by_text(connection, wanted, some)
        finally:
            # Also where the search is interrupted: the next one may change what it looks at.
            near = comparing.result() if comparing else []
        found = {hit.chunk for hit in (*text, *near)}
        return Findings(text, near, find.places(connection, found))

    def _compare(
        self,
        searcher: ReaderThread,
        connection: sqlite3.Connection,
        wanted: DocumentQuery,
        documents: Sequence[int] | None,
    ) -> Future[list[Hit]] | None:
        """Vectors are compared in another thread: neither that nor SQLite needs the interpreter,
        so a search takes as long as the slower of the two."""
        if wanted.vector is None:
            return None
        matrix = self._matrix(wanted.scope.tenant, wanted.model)
        # All searches need it: begun anew by each that has little time, it would never be ready.
        with searcher.uninterrupted():
            matrix.follow(connection)
        return self._comparer.submit(matrix.search, wanted.vector, documents, wanted.limit)

    def _matrix(self, tenant: str, model: str) -> Matrix:
        """Called by the searching thread only."""
        key = (tenant, model)
        matrix = self._matrices.pop(key, None) or Matrix(tenant, model)
        self._matrices[key] = matrix
        while len(self._matrices) > MATRICES:
            self._matrices.popitem(last=False)
        return matrix

    async def serving(self) -> ServingModel:
        return await self._file.read(serving.read)

    async def want(self, model: str) -> None:
        await self._file.write(lambda tx: serving.want(tx, model))

    async def to_reembed(self, model: str, limit: int) -> list[tuple[str, ToEmbed]]:
        return await self._file.read(
            lambda connection: serving.to_reembed(connection, model, limit)
        )

    async def serve(self, model: str) -> bool:
        return await self._file.write(lambda tx: serving.serve(tx, model))

    async def purge(
        self, *, after: tuple[Any, ...] | None, keep_seconds: float, limit: int
    ) -> Purged:
        looked = await self._file.read(lambda connection: purge.look(connection, after, limit))
        deleted = 0
        if plan(looked, runtime.now(), keep_seconds):
            # Once more in the transaction that does it: what is staged by then counts.
            deleted = await self._file.write(lambda tx: purge.purge(tx, after, keep_seconds, limit))
        return Purged(deleted, looked[-1].key if len(looked) == limit else None)
