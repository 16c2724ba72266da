"""`app.documents`: adds, searches and deletes documents."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from penstock.documents.accept import DocumentAcceptor, now_or_later, size_of
from penstock.documents.addresses import Remote
from penstock.documents.download import Before, Brought, bring, lane_of_host
from penstock.documents.embedding import Embedding
from penstock.documents.jobs import EMBED, FETCH, PARSE, SCAN, Enqueue, log_of
from penstock.documents.parse.pool import ParserPool
from penstock.documents.pipeline import IngestDeps
from penstock.documents.reconcile import DocumentReconciler
from penstock.documents.reembed import Purge, Reembedding
from penstock.engine.assembly import Chore
from penstock.engine.context import JobContext
from penstock.engine.waiters import LogWaiters
from penstock.errors import DocumentNotFound, PenstockError, ValidationError, WaitTimeout
from penstock.model.document import (
    DEFAULT_COLLECTION,
    Document,
    DocumentRef,
    DocumentState,
    StoredChunk,
)
from penstock.model.job import Priority, PriorityName
from penstock.ports.documents import Scope, Version
from penstock.ports.queue import JobQueue
from penstock.retrieval.fusion import Weights
from penstock.retrieval.relevance import Cutoff
from penstock.retrieval.search import SearchResult, search
from penstock.text.normalize import storable

LOOK_SECONDS = 1.0
"""Polling interval of waits: not every change is in the log."""
REASON_LIMIT = 500
"""Characters of an error as people are told it."""
NOT_LOOKED_FOR = "personal data is not searched for: it is masked in every document"

_WORD = re.compile(r"\w")


class Documents(DocumentAcceptor):
    """The documents of an app. Jobs do the work; see `pipeline`."""

    def __init__(
        self,
        tools: IngestDeps,
        queue: JobQueue,
        enqueue: Enqueue,
        logs: LogWaiters,
        embedding: Embedding,
        remote: Remote,
        most_bytes: int,
        fingerprint: str,
        purge: Purge,
        patience: float,
        cutoff: Callable[[str], Cutoff],
    ) -> None:
        super().__init__(tools, enqueue, embedding, remote, most_bytes, fingerprint)
        self._queue = queue
        self._logs = logs
        self._purge = purge
        self._patience = patience
        self._cutoff = cutoff

    async def open(self) -> None:
        await self._tools.documents.open()
        for pool in self._pools():
            pool.open()

    async def close(self) -> None:
        for pool in self._pools():
            await pool.close()
        await self._tools.blobs.close()
        await self._tools.objects.close()
        await self._tools.documents.close()
        await self._embedding.close()

    def _pools(self) -> list[ParserPool]:
        reader = self._tools.scan_reader
        return [self._tools.parser] if reader is None else [self._tools.parser, reader.pool]

    def chores(self, kinds: Container[str]) -> list[Chore]:
        """Background work of a process that ingests. Raises ConfigError if it cannot be done:
        better not to start than to fail every scan."""
        if not any(kind in kinds for kind in (FETCH, PARSE, EMBED)):
            return []
        tools = self._tools
        if tools.scan_reader is not None and SCAN in kinds:
            tools.scan_reader.check()
        return [
            DocumentReconciler(tools, self._remote, self._queue, self._enqueue, self._patience),
            Reembedding(tools.documents, tools.model, self._enqueue),
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
        seconds: float | None = None,
    ) -> SearchResult:
        """Return the passages that best answer the question, by keywords and by meaning; none if
        nothing is relevant (settings `search_min_*`). The question is masked too, because it
        goes to the embedder. Personal data in it is not searched for, and `note` says so. Raises
        TimeoutError after `seconds`, which also limits the store."""

        def masked() -> tuple[str, Scope]:
            names = self._names
            return self._tools.mask(question).text, Scope(
                tenant,
                None if collections is None else [names.collection(one) for one in collections],
                None if documents is None else [names.id(one) for one in documents],
                names.metadata(metadata or {}),
            )

        async with asyncio.timeout(seconds) as limited:
            size = size_of(question, *(collections or ()), *(documents or ()), metadata=metadata)
            text, scope = await self._tools.masked(masked, size)
            asked = self._tools.mask.without_labels(text)
            if asked != text and not _WORD.search(asked):
                return SearchResult([], "hybrid", NOT_LOOKED_FOR)
            model = (await self._tools.documents.serving()).model or self._tools.model
            found = await search(
                self._tools.documents.find,
                asked,
                scope,
                model=model,
                embed=partial(self._embedding.question, model, tenant),
                limit=limit,
                weights=weights,
                cutoff=self._cutoff(model),
                until=limited.when(),
            )
            if asked != text:
                notes = filter(None, [NOT_LOOKED_FOR, found.note])
                found = replace(found, note="; ".join(notes))
            return found

    async def bring(self, ctx: JobContext, url: str, *, before: Before | None = None) -> Brought:
        """In a job: store the content of a URL, for `add`. `before` is called before every hop, see
        `JobFetch`."""
        return await bring(self._tools, ctx, url, most=self._most_bytes, before=before)

    async def lane_of(self, host: str) -> str:
        """Return the lane of requests to a host."""
        return await lane_of_host(self._tools, host)

    async def retry(
        self,
        id: str,
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
        priority: PriorityName = "medium",
    ) -> Document:
        """Retry a failed document from its original, or from its URL if that was not fetched.
        Its error is kept until it is published. Raises BlobMissing if the original is gone: add
        it again."""
        rank = Priority.parse(priority)
        document = await self.get(id, collection=collection, tenant=tenant)
        ref = document.ref
        if document.state is not DocumentState.FAILED:
            raise ValidationError(
                f"document {ref.id!r} is {document.state}; only failed documents can be retried"
            )
        blob = await self._tools.documents.original(ref)
        if blob is not None:
            await self._tools.blobs.check(blob)
            again = await self._tools.documents.retry(Version(ref, document.generation))
            if again is not None:
                await self._start(again, blob, rank)
                return again
        return await self.get(id, collection=collection, tenant=tenant)  # somebody was faster

    def ref(
        self, id: str, *, collection: str = DEFAULT_COLLECTION, tenant: str = "default"
    ) -> DocumentRef:
        """Return the stored name of a document: the same, unless it was masked."""
        return self._names.ref(tenant, collection, id)

    async def collections(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the stored names of collections, without duplicates."""
        masked = await self._tools.masked(lambda: [self._names.collection(one) for one in names])
        return tuple(dict.fromkeys(masked))

    async def mask(self, texts: Sequence[str]) -> list[str]:
        """Mask the personal data in texts of any kind."""
        mask = self._tools.mask
        return await self._tools.masked(
            lambda: [mask(storable(text)).text for text in texts], size_of(*texts)
        )

    async def masked_reason(self, error: BaseException) -> str:
        """Format an error for people, masked."""
        said = str(error) or type(error).__name__
        if not isinstance(error, PenstockError):
            said = f"{type(error).__name__}: {said}"
        (masked,) = await self.mask([said])
        return masked[:REASON_LIMIT]

    def masked(self, text: str) -> str:
        """Mask a text about documents, to show or log it."""
        return self._names.text(text)

    async def get(
        self, id: str, *, collection: str = DEFAULT_COLLECTION, tenant: str = "default"
    ) -> Document:
        return await self._get(await self._ref(tenant, collection, id))

    async def _get(self, ref: DocumentRef) -> Document:
        document = await self._tools.documents.get(ref)
        if document is None:
            raise DocumentNotFound(ref.id)
        return document

    async def wait(
        self,
        id: str,
        *,
        collection: str = DEFAULT_COLLECTION,
        tenant: str = "default",
        timeout: float | None = None,
    ) -> Document:
        """Wait until the document is completed or failed, and return it."""
        ref = await self._ref(tenant, collection, id)
        log = log_of(ref)
        try:
            async with asyncio.timeout(timeout):
                while True:
                    # The log first: what changes after that wakes us.
                    (seen,) = await self._queue.versions([(tenant, log)])
                    document = await self._get(ref)
                    if document.state is not DocumentState.PROCESSING:
                        return document
                    await self._logs.passed(tenant, log, seen, LOOK_SECONDS)
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
        """List documents, newest first; `before` is the generation of the last one of the
        previous page."""
        if collection is not None:
            where = collection
            collection = await self._tools.masked(lambda: self._names.collection(where))
        return await self._tools.documents.documents(
            tenant, collection=collection, states=states, limit=limit, before=before
        )

    async def collections_of(self, id: str | None = None, *, tenant: str = "default") -> list[str]:
        """Return the names of the collections that have documents, or the document of that id."""
        if id is not None:
            id = (await self._ref(tenant, DEFAULT_COLLECTION, id)).id
        return await self._tools.documents.collections(tenant, id)

    async def in_progress(self, tenant: str, collections: Sequence[str] | None) -> int:
        """Number of documents being processed, in these collections or in all."""
        return await self._tools.documents.in_progress(tenant, collections)

    async def chunks(
        self, id: str, *, collection: str = DEFAULT_COLLECTION, tenant: str = "default"
    ) -> list[StoredChunk]:
        """Return the indexed chunks of a document, in order."""
        document = await self.get(id, collection=collection, tenant=tenant)
        return await self._tools.documents.chunks(document.ref)

    async def delete(
        self, id: str, *, collection: str = DEFAULT_COLLECTION, tenant: str = "default"
    ) -> None:
        """Delete a document, in any state."""
        ref = await self._ref(tenant, collection, id)
        blob = await self._tools.documents.delete(ref)
        if blob is None:
            raise DocumentNotFound(ref.id)
        await now_or_later(self._tools.blobs.delete(blob))
