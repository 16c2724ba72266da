"""Documents and their versions: accepted, staged, published, deleted."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.adapters.sql.document_rows import (
    CHUNK_COLUMNS,
    COLUMNS,
    chunk_of,
    document_of,
    pages_column,
)
from penstock.adapters.sqlite.database import Transaction
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

Queryable = Transaction | sqlite3.Connection

PUBLICATIONS_KEPT = 10_000


def read(tx: Queryable, ref: DocumentRef) -> Document | None:
    row = tx.execute(
        f"SELECT {COLUMNS} FROM documents WHERE (tenant, collection, id) = (?, ?, ?)", ref
    ).fetchone()
    return None if row is None else document_of(row)


def accept(tx: Transaction, upload: Upload) -> Accepted:
    found = tx.execute(
        "SELECT digest, state FROM documents WHERE (tenant, collection, id) = (?, ?, ?)",
        upload.ref,
    ).fetchone()
    again = upload.retry and found is not None and found[1] == DocumentState.FAILED
    if found is not None and found[0] == upload.digest and not again:
        document = read(tx, upload.ref)
        assert document is not None
        return Accepted(document, new=False)
    row = tx.execute(
        "INSERT INTO documents (tenant, collection, id, generation, state, stage, progress,"
        " message, title, size, source, metadata, digest, blob, remote, request, charset,"
        " accepted_at) VALUES (?, ?, ?, ?, 'processing', ?, 0, '', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (tenant, collection, id) DO UPDATE SET generation = excluded.generation,"
        " state = excluded.state, stage = excluded.stage, progress = 0, message = '',"
        # What is there may turn out to be what is fetched.
        " title = iif(excluded.remote, title, excluded.title),"
        " size = iif(excluded.remote, size, excluded.size),"
        " charset = iif(excluded.remote, charset, excluded.charset), source = excluded.source,"
        " metadata = excluded.metadata, digest = excluded.digest, blob = excluded.blob,"
        " remote = excluded.remote, request = excluded.request, error = NULL,"
        " accepted_at = excluded.accepted_at, started_at = NULL, finished_at = NULL"
        f" RETURNING {COLUMNS}",
        (
            *upload.ref,
            _next_generation(tx),
            "fetch" if upload.remote else "waiting",
            upload.title,
            upload.size,
            upload.source,
            # As it is searched by: a path names a key as it is written here.
            json.dumps(dict(upload.metadata), ensure_ascii=False),
            upload.digest,
            upload.blob,
            upload.remote,
            upload.blob if upload.remote else None,
            upload.charset,
            tx.now,
        ),
    ).fetchone()
    _drop_versions(tx, row[0], keep=row[5])
    return Accepted(document_of(row), new=True)


def fetched(tx: Transaction, version: Version, blob: str, arrived: Arrived) -> Document | None:
    found = tx.execute(
        "SELECT number, live_digest FROM documents WHERE (tenant, collection, id) = (?, ?, ?)"
        " AND generation = ? AND blob = ? AND remote",
        (*version.ref, version.generation, blob),
    ).fetchone()
    if found is None:
        return None
    number, live_digest = found
    if live_digest == arrived.digest:
        row = tx.execute(
            "UPDATE documents SET generation = live, state = 'completed', stage = 'done',"
            " progress = 1, message = '', error = NULL, finished_at = ?, size = ?, blob = ?,"
            f" digest = ?, charset = ?, remote = 0 WHERE number = ? RETURNING {COLUMNS}",
            (tx.now, arrived.size, arrived.blob, arrived.digest, arrived.charset, number),
        ).fetchone()
    else:
        row = tx.execute(
            "UPDATE documents SET stage = 'waiting', title = ?, size = ?, blob = ?, digest = ?,"
            f" charset = ?, remote = 0 WHERE number = ? RETURNING {COLUMNS}",
            (arrived.title, arrived.size, arrived.blob, arrived.digest, arrived.charset, number),
        ).fetchone()
    return document_of(row)


def _next_generation(tx: Transaction) -> int:
    """The time, or one more than the last where that is later: it tells a tenant nothing of how
    much others upload."""
    row = tx.execute(
        "UPDATE generations SET last = max(last + 1, ?) RETURNING last", (int(tx.now * 1e6),)
    ).fetchone()
    generation: int = row[0]
    return generation


def number_of(tx: Queryable, version: Version) -> int | None:
    """The document's number, if this is its newest version."""
    row = tx.execute(
        "SELECT number FROM documents WHERE (tenant, collection, id) = (?, ?, ?)"
        " AND generation = ?",
        (*version.ref, version.generation),
    ).fetchone()
    return None if row is None else row[0]


def stage(tx: Transaction, version: Version, staged: Staged) -> bool:
    document = number_of(tx, version)
    if document is None or _is_live(tx, document, version.generation):
        return False
    _drop(tx, document, version.generation)  # what an interrupted run may have left
    tx.execute("INSERT INTO texts VALUES (?, ?, ?)", (document, version.generation, staged.text))
    tx.connection.executemany(
        'INSERT INTO chunks (document, generation, ordinal, text, start, "end", fresh, tokens,'
        " pages, section, hash, terms, script) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (document, version.generation, ordinal, *_chunk_row(one))
            for ordinal, one in enumerate(staged.chunks)
        ],
    )
    tx.execute(
        "UPDATE documents SET title = ?, mime = ?, chunks = ?, masked = ?, reading = ?"
        " WHERE number = ?",
        (
            staged.title,
            staged.mime,
            len(staged.chunks),
            json.dumps(dict(staged.masked)),
            json.dumps(dict(staged.reading), ensure_ascii=False),
            document,
        ),
    )
    return True


def _is_live(tx: Transaction, document: int, generation: int) -> bool:
    row = tx.execute("SELECT live FROM documents WHERE number = ?", (document,)).fetchone()
    return bool(row[0] == generation)


def _chunk_row(chunk: NewChunk) -> tuple[Any, ...]:
    pages = None if chunk.pages is None else pages_column(chunk)
    section = json.dumps(chunk.section, ensure_ascii=False)
    return (*chunk[:5], pages, section, *chunk[7:10])


def mark(
    tx: Transaction,
    version: Version,
    state: DocumentState,
    stage: str,
    progress: float,
    message: str,
    error: Mapping[str, Any] | None,
) -> bool:
    ended = state is not DocumentState.PROCESSING
    return bool(
        tx.execute(
            "UPDATE documents SET state = ?, stage = ?, progress = ?, message = ?,"
            " error = coalesce(?, error), started_at = coalesce(started_at, ?), finished_at = ?"
            " WHERE (tenant, collection, id) = (?, ?, ?) AND generation = ?"
            " AND live IS NOT generation",
            (
                state.value,
                stage,
                progress,
                message,
                None if error is None else json.dumps(dict(error)),
                tx.now,
                tx.now if ended else None,
                *version.ref,
                version.generation,
            ),
        ).rowcount
    )


def retry(tx: Transaction, version: Version) -> Document | None:
    failed = tx.execute(
        "SELECT 1 FROM documents WHERE (tenant, collection, id) = (?, ?, ?) AND generation = ?"
        " AND state = 'failed'",
        (*version.ref, version.generation),
    ).fetchone()
    if failed is None:
        return None
    row = tx.execute(
        "UPDATE documents SET generation = ?, state = 'processing',"
        " stage = iif(remote, 'fetch', 'waiting'), progress = 0, message = '', accepted_at = ?,"
        " started_at = NULL, finished_at = NULL"
        f" WHERE (tenant, collection, id) = (?, ?, ?) RETURNING {COLUMNS}",
        (_next_generation(tx), tx.now, *version.ref),
    ).fetchone()
    _drop_versions(tx, row[0], keep=row[5])
    return document_of(row)


def processing(
    connection: sqlite3.Connection, after: int, before: float, limit: int
) -> list[Pending]:
    rows = connection.execute(
        f"SELECT {COLUMNS}, blob, request FROM documents WHERE state = 'processing'"
        " AND generation > ? AND accepted_at < ? ORDER BY generation LIMIT ?",
        (after, before, limit),
    )
    return [Pending(document_of(row), *row[-2:]) for row in rows]


def in_progress(
    connection: sqlite3.Connection, tenant: str, collections: Sequence[str] | None
) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM documents WHERE state = 'processing' AND tenant = :tenant"
        " AND (:names IS NULL OR collection IN (SELECT value FROM json_each(:names)))",
        {"tenant": tenant, "names": None if collections is None else json.dumps(collections)},
    ).fetchone()
    return int(count)


def original(connection: sqlite3.Connection, ref: DocumentRef) -> str | None:
    row = connection.execute(
        "SELECT blob FROM documents WHERE (tenant, collection, id) = (?, ?, ?)", ref
    ).fetchone()
    return None if row is None else row[0]


def blobs_in_use(connection: sqlite3.Connection, keys: Sequence[str], published: bool) -> set[str]:
    rows = connection.execute(
        "SELECT blob FROM documents WHERE blob IN (SELECT value FROM json_each(?))"
        " AND (? OR live IS NOT generation)",
        (json.dumps(list(keys)), published),
    )
    return {blob for (blob,) in rows}


def publish(tx: Transaction, version: Version, scope: str) -> bool:
    """`scope` are the terms by which full text search tells tenants and collections apart."""
    document = number_of(tx, version)
    if document is None:
        return False
    tx.execute(
        "DELETE FROM chunk_terms WHERE rowid IN (SELECT chunks.number FROM chunks JOIN documents"
        " ON documents.number = chunks.document AND documents.live = chunks.generation"
        " WHERE chunks.document = ?)",
        (document,),
    )
    tx.execute(
        "INSERT INTO chunk_terms (rowid, terms, scope) SELECT number, terms, ? FROM chunks"
        " WHERE document = ? AND generation = ? ORDER BY ordinal",
        (scope, document, version.generation),
    )
    tx.execute(
        "UPDATE documents SET live = generation, live_digest = digest, state = 'completed',"
        " stage = 'done', progress = 1, message = '', error = NULL, finished_at = ?,"
        " started_at = coalesce(started_at, ?) WHERE number = ?",
        (tx.now, tx.now, document),
    )
    _drop_versions(tx, document, keep=version.generation)
    _drop_scans(tx, document)
    _note_publication(tx, version.ref.tenant, document)
    return True


def delete(tx: Transaction, ref: DocumentRef) -> str | None:
    row = tx.execute(
        "SELECT number, blob, live FROM documents WHERE (tenant, collection, id) = (?, ?, ?)", ref
    ).fetchone()
    if row is None:
        return None
    number, blob, live = row
    if live is not None:
        tx.execute(
            "DELETE FROM chunk_terms WHERE rowid IN"
            " (SELECT number FROM chunks WHERE document = ? AND generation = ?)",
            (number, live),
        )
        _note_publication(tx, ref.tenant, number)
    _drop_versions(tx, number, keep=None)
    _drop_scans(tx, number)
    tx.execute("DELETE FROM documents WHERE number = ?", (number,))
    _next_generation(tx)
    return str(blob)


def _note_publication(tx: Transaction, tenant: str, document: int) -> None:
    (version,) = tx.execute(
        "INSERT INTO publications (tenant, document) VALUES (?, ?) RETURNING version",
        (tenant, document),
    ).fetchone()
    tx.execute("DELETE FROM publications WHERE version <= ?", (version - PUBLICATIONS_KEPT,))


def _drop_versions(tx: Transaction, document: int, keep: int | None) -> None:
    """Forget every version of a document but one."""
    rows = tx.execute(
        "SELECT DISTINCT generation FROM texts WHERE document = ? AND generation IS NOT ?",
        (document, keep),
    ).fetchall()
    for (generation,) in rows:
        _drop(tx, document, generation)


def _drop(tx: Transaction, document: int, generation: int) -> None:
    for table in ("chunks", "texts"):
        tx.execute(
            f"DELETE FROM {table} WHERE document = ? AND generation = ?", (document, generation)
        )


def _drop_scans(tx: Transaction, document: int) -> None:
    tx.execute("DELETE FROM scans WHERE document = ?", (document,))


def documents(
    connection: sqlite3.Connection,
    tenant: str,
    collection: str | None,
    states: Sequence[DocumentState] | None,
    limit: int,
    before: int | None,
) -> list[Document]:
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM documents WHERE tenant = :tenant"
        " AND (:collection IS NULL OR collection = :collection)"
        " AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))"
        " AND (:before IS NULL OR generation < :before) ORDER BY generation DESC LIMIT :limit",
        {
            "tenant": tenant,
            "collection": collection,
            "states": None if states is None else json.dumps([state.value for state in states]),
            "before": before,
            "limit": limit,
        },
    )
    return [document_of(row) for row in rows]


def collections(connection: sqlite3.Connection, tenant: str, document_id: str | None) -> list[str]:
    # From one name to the next in the index: DISTINCT would read every document.
    rows = connection.execute(
        "WITH RECURSIVE names (name) AS ("
        "SELECT min(collection) FROM documents WHERE tenant = :tenant UNION ALL"
        " SELECT (SELECT min(collection) FROM documents"
        " WHERE tenant = :tenant AND collection > name) FROM names WHERE name IS NOT NULL)"
        " SELECT name FROM names WHERE name IS NOT NULL AND (:id IS NULL OR EXISTS"
        " (SELECT 1 FROM documents WHERE (tenant, collection, id) = (:tenant, name, :id)))"
        " ORDER BY name",
        {"tenant": tenant, "id": document_id},
    )
    return [name for (name,) in rows]


def chunks(connection: sqlite3.Connection, ref: DocumentRef) -> list[StoredChunk]:
    rows = connection.execute(
        f"SELECT {CHUNK_COLUMNS} FROM documents JOIN chunks ON chunks.document = documents.number"
        " AND chunks.generation = documents.live"
        " WHERE (tenant, collection, id) = (?, ?, ?) ORDER BY ordinal",
        ref,
    )
    return [chunk_of(row) for row in rows]


def text(connection: sqlite3.Connection, ref: DocumentRef) -> str | None:
    row = connection.execute(
        "SELECT texts.text FROM documents JOIN texts ON texts.document = documents.number"
        " AND texts.generation = documents.live WHERE (tenant, collection, id) = (?, ?, ?)",
        ref,
    ).fetchone()
    return None if row is None else row[0]
