"""Documents, their chunks, and what a search finds in them."""

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
    """Part of a list of documents."""

    next: int | None
    """Give it as `before` for the next page; None: there is none."""


@dataclass(slots=True, frozen=True)
class Upserted(WireView):
    document: Document
    job: str | None
    """The job that is at work on it."""
