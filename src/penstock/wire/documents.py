"""Documents, their chunks, and search results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.model.document import Document, StoredChunk
from penstock.retrieval.fusion import Ranks
from penstock.retrieval.search import Passage, SearchResult
from penstock.wire.view import WireView, described

described(Document, Passage, Ranks, SearchResult, StoredChunk)


@dataclass(slots=True, frozen=True)
class Chunks(WireView):
    chunks: Sequence[StoredChunk]


@dataclass(slots=True, frozen=True)
class AddedDocuments(WireView):
    documents: Sequence[Document]


@dataclass(slots=True, frozen=True)
class DocumentPage(AddedDocuments):
    """A page of a list of documents."""

    next: int | None
    """Pass it as `before` for the next page; None: last page."""


@dataclass(slots=True, frozen=True)
class Upserted(WireView):
    document: Document
    job: str | None
    """The job that processes it."""
