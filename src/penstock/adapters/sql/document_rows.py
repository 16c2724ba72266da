"""Documents and chunks as rows, shared by all SQL stores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.adapters.sql.dialect import Row, Sql
from penstock.model.document import Document, DocumentState, NewChunk, StoredChunk
from penstock.ports.documents import Place

_PLAIN = (
    *("tenant", "collection", "id", "generation", "phase", "progress", "message", "title", "mime"),
    *("size", "source", "chunks", "accepted_at", "started_at", "finished_at", "charset"),
)
"""Columns that are stored as a document has them."""


def document_of(row: Row) -> Document:
    """The document in a row with `document_columns`."""
    return Document(
        **{name: row[name] for name in _PLAIN},
        **{name: json.loads(row[name]) for name in ("metadata", "masked", "reading")},
        searchable=row["live"] is not None,
        state=DocumentState(row["state"]),
        error=None if row["error"] is None else json.loads(row["error"]),
        remote=bool(row["remote"]),
    )


def pages_column(chunk: NewChunk) -> str:
    """Its pages as JSON: the first, the last, and where those after the first begin."""
    return json.dumps(chunk.pages and (*chunk.pages, *chunk.page_starts))


def chunk_of(row: Row) -> StoredChunk:
    """The chunk in a row with `chunk_columns`."""
    pages = None if row["pages"] in (None, "null") else json.loads(row["pages"])
    return StoredChunk(
        ordinal=row["ordinal"],
        text=row["text"],
        start=row["start"],
        end=row["end"],
        tokens=row["tokens"],
        pages=None if pages is None else (pages[0], pages[1]),
        section=tuple(json.loads(row["section"])),
        script=row["script"],
        page_starts=() if pages is None else tuple(pages[2:]),
    )


async def places(tx: Sql, chunks: Iterable[int]) -> dict[int, Place]:
    """Chunks, by number, and the documents they are of."""
    rows = await tx.fetch("places", numbers=list(chunks))
    return {row["chunk"]: Place(chunk_of(row), document_of(row)) for row in rows}


def facts(metadata: Mapping[str, Any]) -> list[str]:
    """Metadata as PostgreSQL searches it: a text for each key and its value."""
    return [json.dumps([key, value], sort_keys=True) for key, value in metadata.items()]
