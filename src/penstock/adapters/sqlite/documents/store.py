"""Documents in a SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from penstock import runtime
from penstock.adapters.sql import documents, serving, unused_vectors
from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.document_rows import pages_column, places
from penstock.adapters.sql.documents import DocumentStore
from penstock.adapters.sql.unused_vectors import Key, StoredVector
from penstock.adapters.sqlite.database import ReaderThread
from penstock.adapters.sqlite.dialect import SqliteDatabase
from penstock.adapters.sqlite.documents import search as find
from penstock.adapters.sqlite.documents import vectors
from penstock.adapters.sqlite.documents.vectors import Matrix
from penstock.adapters.sqlite.file import SqliteFile
from penstock.adapters.sqlite.transaction import SqliteSql, run
from penstock.errors import QueueError
from penstock.model.document import Hit, NewChunk
from penstock.ports.documents import DocumentQuery, Findings, Version

PUBLICATIONS_KEPT = 10_000
MATRICES = 8
"""Tenants and models whose vectors are kept in memory; of others they are read again."""


class SqliteDocuments(DocumentStore):
    """Documents in a SQLite file. Searches have threads and a connection of their
    own: no job waits for them."""

    _before_all = ("", "", "")

    def __init__(self, file: SqliteFile) -> None:
        super().__init__(SqliteDatabase(file))
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

    async def put_vectors(self, tenant: str, model: str, known: Mapping[str, bytes]) -> None:
        await self._shared.write(lambda tx: vectors.put(tx, tenant, model, known))

    async def publish(self, version: Version, model: str) -> bool:
        ref, named = version.ref, version.ref._asdict() | {"generation": version.generation}

        async def publish(tx: Sql) -> bool:
            row = await tx.one("lock_version", **named)
            if row is None:
                return False
            if model:
                (missing,) = await tx.one("missing_vectors", **named, model=model)
                if missing:
                    raise QueueError(f"{missing} chunks of {ref.id} have no vector yet")
                await serving.use(tx, model)
            document, generation = row["number"], version.generation
            scope = find.scope_terms(ref.tenant, ref.collection)
            await tx.execute("forget_terms", document=document)
            await tx.execute("index_terms", document=document, generation=generation, scope=scope)
            await documents.publish(tx, {document: generation})
            await _note_publication(tx, ref.tenant, document)
            return True

        return await self._shared.write(publish)

    async def _owner(self, tenant: str) -> str:
        return tenant

    async def _keep_vectors(self, tx: Sql) -> None:
        """Whoever writes has locked the whole file."""

    async def _put_chunks(
        self, tx: Sql, owner: Any, document: int, generation: int, chunks: Sequence[NewChunk]
    ) -> None:
        rows = [
            chunk._asdict()
            | {"document": document, "generation": generation, "ordinal": ordinal}
            | {"pages": pages_column(chunk)}
            | {"section": json.dumps(chunk.section, ensure_ascii=False)}
            for ordinal, chunk in enumerate(chunks)
        ]
        await tx.execute_many("put_chunk", rows)

    async def _withdraw(self, tx: Sql, tenant: str, document: int, live: int | None) -> None:
        if live is not None:
            await tx.execute("forget_terms", document=document)
            await _note_publication(tx, tenant, document)
        await tx.execute("take_generation", now=tx.now)

    async def _switched(self, tx: Sql) -> None:
        # A gap in the publications: whoever has vectors in memory reads them all anew.
        await tx.execute("note_publication", tenant="", document=0)
        (version,) = await tx.one("note_publication", tenant="", document=0)
        await tx.execute("forget_publications", version=version - 1)

    async def _look(self, after: Key, limit: int) -> tuple[list[StoredVector], float]:
        return await self._shared.read(lambda tx: unused_vectors.look_now(tx, after, limit))

    async def _purge(self, tx: Sql, after: Key, keep_seconds: float, limit: int) -> int:
        return await unused_vectors.purge(tx, after, keep_seconds, limit)

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
        return Findings(text, near, run(places(SqliteSql(connection, 0.0), found)))

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


async def _note_publication(tx: Sql, tenant: str, document: int) -> None:
    (version,) = await tx.one("note_publication", tenant=tenant, document=document)
    await tx.execute("forget_publications", version=version - PUBLICATIONS_KEPT)
