"""`app.corpus`: documents in, and out again as what they say."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Any

from penstock.corpus.fusion import Weights
from penstock.corpus.search import SearchResult, search
from penstock.ingest import pipeline
from penstock.ingest.embedding import Embedding
from penstock.ingest.pipeline import PARSE, Tools
from penstock.model.document import (
    DEFAULT_COLLECTION,
    Document,
    DocumentRef,
    DocumentState,
    StoredChunk,
    Upload,
)
from penstock.model.errors import DocumentNotFound, ValidationError, WaitTimeout
from penstock.model.job import Job, PriorityName
from penstock.model.text import storable
from penstock.ports.corpus import Scope

READ_BYTES = 1 << 20
NAME_LIMIT = 512
METADATA_LIMIT = 16 * 1024

Source = bytes | str | Path | AsyncIterable[bytes]
"""Bytes as they are, text, a file, or bytes as they come."""


class Library:
    """The documents of an app. What is done with them is done by jobs; see `pipeline`."""

    def __init__(
        self,
        tools: Tools,
        enqueue: Callable[..., Awaitable[Job]],
        embedding: Embedding,
        most_bytes: int,
        fingerprint: str,
    ) -> None:
        self._tools = tools
        self._enqueue = enqueue
        self._embedding = embedding
        self._most_bytes = most_bytes
        self._fingerprint = fingerprint

    async def open(self) -> None:
        await self._tools.corpus.open()

    async def close(self) -> None:
        await self._tools.parser.close()
        await self._tools.corpus.close()
        await asyncio.to_thread(self._embedding.close)

    async def search(
        self,
        question: str,
        *,
        tenant: str = "default",
        collections: Sequence[str] | None = None,
        documents: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int = 10,
        weights: Weights | None = None,
    ) -> SearchResult:
        """The passages that answer best, by their words and by what they mean."""
        return await search(
            self._tools.corpus,
            question,
            Scope(tenant, collections, documents, metadata or {}),
            model=self._tools.model,
            embed=self._embedding.question,
            limit=limit,
            weights=weights,
        )

    async def add(
        self,
        source: Source,
        *,
        id: str | None = None,  # noqa: A002 (what users call it)
        collection: str = DEFAULT_COLLECTION,
        title: str = "",
        origin: str = "",
        metadata: Mapping[str, Any] | None = None,
        tenant: str = "default",
        priority: PriorityName = "medium",
    ) -> Document:
        """Accept a document: once this returns it is never lost. The same content under the same
        id changes nothing; other content replaces what is there once it is ready.

        `origin` says where it came from, for people. Without an `id` the file's name, else the
        content, is its id.
        """
        if isinstance(source, Path):
            origin = origin or str(source)
            id = id or source.name  # noqa: A001
        blob = await self._tools.blobs.put(_parts(source), most=self._most_bytes)
        mask = self._tools.mask
        kept = False
        try:
            name = _name("id", id or blob.key[:16], self._masked_name)
            ref = DocumentRef(tenant, _name("collection", collection, None), name)
            known = _metadata(metadata or {}, lambda text: mask(text).text)
            title = mask(storable(title)).text[:NAME_LIMIT]
            origin = mask(storable(origin)).text[:NAME_LIMIT]
            decides = [blob.key[:64], title, origin, known, self._fingerprint]
            digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
            upload = Upload(ref, blob.key, digest, blob.size, title, origin, known)
            accepted = await self._tools.corpus.accept(upload)
            kept = accepted.new
        finally:
            if not kept:
                await self._tools.blobs.delete(blob.key)
        if accepted.new:
            await self.start(accepted.document, blob.key, priority)
        return accepted.document

    async def start(self, document: Document, blob: str, priority: PriorityName) -> Job:
        """Enqueue what makes a document searchable; once, however often this is called."""
        ref = document.ref
        return await self._enqueue(
            PARSE,
            {
                "collection": ref.collection,
                "document": ref.id,
                "generation": document.generation,
                "blob": blob,
                "title": document.title,
            },
            key=f"{ref.collection}/{ref.id}@{document.generation}",
            tenant=ref.tenant,
            task=log_of(ref),
            priority=priority,
        )

    def _masked_name(self, name: str) -> str:
        """Names are shown, so they are masked; a mark keeps two that look the same then apart."""
        masked = self._tools.mask(name).text
        if masked == name:
            return name
        return f"{masked}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"

    async def get(
        self,
        id: str,  # noqa: A002
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
    ) -> Document:
        document = await self._tools.corpus.get(DocumentRef(tenant, collection, id))
        if document is None:
            raise DocumentNotFound(id)
        return document

    async def wait(
        self,
        id: str,  # noqa: A002
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
        timeout: float | None = None,
    ) -> Document:
        """The document once it is completed or failed."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    document = await self.get(id, collection=collection, tenant=tenant)
                    if document.state is not DocumentState.PROCESSING:
                        return document
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise WaitTimeout(f"document {id!r} was not ready after {timeout:g} s") from None

    async def documents(
        self,
        *,
        tenant: str = "default",
        collection: str | None = None,
        states: Sequence[DocumentState] | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[Document]:
        """The newest first; `before` is the generation of the last one of the page before."""
        return await self._tools.corpus.documents(
            tenant, collection=collection, states=states, limit=limit, before=before
        )

    async def chunks(
        self,
        id: str,  # noqa: A002
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
    ) -> list[StoredChunk]:
        """What of a document can be found, in order."""
        await self.get(id, collection=collection, tenant=tenant)
        return await self._tools.corpus.chunks(DocumentRef(tenant, collection, id))

    async def delete(
        self,
        id: str,  # noqa: A002
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
    ) -> None:
        """Remove a document, whatever is being done with it."""
        blob = await self._tools.corpus.delete(DocumentRef(tenant, collection, id))
        if blob is None:
            raise DocumentNotFound(id)
        await self._tools.blobs.delete(blob)


def log_of(ref: DocumentRef) -> str:
    """The log that tells what becomes of a document."""
    return f"document:{ref.collection}/{ref.id}"


def _name(what: str, name: str, masked: Callable[[str], str] | None) -> str:
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        raise ValidationError(f"{what} must be 1 to {NAME_LIMIT} printable characters: {name!r}")
    return masked(name) if masked else name


def _metadata(metadata: Mapping[str, Any], mask: Callable[[str], str]) -> dict[str, Any]:
    for key in metadata:
        if not 0 < len(key) <= 100 or '"' in key:
            raise ValidationError(f"{key!r} cannot be a key of metadata")
    try:
        text = json.dumps(dict(metadata))
    except (TypeError, ValueError) as error:
        raise ValidationError(f"metadata must be JSON: {error}") from None
    if len(text) > METADATA_LIMIT:
        raise ValidationError(f"metadata is over {METADATA_LIMIT:,} bytes")
    return {key: _masked(value, mask) for key, value in json.loads(text).items()}


def _masked(value: Any, mask: Callable[[str], str]) -> Any:
    match value:
        case str():
            return mask(storable(value))
        case list():
            return [_masked(one, mask) for one in value]
        case dict():
            return {key: _masked(one, mask) for key, one in value.items()}
        case _:
            return value


async def _parts(source: Source) -> AsyncIterator[bytes]:
    match source:
        case bytes():
            yield source
        case str():
            yield source.encode()
        case Path():
            with source.open("rb") as file:
                while part := await asyncio.to_thread(file.read, READ_BYTES):
                    yield part
        case _:
            async for part in source:
                yield part


def register(tools: Tools, job: Callable[..., Callable[[Any], Any]]) -> None:
    """Let an app do the two jobs."""

    @job(PARSE)
    async def parse(
        ctx: Any, collection: str, document: str, generation: int, blob: str, title: str
    ) -> dict[str, Any]:
        return await pipeline.parse(tools, ctx, collection, document, generation, blob, title)

    @job(pipeline.EMBED, lane=pipeline.EMBEDDER_LANE)
    async def embed(
        ctx: Any, collection: str, document: str, generation: int, blob: str
    ) -> dict[str, Any]:
        return await pipeline.embed(tools, ctx, collection, document, generation, blob)
