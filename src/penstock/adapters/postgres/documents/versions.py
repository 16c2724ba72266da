"""Documents and their versions: accepted, staged, published, deleted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.adapters.postgres.database import Connection, Database, Transaction
from penstock.adapters.postgres.documents import counts, purge
from penstock.adapters.postgres.documents.counts import VersionChange
from penstock.adapters.sql.document_rows import (
    CHUNK_COLUMNS,
    COLUMNS,
    chunk_of,
    document_of,
    pages_column,
)
from penstock.model.document import (
    Document,
    DocumentRef,
    DocumentState,
    NewChunk,
    Staged,
    StoredChunk,
    Upload,
)
from penstock.ports.documents import Accepted, Arrived, Pending, Version

STAGED_AT_ONCE = 500
"""Chunks in one statement: none takes long, and none is large."""
_REF = "(tenant, collection, id) = ($1, $2, $3)"


def facts(metadata: Mapping[str, Any]) -> list[str]:
    """Metadata as it is searched by: a text for each key and its value."""
    return [json.dumps([key, value], sort_keys=True) for key, value in metadata.items()]


async def accept(tx: Transaction, upload: Upload) -> Accepted:
    number = await tx.fetchval(
        "accept_document",
        *upload.ref,
        upload.title,
        upload.size,
        upload.source,
        json.dumps(dict(upload.metadata)),
        facts(upload.metadata),
        upload.digest,
        upload.blob,
        tx.now,
        upload.remote,
        upload.charset,
        upload.retry,
    )
    row = await tx.fetchrow(f"SELECT {COLUMNS} FROM penstock.documents WHERE {_REF}", *upload.ref)
    if number is not None:
        await _drop_versions(tx, {number: row["live"]})
    return Accepted(document_of(row), new=number is not None)


async def fetched(
    tx: Transaction, version: Version, blob: str, arrived: Arrived
) -> Document | None:
    row = await tx.fetchrow(
        f"SELECT number, live_digest FROM penstock.documents WHERE {_REF} AND generation = $4"
        " AND blob = $5 AND remote FOR UPDATE",
        *version.ref,
        version.generation,
        blob,
    )
    if row is None:
        return None
    same = row["live_digest"] == arrived.digest
    await tx.execute(
        "UPDATE penstock.documents SET blob = $2, digest = $3, size = $4, charset = $5,"
        " remote = false WHERE number = $1",
        *(row["number"], arrived.blob, arrived.digest, arrived.size, arrived.charset),
    )
    if same:
        await tx.execute(
            "UPDATE penstock.documents SET generation = live, state = 'completed', stage = 'done',"
            " progress = 1, message = '', error = NULL, finished_at = $2 WHERE number = $1",
            *(row["number"], tx.now),
        )
    else:
        await tx.execute(
            "UPDATE penstock.documents SET stage = 'waiting', title = $2 WHERE number = $1",
            *(row["number"], arrived.title),
        )
    changed = await tx.fetchrow(
        f"SELECT {COLUMNS} FROM penstock.documents WHERE number = $1", row["number"]
    )
    return document_of(changed)


async def lock(tx: Transaction, version: Version) -> Any:
    """Lock a document; its number and live generation if `version` is its newest, else None."""
    return await tx.fetchrow(
        f"SELECT number, live FROM penstock.documents WHERE {_REF} AND generation = $4 FOR UPDATE",
        *version.ref,
        version.generation,
    )


async def stage(tx: Transaction, tenant: int, version: Version, staged: Staged) -> bool:
    await purge.staging(tx)
    row = await lock(tx, version)
    if row is None or row["live"] == version.generation:
        return False
    document = row["number"]
    await tx.execute(
        "stage_version",
        *(document, version.generation, staged.text, staged.title, staged.mime),
        len(staged.chunks),
        json.dumps(dict(staged.masked)),
        json.dumps(dict(staged.reading)),
    )
    for first in range(0, len(staged.chunks), STAGED_AT_ONCE):
        some = staged.chunks[first : first + STAGED_AT_ONCE]
        columns = zip(*(_chunk_row(tenant, chunk) for chunk in some), strict=True)
        await tx.execute("stage_chunks", document, version.generation, tenant, first, *columns)
    return True


def _chunk_row(tenant: int, chunk: NewChunk) -> tuple[Any, ...]:
    text, start, end, fresh, tokens, _, section, digest, terms, script, _ = chunk
    apart = terms.split()
    return (
        *(text, start, end, fresh, tokens, pages_column(chunk), json.dumps(section)),
        *(digest, " ".join(apart), len(apart), counts.lexemes(tenant, apart), script),
    )


async def mark(
    tx: Transaction,
    version: Version,
    state: DocumentState,
    stage: str,
    progress: float,
    message: str,
    error: Mapping[str, Any] | None,
) -> bool:
    ended = state is not DocumentState.PROCESSING
    changed = await tx.execute(
        "UPDATE penstock.documents SET state = $5, stage = $6, progress = $7, message = $8,"
        " error = coalesce($9, error), started_at = coalesce(started_at, $10), finished_at = $11"
        f" WHERE {_REF} AND generation = $4 AND live IS DISTINCT FROM generation",
        *version.ref,
        version.generation,
        state.value,
        stage,
        progress,
        message,
        None if error is None else json.dumps(dict(error)),
        tx.now,
        tx.now if ended else None,
    )
    return bool(changed)


async def retry(tx: Transaction, version: Version) -> Document | None:
    row = await tx.fetchrow(
        "UPDATE penstock.documents SET generation = penstock.next_generation_1(),"
        " state = 'processing', stage = CASE WHEN remote THEN 'fetch' ELSE 'waiting' END,"
        " progress = 0, message = '', accepted_at = $5, started_at = NULL, finished_at = NULL"
        f" WHERE {_REF} AND generation = $4 AND state = 'failed' RETURNING {COLUMNS}",
        *version.ref,
        version.generation,
        tx.now,
    )
    if row is None:
        return None
    await _drop_versions(tx, {row["number"]: row["live"]})
    return document_of(row)


async def processing(
    database: Database, connection: Connection, after: int, older_than: float, limit: int
) -> list[Pending]:
    rows = await connection.fetch(
        database.sql(
            f"SELECT {COLUMNS}, blob, request FROM penstock.documents WHERE state = 'processing'"
            " AND generation > $1 AND accepted_at < penstock.clock() - $2::float8"
            " ORDER BY generation LIMIT $3"
        ),
        after,
        older_than,
        limit,
    )
    return [Pending(document_of(row), row["blob"], row["request"]) for row in rows]


async def in_progress(
    database: Database, connection: Connection, tenant: str, collections: Sequence[str] | None
) -> int:
    count: int = await connection.fetchval(
        database.sql(
            "SELECT count(*) FROM penstock.documents WHERE state = 'processing' AND tenant = $1"
            " AND ($2::text[] IS NULL OR collection = ANY ($2))"
        ),
        tenant,
        collections,
    )
    return count


async def original(database: Database, connection: Connection, ref: DocumentRef) -> str | None:
    blob: str | None = await connection.fetchval(
        database.sql(f"SELECT blob FROM penstock.documents WHERE {_REF}"), *ref
    )
    return blob


async def blobs_in_use(
    database: Database, connection: Connection, keys: Sequence[str], published: bool
) -> set[str]:
    rows = await connection.fetch(
        database.sql(
            "SELECT blob FROM penstock.documents WHERE blob = ANY ($1)"
            " AND ($2 OR live IS DISTINCT FROM generation)"
        ),
        list(keys),
        published,
    )
    return {row["blob"] for row in rows}


async def publish(tx: Transaction, generations: Mapping[int, int]) -> None:
    """Let these generations be found, by the numbers of documents that are locked."""
    await tx.execute(
        "UPDATE penstock.documents SET live = generation, live_digest = digest,"
        " state = 'completed', stage = 'done', progress = 1, message = '', error = NULL,"
        " finished_at = $2, started_at = coalesce(started_at, $2) WHERE number = ANY ($1)",
        list(generations),
        tx.now,
    )
    await _drop_versions(tx, generations)
    await _drop_scans(tx, generations)


async def delete(tx: Transaction, ref: DocumentRef) -> str | None:
    row = await tx.fetchrow(
        f"SELECT number, blob, live FROM penstock.documents WHERE {_REF} FOR UPDATE", *ref
    )
    if row is None:
        return None
    await counts.replace(tx, ref.tenant, [VersionChange(row["number"], row["live"], None)])
    await _drop_versions(tx, {row["number"]: None})
    await _drop_scans(tx, [row["number"]])
    await tx.execute("DELETE FROM penstock.documents WHERE number = $1", row["number"])
    return str(row["blob"])


async def _drop_versions(tx: Transaction, keep: Mapping[int, int | None]) -> None:
    """Forget every version of documents but one."""
    for table in ("chunks", "texts"):
        await tx.execute(
            f"DELETE FROM penstock.{table} AS t"
            " USING unnest($1::bigint[], $2::bigint[]) AS k (document, generation)"
            " WHERE t.document = k.document AND t.generation IS DISTINCT FROM k.generation",
            list(keep),
            list(keep.values()),
        )


async def _drop_scans(tx: Transaction, numbers: Iterable[int]) -> None:
    await tx.execute("DELETE FROM penstock.scans WHERE document = ANY ($1)", list(numbers))


async def read(database: Database, connection: Connection, ref: DocumentRef) -> Document | None:
    row = await connection.fetchrow(
        database.sql(f"SELECT {COLUMNS} FROM penstock.documents WHERE {_REF}"), *ref
    )
    return None if row is None else document_of(row)


async def documents(
    database: Database,
    connection: Connection,
    tenant: str,
    collection: str | None,
    states: Sequence[DocumentState] | None,
    limit: int,
    before: int | None,
) -> list[Document]:
    rows = await connection.fetch(
        database.sql(
            f"SELECT {COLUMNS} FROM penstock.documents WHERE tenant = $1"
            " AND ($2::text IS NULL OR collection = $2)"
            " AND ($3::text[] IS NULL OR state = ANY ($3))"
            " AND ($4::bigint IS NULL OR generation < $4) ORDER BY generation DESC LIMIT $5"
        ),
        tenant,
        collection,
        None if states is None else [state.value for state in states],
        before,
        limit,
    )
    return [document_of(row) for row in rows]


async def collections(
    database: Database, connection: Connection, tenant: str, document_id: str | None
) -> list[str]:
    # From one name to the next in the index: DISTINCT would read every document.
    rows = await connection.fetch(
        database.sql(
            "WITH RECURSIVE names (name) AS ("
            "(SELECT min(collection) FROM penstock.documents WHERE tenant = $1) UNION ALL"
            " SELECT (SELECT min(collection) FROM penstock.documents"
            " WHERE tenant = $1 AND collection > name) FROM names WHERE name IS NOT NULL)"
            " SELECT name FROM names WHERE name IS NOT NULL AND ($2::text IS NULL OR EXISTS"
            " (SELECT 1 FROM penstock.documents WHERE (tenant, collection, id) = ($1, name, $2)))"
            " ORDER BY name"
        ),
        tenant,
        document_id,
    )
    return [row["name"] for row in rows]


async def chunks(database: Database, connection: Connection, ref: DocumentRef) -> list[StoredChunk]:
    rows = await connection.fetch(
        database.sql(
            f"SELECT {CHUNK_COLUMNS} FROM penstock.documents AS d JOIN penstock.chunks"
            " ON chunks.document = d.number AND chunks.generation = d.live"
            " WHERE (d.tenant, d.collection, d.id) = ($1, $2, $3) ORDER BY ordinal"
        ),
        *ref,
    )
    return [chunk_of(row) for row in rows]


async def text(database: Database, connection: Connection, ref: DocumentRef) -> str | None:
    found: str | None = await connection.fetchval(
        database.sql(
            "SELECT texts.text FROM penstock.documents AS d JOIN penstock.texts"
            " ON texts.document = d.number AND texts.generation = d.live"
            " WHERE (d.tenant, d.collection, d.id) = ($1, $2, $3)"
        ),
        *ref,
    )
    return found
