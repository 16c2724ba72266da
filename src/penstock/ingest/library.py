"""`app.corpus`: documents in, and out again as what they say."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterable, AsyncIterator, Container, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from penstock.corpus.fusion import Weights
from penstock.corpus.search import SearchResult, search
from penstock.engine.orchestrator import Chore
from penstock.engine.waiters import LogWaiters
from penstock.ingest.embedding import Embedding
from penstock.ingest.jobs import EMBED, PARSE, Enqueue, log_of, start
from penstock.ingest.names import Names
from penstock.ingest.pipeline import Tools
from penstock.ingest.purge import Purge
from penstock.ingest.reconcile import Reconciler
from penstock.ingest.reembed import Reembedding
from penstock.model.document import (
    DEFAULT_COLLECTION,
    Document,
    DocumentRef,
    DocumentState,
    StoredChunk,
    Upload,
)
from penstock.model.errors import (
    DocumentNotFound,
    PenstockError,
    ValidationError,
    WaitTimeout,
)
from penstock.model.job import Priority, PriorityName
from penstock.ports.corpus import Scope, Version
from penstock.ports.queue import JobQueue

READ_BYTES = 1 << 20
LOOK_SECONDS = 1.0
"""Whoever waits for a document also looks this often: not every change is in its log."""

Source = bytes | str | Path | AsyncIterable[bytes]
"""Bytes as they are, text, a file, or bytes as they come."""


class Library:
    """The documents of an app. What is done with them is done by jobs; see `pipeline`."""

    def __init__(
        self,
        tools: Tools,
        queue: JobQueue,
        enqueue: Enqueue,
        logs: LogWaiters,
        embedding: Embedding,
        most_bytes: int,
        fingerprint: str,
        purge: Purge,
    ) -> None:
        self._tools = tools
        self._queue = queue
        self._enqueue = enqueue
        self._logs = logs
        self._embedding = embedding
        self._most_bytes = most_bytes
        self._fingerprint = fingerprint
        self._purge = purge
        self._names = Names(tools.mask)

    async def open(self) -> None:
        await self._tools.corpus.open()
        self._tools.parser.open()

    async def close(self) -> None:
        await self._tools.parser.close()
        await self._tools.corpus.close()
        await asyncio.to_thread(self._embedding.close)

    def chores(self, kinds: Container[str]) -> list[Chore]:
        """What a process that works on documents does beside its jobs."""
        if PARSE not in kinds and EMBED not in kinds:
            return []
        tools = self._tools
        return [
            Reconciler(tools, self._queue, self._enqueue),
            Reembedding(tools.corpus, tools.model, self._enqueue),
            self._purge,
        ]

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
        """The passages that answer best, by their words and by what they mean. The question is
        masked too: it goes to the embedder, and what it names is masked in every passage."""
        names = self._names
        scope = Scope(
            tenant,
            None if collections is None else [names.collection(one) for one in collections],
            None if documents is None else [names.id(one) for one in documents],
            names.metadata(metadata or {}),
        )
        model = (await self._tools.corpus.serving()).model or self._tools.model
        return await search(
            self._tools.corpus,
            self._tools.mask(question).text,
            scope,
            model=model,
            embed=partial(self._embedding.question, model),
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
        names, rank = self._names, Priority.parse(priority)
        # All is checked before a byte is stored. The id is a stand-in where the content is it.
        ref = names.ref(tenant, collection, id or "content")
        known, title, origin = names.metadata(metadata or {}), names.text(title), names.text(origin)
        blob = await self._tools.blobs.put(_parts(source), most=self._most_bytes)
        if not id:
            ref = names.ref(tenant, collection, blob.key[:16])
        decides = [blob.key[:64], title, origin, known, self._fingerprint]
        digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()
        before = await self._tools.corpus.original(ref)
        try:
            accepted = await self._tools.corpus.accept(
                Upload(ref, blob.key, digest, blob.size, title, origin, known)
            )
        except PenstockError:
            await self._tools.blobs.delete(blob.key)
            raise
        # Interrupted before here, it may be accepted or not: then the reconciler finds out.
        if not accepted.new:
            await self._tools.blobs.delete(blob.key)
            return accepted.document
        await start(self._enqueue, accepted.document, blob.key, rank)
        if before is not None:
            await self._tools.let_go(before)
        return accepted.document

    async def retry(
        self,
        id: str,  # noqa: A002
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
        priority: PriorityName = "medium",
    ) -> Document:
        """Try a failed document again, from its original. What went wrong stays on it until it is
        published. BlobMissing where the original is gone: add it again."""
        rank = Priority.parse(priority)
        document = await self.get(id, collection=collection, tenant=tenant)
        ref = document.ref
        if document.state is not DocumentState.FAILED:
            raise ValidationError(
                f"document {ref.id!r} is {document.state}; only a failed one is tried again"
            )
        blob = await self._tools.corpus.original(ref)
        if blob is not None:
            async with self._tools.blobs.local(blob):
                again = await self._tools.corpus.retry(Version(ref, document.generation))
            if again is not None:
                await start(self._enqueue, again, blob, rank)
                return again
        return await self.get(id, collection=collection, tenant=tenant)  # somebody was faster

    def ref(
        self,
        id: str,  # noqa: A002
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
    ) -> DocumentRef:
        """What a document of this name is stored under: the same, unless the name was masked."""
        return self._names.ref(tenant, collection, id)

    def masked(self, text: str) -> str:
        """A text about documents as it may be shown or logged."""
        return self._names.text(text)

    async def get(
        self,
        id: str,  # noqa: A002
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
    ) -> Document:
        return await self._get(self._names.ref(tenant, collection, id))

    async def _get(self, ref: DocumentRef) -> Document:
        document = await self._tools.corpus.get(ref)
        if document is None:
            raise DocumentNotFound(ref.id)
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
        ref = self._names.ref(tenant, collection, id)
        log = log_of(ref)
        try:
            async with asyncio.timeout(timeout):
                while True:
                    # The log first: what changes after that wakes us.
                    (seen,) = await self._queue.versions([(tenant, log)])
                    document = await self._get(ref)
                    if document.state is not DocumentState.PROCESSING:
                        return document
                    await self._logs.wait(tenant, log, seen, LOOK_SECONDS)
        except TimeoutError:
            raise WaitTimeout(f"document {ref.id!r} was not ready after {timeout:g} s") from None

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
            tenant,
            collection=None if collection is None else self._names.collection(collection),
            states=states,
            limit=limit,
            before=before,
        )

    async def chunks(
        self,
        id: str,  # noqa: A002
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
    ) -> list[StoredChunk]:
        """What of a document can be found, in order."""
        document = await self.get(id, collection=collection, tenant=tenant)
        return await self._tools.corpus.chunks(document.ref)

    async def delete(
        self,
        id: str,  # noqa: A002
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
    ) -> None:
        """Remove a document, whatever is being done with it."""
        ref = self._names.ref(tenant, collection, id)
        blob = await self._tools.corpus.delete(ref)
        if blob is None:
            raise DocumentNotFound(ref.id)
        await self._tools.blobs.delete(blob)


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
