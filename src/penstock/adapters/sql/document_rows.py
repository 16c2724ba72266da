"""Documents and chunks as rows: the same columns in every store that speaks SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.model.document import Document, DocumentState, NewChunk, StoredChunk

COLUMNS = (
    "number, tenant, collection, id, generation, live, state, stage, progress, message, title,"
    " mime, size, source, metadata, chunks, masked, error, accepted_at, started_at, finished_at,"
    " remote, charset, reading"
)


def document_of(row: Sequence[Any]) -> Document:
    """The document in a row of COLUMNS."""
    return Document(
        tenant=row[1],
        collection=row[2],
        id=row[3],
        generation=row[4],
        searchable=row[5] is not None,
        state=DocumentState(row[6]),
        stage=row[7],
        progress=row[8],
        message=row[9],
        title=row[10],
        mime=row[11],
        size=row[12],
        source=row[13],
        metadata=json.loads(row[14]),
        chunks=row[15],
        masked=json.loads(row[16]),
        error=None if row[17] is None else json.loads(row[17]),
        accepted_at=row[18],
        started_at=row[19],
        finished_at=row[20],
        remote=bool(row[21]),
        charset=row[22],
        reading=json.loads(row[23]),
    )


CHUNK_COLUMNS = (
    'chunks.number, chunks.ordinal, chunks.text, chunks.start, chunks."end", chunks.tokens,'
    " chunks.pages, chunks.section, chunks.script"
)


def pages_column(chunk: NewChunk) -> str:
    """Its pages as JSON: the first, the last, and where those after the first begin."""
    return json.dumps(chunk.pages and (*chunk.pages, *chunk.page_starts))


def chunk_of(row: Sequence[Any]) -> StoredChunk:
    """The chunk in a row of CHUNK_COLUMNS."""
    pages = None if row[6] in (None, "null") else json.loads(row[6])
    return StoredChunk(
        ordinal=row[1],
        text=row[2],
        start=row[3],
        end=row[4],
        tokens=row[5],
        pages=None if pages is None else (pages[0], pages[1]),
        section=tuple(json.loads(row[7])),
        script=row[8],
        page_starts=() if pages is None else tuple(pages[2:]),
    )
