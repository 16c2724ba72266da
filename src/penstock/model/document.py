"""Documents, their chunks, and search results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

DEFAULT_COLLECTION = "default"


class DocumentState(StrEnum):
    """Of the newest version; see `Document.searchable` for an older one."""

    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


class DocumentRef(NamedTuple):
    """A reference to a document: tenant, collection and id."""

    tenant: str
    collection: str
    id: str


@dataclass(slots=True, frozen=True)
class DocumentSummary:
    """A document in short. Nothing here is unmasked: titles, sources and errors neither."""

    id: str
    collection: str
    title: str
    source: str
    """Where it came from: an address or a file name."""
    state: DocumentState
    phase: str
    """What is being done: fetch, waiting, parse, scan, embed, done."""
    progress: float
    """From 0 to 1."""
    searchable: bool
    """Whether a version of it can be found now."""
    chunks: int
    """Parts that it was cut into, each of which can be found."""
    error: Mapping[str, Any] | None
    """Why it failed: type, message and the like."""


@dataclass(slots=True, frozen=True)
class Document(DocumentSummary):
    """A document as it stands."""

    tenant: str
    generation: int
    """Greater for every later upload or delete of any document; only the newest may publish."""
    message: str
    mime: str
    size: int
    """Bytes of the original."""
    metadata: Mapping[str, Any]
    masked: Mapping[str, int]
    """Kinds of personal data that were masked, and how often. Never the values."""
    accepted_at: float
    """Seconds since 1970."""
    started_at: float | None
    finished_at: float | None
    remote: bool = False
    """Whether its original is still to be fetched."""
    charset: str = ""
    """The encoding of its text, where a server has named one."""
    reading: Mapping[str, str] = field(default_factory=dict)
    """Of a page of the web: whether its `text` is the main one or the whole, `why` it is the whole,
    and what it says of itself: language, author, date."""

    @property
    def ref(self) -> DocumentRef:
        return DocumentRef(self.tenant, self.collection, self.id)


@dataclass(slots=True, frozen=True)
class Upload:
    """A document to be accepted; its bytes are in the blob store already."""

    ref: DocumentRef
    blob: str
    digest: str
    """Of the bytes and of everything else that decides what becomes of them."""
    size: int
    title: str = ""
    source: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    remote: bool = False
    """The blob only says what to fetch."""
    charset: str = ""
    retry: bool = False
    """Whether to try again where the same has failed before."""


class NewChunk(NamedTuple):
    """A chunk to be staged; offsets are into the masked text."""

    text: str
    """What is from `start` to `end`, behind what is `repeated`."""
    start: int
    end: int
    fresh: int
    """Where what the chunk before did not have begins."""
    tokens: int
    pages: tuple[int, int] | None
    section: tuple[str, ...]
    hash: str
    terms: str
    """What full text search knows it by."""
    script: str
    """What it is written in."""
    page_starts: tuple[int, ...] = ()
    """Where each of its pages after the first begins."""

    @property
    def repeated(self) -> str:
        """The header of the table that it begins in the middle of."""
        return self.text[: len(self.text) - (self.end - self.start)]


@dataclass(slots=True, frozen=True)
class StoredChunk:
    """A part of a document that can be found."""

    ordinal: int
    text: str
    """What is from `start` to `end` of the document's text, behind a header that it repeats."""
    start: int
    end: int
    tokens: int
    pages: tuple[int, int] | None
    """First and last page, where it has pages."""
    section: tuple[str, ...]
    """The headings above it."""
    script: str
    """What it is written in."""
    page_starts: tuple[int, ...] = ()
    """Where in the document's text each of its pages after the first begins."""


@dataclass(slots=True, frozen=True)
class Staged:
    """The parsed form of a document, to be stored."""

    text: str
    chunks: Sequence[NewChunk]
    title: str
    mime: str
    masked: Mapping[str, int]
    reading: Mapping[str, str] = field(default_factory=dict)
    """See `Document`."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """How long its stages took, in order, where that is known. Not stored."""


class Hit(NamedTuple):
    """A chunk that one kind of search found."""

    chunk: int
    score: float
