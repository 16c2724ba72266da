"""The port to a document store: documents, their chunks and vectors, and search over them.

An adapter promises:
- every accepted upload or delete takes the next generation, which is about the time in
  microseconds and tells nothing of other tenants; only the newest generation of a document can be
  staged, published or marked, checked in the transaction that does it;
- a version that is published is neither staged nor marked again;
- `publish` replaces what can be searched of a document at once, or not at all;
- a `Snapshot` reads text, vectors and documents of one moment, also those that another process
  has published a moment before;
- every row belongs to a tenant, and nothing is read without naming it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from penstock.model.document import (
    Document,
    DocumentRef,
    DocumentState,
    Hit,
    Staged,
    StoredChunk,
    Upload,
)


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


class DocumentStore(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def accept(self, upload: Upload) -> Accepted:
        """Take the next generation for an upload, unless it would only repeat what is there."""
        ...

    async def fetched(self, version: Version, blob: str, arrived: Arrived) -> Document | None:
        """Let what was fetched be the original, instead of `blob`, which said what to fetch. Where
        the version that can be searched was made of the same, it is the newest again, and the
        document completed. None: a newer generation is there, or this one's was fetched before."""
        ...

    async def stage(self, version: Version, staged: Staged) -> bool:
        """Store what parsing made, not to be searched yet. False: a newer generation is there, or
        this one is published."""
        ...

    async def scanned(self, version: Version, basis: str) -> dict[int, ScannedPage] | None:
        """Pages that are read already, by number; None: a newer generation is there. `basis` says
        what was read, and by whom."""
        ...

    async def put_scan(self, version: Version, basis: str, page: int, read: ScannedPage) -> bool:
        """Keep what was read on a page until its document is published or deleted: the
        checkpoint. A later generation with the same basis finds it too. False: a newer generation
        is there."""
        ...

    async def to_embed(self, version: Version, model: str) -> list[ToEmbed] | None:
        """Staged chunks without a vector of `model`; None: a newer generation is there."""
        ...

    async def put_vectors(self, tenant: str, model: str, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors by the hash of what they are of: the checkpoint, and the reuse. Those of a
        model have one length; QueueError for another."""
        ...

    async def publish(self, version: Version, model: str) -> bool:
        """Let this version be found instead of the one before. False: a newer generation is
        there. Every chunk must have a vector of `model`, or there must be no model. ModelReplaced
        where `model` neither serves nor is to."""
        ...

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
        ...

    async def retry(self, version: Version) -> Document | None:
        """Take the next generation for the same original, its error kept. None: this version has
        not failed, or a newer generation is there."""
        ...

    async def processing(self, *, after: int, older_than: float, limit: int) -> list[Pending]:
        """Documents of all tenants that are being worked on and were accepted more than
        `older_than` seconds ago, by generation, those over `after`."""
        ...

    async def in_progress(self, tenant: str, collections: Sequence[str] | None) -> int:
        """How many documents are being worked on, in these collections or in all."""
        ...

    async def original(self, ref: DocumentRef) -> str | None:
        """The blob of the newest version, which may be deleted if that is published. Where that
        is still to be fetched, it says what."""
        ...

    async def blobs_in_use(self, keys: Sequence[str], *, published: bool) -> set[str]:
        """Those that a document still needs: its newest version is not published, or those of
        published ones count too."""
        ...

    async def delete(self, ref: DocumentRef) -> str | None:
        """Remove a document, whatever is being done with it; its blob, None if there was none."""
        ...

    async def get(self, ref: DocumentRef) -> Document | None: ...

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
        ...

    async def collections(self, tenant: str, document_id: str | None = None) -> list[str]:
        """Names of those that have documents, or one of that id, in order. The cost follows the
        number of collections, not that of documents."""
        ...

    async def chunks(self, ref: DocumentRef) -> list[StoredChunk]:
        """Of the version that can be searched, in order."""
        ...

    async def text(self, ref: DocumentRef) -> str | None:
        """The masked text of the version that can be searched."""
        ...

    async def find(self, wanted: DocumentQuery) -> Findings: ...

    async def serving(self) -> ServingModel: ...

    async def want(self, model: str) -> None:
        """Have `model` serve once every live chunk has a vector of it; the last one asked for
        counts. Nothing is to be done where it serves already, or nothing is published yet."""
        ...

    async def to_reembed(self, model: str, limit: int) -> list[tuple[str, ToEmbed]]:
        """Live texts of any tenant, and whose, that have no vector of `model`."""
        ...

    async def serve(self, model: str) -> bool:
        """Let `model` serve from now on. False: some live chunk has no vector of it yet, or
        another is wanted by now."""
        ...

    async def purge(
        self, *, after: tuple[Any, ...] | None, keep_seconds: float, limit: int
    ) -> Purged:
        """Look at the next `limit` vectors behind a key: note those that nothing needs, and delete
        those for which that was noted `keep_seconds` ago. What is staged meanwhile is safe."""
        ...
