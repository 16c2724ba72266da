"""Documents, their chunks and vectors in a database, and search over them. Statements:
`documents.sql`.

They promise:
- every accepted upload or delete takes the next generation, which is about the time in
  microseconds and tells nothing of other tenants; only the newest generation of a document can be
  staged, published or marked, checked in the transaction that does it;
- a version that is published is neither staged nor marked again;
- `publish` replaces what can be searched of a document at once, or not at all;
- `find` reads text, vectors and documents of one moment, also those that another process
  has published a moment before;
- every row belongs to a tenant, and nothing is read without naming it.

Full text, vectors and what follows from them (staging chunks, publishing, searching) are each
database's own.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from penstock.adapters.sql import serving, unused_vectors
from penstock.adapters.sql.dialect import Row, Sql, SqlDatabase
from penstock.adapters.sql.document_rows import chunk_of, document_of, facts
from penstock.adapters.sql.unused_vectors import Key, StoredVector
from penstock.model.document import (
    Document,
    DocumentRef,
    DocumentState,
    NewChunk,
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


class DocumentStore(ABC):
    """Usable from `open` to `close`, while the store it is in is open. Whoever changes a document's
    versions locks its row first."""

    _before_all: Key
    """Where the keys of vectors begin."""

    def __init__(self, database: SqlDatabase) -> None:
        self._shared = database

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def put_vectors(self, tenant: str, model: str, known: Mapping[str, bytes]) -> None:
        """Keep vectors by the hash of what they are of: the checkpoint, and the reuse. Those of a
        model have one length; QueueError for another."""

    @abstractmethod
    async def publish(self, version: Version, model: str) -> bool:
        """Let this version be found instead of the one before. False: a newer generation is
        there. Every chunk must have a vector of `model`, or there must be no model. ModelReplaced
        where `model` neither serves nor is to."""

    @abstractmethod
    async def find(self, wanted: DocumentQuery) -> Findings:
        """Search text and vectors on one snapshot."""

    @abstractmethod
    async def _owner(self, tenant: str) -> Any:
        """What a tenant is called beside its chunks."""

    @abstractmethod
    async def _keep_vectors(self, tx: Sql) -> None:
        """Let no vector be deleted until this transaction ends: it stages a version."""

    @abstractmethod
    async def _put_chunks(
        self, tx: Sql, owner: Any, document: int, generation: int, chunks: Sequence[NewChunk]
    ) -> None:
        """Store the chunks of a version."""

    @abstractmethod
    async def _withdraw(self, tx: Sql, tenant: str, document: int, live: int | None) -> None:
        """Let a document, which is about to be deleted, be found no more."""

    @abstractmethod
    async def _switched(self, tx: Sql) -> None:
        """Another model serves from now on."""

    @abstractmethod
    async def _look(self, after: Key, limit: int) -> tuple[list[StoredVector], float]:
        """The next vectors behind a key, and the queue's clock."""

    @abstractmethod
    async def _purge(self, tx: Sql, after: Key, keep_seconds: float, limit: int) -> int:
        """See `unused_vectors.purge`."""

    async def accept(self, upload: Upload) -> Accepted:
        """Take the next generation for an upload, unless it would only repeat what is there."""
        values = {
            **asdict(upload),
            **upload.ref._asdict(),
            "phase": "fetch" if upload.remote else "waiting",
            # As it is searched by: a path names a key as it is written here.
            "metadata": json.dumps(dict(upload.metadata), ensure_ascii=False),
            "facts": facts(upload.metadata),
            "request": upload.blob if upload.remote else None,
        }

        async def accept(tx: Sql) -> Accepted:
            new = await tx.one("accept_document", **values, now=tx.now)
            row = await tx.one("read_document", **values)
            if new is not None:
                await drop_versions(tx, {row["number"]: row["live"]})
            return Accepted(document_of(row), new=new is not None)

        return await self._shared.write(accept, long=True)

    async def fetched(self, version: Version, blob: str, arrived: Arrived) -> Document | None:
        """Let what was fetched be the original, instead of `blob`, which said what to fetch. Where
        the version that can be searched was made of the same, it is the newest again, and the
        document completed. None: a newer generation is there, or this one's was fetched before."""
        named = _named(version)

        async def fetched(tx: Sql) -> Document | None:
            row = await tx.one("lock_remote", **named, blob=blob)
            if row is None:
                return None
            values = arrived._asdict() | {"number": row["number"], "now": tx.now}
            await tx.execute("arrived_document", **values)
            same = row["live_digest"] == arrived.digest
            await tx.execute("same_document" if same else "other_document", **values)
            return document_of(await tx.one("read_document", **named))

        return await self._shared.write(fetched, long=True)

    async def stage(self, version: Version, staged: Staged) -> bool:
        """Store what parsing made, not to be searched yet. False: a newer generation is there, or
        this one is published."""
        owner = await self._owner(version.ref.tenant)
        return await self._shared.write(
            lambda tx: self._stage(tx, owner, version, staged), long=True
        )

    async def _stage(self, tx: Sql, owner: Any, version: Version, staged: Staged) -> bool:
        await self._keep_vectors(tx)
        row = await tx.one("lock_version", **_named(version))
        if row is None or row["live"] == version.generation:
            return False
        values = {"document": row["number"], "generation": version.generation}
        await tx.execute("drop_staged", **values)
        await tx.execute("put_text", **values, text=staged.text)
        await tx.execute(
            "staged_document",
            **values,
            title=staged.title,
            mime=staged.mime,
            chunks=len(staged.chunks),
            masked=json.dumps(dict(staged.masked)),
            reading=json.dumps(dict(staged.reading), ensure_ascii=False),
        )
        await self._put_chunks(tx, owner, row["number"], version.generation, staged.chunks)
        return True

    async def scanned(self, version: Version, basis: str) -> dict[int, ScannedPage] | None:
        """Pages that are read already, by number; None: a newer generation is there. `basis` says
        what was read, and by whom."""
        rows = await self._shared.fetch("read_scans", **_named(version), basis=basis)
        if not rows:
            return None
        return {
            row["page"]: ScannedPage(row["text"], json.loads(row["masked"]))
            for row in rows
            if row["page"] is not None
        }

    async def put_scan(self, version: Version, basis: str, page: int, read: ScannedPage) -> bool:
        """Keep what was read on a page until its document is published or deleted: the
        checkpoint. A later generation with the same basis finds it too. False: a newer generation
        is there."""
        scan = {"basis": basis, "page": page, "text": read.text}

        async def put(tx: Sql) -> bool:
            row = await tx.one("lock_version", **_named(version))
            if row is None:
                return False
            masked = json.dumps(dict(read.masked))
            await tx.execute("put_scan", **scan, document=row["number"], masked=masked)
            return True

        return await self._shared.write(put, long=True)

    async def to_embed(self, version: Version, model: str) -> list[ToEmbed] | None:
        """Staged chunks without a vector of `model`; None: a newer generation is there."""
        rows = await self._shared.fetch("to_embed", **_named(version), model=model)
        if not rows:
            return None
        return [ToEmbed(row["hash"], row["text"]) for row in rows if row["hash"] is not None]

    async def mark(
        self,
        version: Version,
        *,
        state: DocumentState,
        phase: str,
        progress: float,
        message: str = "",
        error: Mapping[str, Any] | None = None,
    ) -> bool:
        """Note how far it has come. Without an error the one before is kept, until it is published
        or uploaded anew. False: a newer generation is there, or this one is published."""
        values = {
            **_named(version),
            "state": state.value,
            "phase": phase,
            "progress": progress,
            "message": message,
            "error": None if error is None else json.dumps(dict(error)),
        }
        ended = state is not DocumentState.PROCESSING

        async def mark(tx: Sql) -> bool:
            finished_at = tx.now if ended else None
            changed = await tx.execute(
                "mark_document", **values, now=tx.now, finished_at=finished_at
            )
            return changed == 1

        # What is under way is marked again by the next run: no need to wait for the disk.
        return await self._shared.write(mark, soft=not ended)

    async def retry(self, version: Version) -> Document | None:
        """Take the next generation for the same original, its error kept. None: this version has
        not failed, or a newer generation is there."""
        named = _named(version)

        async def retry(tx: Sql) -> Document | None:
            if not await tx.execute("retry_document", **named, now=tx.now):
                return None
            row = await tx.one("read_document", **named)
            await drop_versions(tx, {row["number"]: row["live"]})
            return document_of(row)

        return await self._shared.write(retry, long=True)

    async def processing(self, *, after: int, older_than: float, limit: int) -> list[Pending]:
        """Documents of all tenants that are being worked on and were accepted more than
        `older_than` seconds ago, by generation, those over `after`."""
        rows = await self._shared.fetch(
            "processing_documents", after=after, older_than=older_than, limit=limit
        )
        return [Pending(document_of(row), row["blob"], row["request"]) for row in rows]

    async def in_progress(self, tenant: str, collections: Sequence[str] | None) -> int:
        """How many documents are being worked on, in these collections or in all."""
        some = None if collections is None else list(collections)
        ((count,),) = await self._shared.fetch("count_processing", tenant=tenant, collections=some)
        return int(count)

    async def original(self, ref: DocumentRef) -> str | None:
        """The blob of the newest version, which may be deleted if that is published. Where that
        is still to be fetched, it says what."""
        return _value(await self._shared.fetch("original", **ref._asdict()))

    async def blobs_in_use(self, keys: Sequence[str], *, published: bool) -> set[str]:
        """Those that a document still needs: its newest version is not published, or those of
        published ones count too."""
        rows = await self._shared.fetch("blobs_in_use", keys=list(keys), published=published)
        return {blob for (blob,) in rows}

    async def delete(self, ref: DocumentRef) -> str | None:
        """Remove a document, whatever is being done with it; its blob, None if there was none."""

        async def delete(tx: Sql) -> str | None:
            row = await tx.one("lock_document", **ref._asdict())
            if row is None:
                return None
            document = row["number"]
            await self._withdraw(tx, ref.tenant, document, row["live"])
            await drop_versions(tx, {document: None})
            await tx.execute("drop_scans", document=document)
            await tx.execute("delete_document", document=document)
            return str(row["blob"])

        return await self._shared.write(delete, long=True)

    async def get(self, ref: DocumentRef) -> Document | None:
        rows = await self._shared.fetch("read_document", **ref._asdict())
        return document_of(rows[0]) if rows else None

    async def documents(
        self,
        tenant: str,
        *,
        collection: str | None = None,
        states: Sequence[DocumentState] | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[Document]:
        """The newest first; `before` is the generation of the last one of the page before."""
        rows = await self._shared.fetch(
            "newest_documents",
            tenant=tenant,
            collection=collection,
            states=None if states is None else [state.value for state in states],
            before=before,
            limit=limit,
        )
        return [document_of(row) for row in rows]

    async def collections(self, tenant: str, document_id: str | None = None) -> list[str]:
        """Names of those that have documents, or one of that id, in order. The cost follows the
        number of collections, not that of documents."""
        rows = await self._shared.fetch("collections", tenant=tenant, id=document_id)
        return [name for (name,) in rows]

    async def chunks(self, ref: DocumentRef) -> list[StoredChunk]:
        """Of the version that can be searched, in order."""
        rows = await self._shared.fetch("chunks_of_document", **ref._asdict())
        return [chunk_of(row) for row in rows]

    async def text(self, ref: DocumentRef) -> str | None:
        """The masked text of the version that can be searched."""
        return _value(await self._shared.fetch("live_text", **ref._asdict()))

    async def serving(self) -> ServingModel:
        return ServingModel(*(await self._shared.fetch("read_serving"))[0])

    async def want(self, model: str) -> None:
        """Have `model` serve once every live chunk has a vector of it; the last one asked for
        counts. Nothing is to be done where it serves already, or nothing is published yet."""
        await self._shared.write(lambda tx: serving.want(tx, model), long=True)

    async def to_reembed(self, model: str, limit: int) -> list[tuple[str, ToEmbed]]:
        """Live texts of any tenant, and whose, that have no vector of `model`."""
        rows = await self._shared.fetch("to_reembed", model=model, limit=limit)
        return [(row["tenant"], ToEmbed(row["hash"], row["text"])) for row in rows]

    async def serve(self, model: str) -> bool:
        """Let `model` serve from now on. False: some live chunk has no vector of it yet, or
        another is wanted by now."""

        async def serve(tx: Sql) -> bool:
            if not await serving.serve(tx, model):
                return False
            await self._switched(tx)
            return True

        return await self._shared.write(serve, long=True)

    async def purge(
        self, *, after: tuple[Any, ...] | None, keep_seconds: float, limit: int
    ) -> Purged:
        """Look at the next `limit` vectors behind a key: note those that nothing needs, and delete
        those for which that was noted `keep_seconds` ago. What is staged meanwhile is safe."""
        start = after or self._before_all
        looked, now = await self._look(start, limit)
        deleted = 0
        if unused_vectors.plan(looked, now, keep_seconds):
            # Once more in the transaction that does it: what is staged by then counts.
            deleted = await self._shared.write(
                lambda tx: self._purge(tx, start, keep_seconds, limit), long=True
            )
        return Purged(deleted, looked[-1].key if len(looked) == limit else None)


async def drop_versions(tx: Sql, keep: Mapping[int, int | None]) -> None:
    """Forget every version but one of documents, by number."""
    rows = [{"document": document, "keep": kept} for document, kept in keep.items()]
    await tx.execute_many("drop_chunks", rows)
    await tx.execute_many("drop_texts", rows)


async def publish(tx: Sql, generations: Mapping[int, int]) -> None:
    """Let these generations be found, by the numbers of documents that are locked."""
    await tx.execute("publish_documents", numbers=list(generations), now=tx.now)
    await drop_versions(tx, generations)
    await tx.execute_many("drop_scans", [{"document": document} for document in generations])


def _named(version: Version) -> dict[str, Any]:
    return version.ref._asdict() | {"generation": version.generation}


def _value(rows: Sequence[Row]) -> str | None:
    return rows[0][0] if rows else None
