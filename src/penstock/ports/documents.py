"""Values that a store of documents takes and gives: versions, pages, searches and findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.model.document import Document, DocumentRef, Hit, StoredChunk


class Version(NamedTuple):
    """One generation of a document."""

    ref: DocumentRef
    generation: int


class Accepted(NamedTuple):
    document: Document
    new: bool
    """False: the same bytes are there, on their way, or have failed and are not to be retried."""


class Arrived(NamedTuple):
    """A document that was fetched: see `Upload`."""

    blob: str
    digest: str
    size: int
    title: str
    charset: str = ""


class Pending(NamedTuple):
    """A document under way, and its original."""

    document: Document
    blob: str
    request: str | None
    """The blob that said what to fetch; it may be deleted by now. None: it was uploaded."""


class ServingModel(NamedTuple):
    """The embedding model whose vectors searches compare with. Those of two are never mixed."""

    model: str | None
    """None: nothing is published yet."""
    next: str | None
    """The one whose vectors are being made to take its place."""
    number: int
    """Greater each time another is wanted."""


class ScannedPage(NamedTuple):
    """The masked text of a scanned page, and counts of what was masked."""

    text: str
    masked: Mapping[str, int]


class Purged(NamedTuple):
    """One step through the vectors."""

    deleted: int
    after: tuple[Any, ...] | None
    """Where the next step goes on; None: at the beginning, all were looked at."""


class ToEmbed(NamedTuple):
    """A chunk text whose vector is not known yet."""

    hash: str
    text: str


@dataclass(slots=True, frozen=True)
class Scope:
    """The scope of a search."""

    tenant: str
    collections: Sequence[str] | None = None
    documents: Sequence[str] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Keys that a document's metadata must have with these values."""


class Place(NamedTuple):
    """A chunk that was found, and the document it is of."""

    chunk: StoredChunk
    document: Document


class Findings(NamedTuple):
    """Both kinds of search on one snapshot. Scores are greater for better hits."""

    text: list[Hit]
    vector: list[Hit]
    places: dict[int, Place]
    """Of every chunk found, by number."""


Choose = Callable[[Mapping[str, int], int], Sequence[str]]
"""Which terms to ask for, given how many chunks hold each, and how many chunks there are."""


class DocumentQuery(NamedTuple):
    """A search request."""

    scope: Scope
    terms: Sequence[str]
    """For full text; none: no such search."""
    choose: Choose
    vector: bytes | None
    """Float32, little endian, unit length."""
    model: str
    """Whose vectors to compare it with."""
    limit: int
    seconds: float | None = None
    """How long whoever asks will wait. A store on a server tells it, so that it does not go on for
    somebody who is gone, or was killed."""
