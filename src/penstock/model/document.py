"""Documents, their chunks, and search results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

DEFAULT_COLLECTION = "default"


class DocumentState(StrEnum):
    """Of the newest version; an older one may be searchable meanwhile, see `Document.live`."""

    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


class DocumentRef(NamedTuple):
    """A reference to a document: tenant, collection and id."""

    tenant: str
    collection: str
    id: str


@dataclass(slots=True, frozen=True)
class Document:
    """A document as it stands. Nothing here is unmasked: titles, sources and errors neither."""

    ref: DocumentRef
    generation: int
    """Greater for every later upload or delete of any document; only the newest may publish."""
    state: DocumentState
    stage: str
    """What is being done: fetch, waiting, parse, scan, embed, done."""
    progress: float
    message: str
    live: bool
    """Whether some version of it can be searched."""
    title: str
    mime: str
    size: int
    """Bytes of the original."""
    source: str
    """Where it came from: a file name or an address."""
    metadata: Mapping[str, Any]
    chunks: int
    masked: Mapping[str, int]
    """Kinds of personal data that were masked, and how often. Never the values."""
    error: Mapping[str, Any] | None
    accepted_at: float
    started_at: float | None
    finished_at: float | None
    remote: bool = False
    """Whether its original is still to be fetched."""
    charset: str = ""
    """The encoding of its text, where a server has named one."""
    reading: Mapping[str, str] = field(default_factory=dict)
    """Of a page of the web: whether its `text` is the main one or the whole, `why` it is the whole,
    and what it says of itself: language, author, date."""

    def as_dict(self) -> dict[str, Any]:
        """A JSON-ready form; what `--json` prints."""
        fields = asdict(self)
        del fields["ref"]
        tenant, collection, document_id = self.ref
        return {"id": document_id, "collection": collection, "tenant": tenant, **fields}


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


class StoredChunk(NamedTuple):
    number: int
    ordinal: int
    text: str
    """As that of `NewChunk`."""
    start: int
    end: int
    tokens: int
    pages: tuple[int, int] | None
    section: tuple[str, ...]
    script: str
    page_starts: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """A JSON-ready form, without the number: a row of the store, of use to nobody else."""
        fields = self._asdict()
        del fields["number"]
        return fields


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
