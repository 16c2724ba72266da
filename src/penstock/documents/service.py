"""`app.documents`: adds, searches and deletes documents."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from penstock.adapters.blobs.address import BucketAddress, ObjectAddress, is_object, object_address
from penstock.documents.addresses import Remote, Request, digest_of, name_of, shown
from penstock.documents.document_names import Names
from penstock.documents.download import Before, Brought, bring, lane_of_host
from penstock.documents.embedding import Embedding
from penstock.documents.jobs import EMBED, FETCH, PARSE, SCAN, Enqueue, log_of, start
from penstock.documents.parse.pool import ParserPool
from penstock.documents.pipeline import IngestDeps
from penstock.documents.purge import Purge
from penstock.documents.reconcile import DocumentReconciler
from penstock.documents.reembed import Reembedding
from penstock.engine.assembly import Chore
from penstock.engine.context import JobContext
from penstock.engine.waiters import LogWaiters
from penstock.errors import (
    BlobMissing,
    DocumentNotFound,
    PenstockError,
    StoreUnavailable,
    ValidationError,
    WaitTimeout,
)
from penstock.model.document import (
    DEFAULT_COLLECTION,
    Document,
    DocumentRef,
    DocumentState,
    StoredChunk,
    Upload,
)
from penstock.model.job import Priority, PriorityName
from penstock.outbound.web_address import WebAddress, check, web_address
from penstock.ports.blobs import Blob
from penstock.ports.documents import Accepted, Scope, Version
from penstock.ports.queue import JobQueue
from penstock.retrieval.fusion import Weights
from penstock.retrieval.relevance import Cutoff
from penstock.retrieval.search import SearchResult, search
from penstock.text.normalize import storable

log = logging.getLogger("penstock.ingest")

READ_BYTES = 1 << 20
LOOK_SECONDS = 1.0
"""Polling interval of waits: not every change is in the log."""
NOT_LOOKED_FOR = "personal data is not searched for: it is masked in every document"
FAILED_BEFORE = "the same content failed before; give `retry` to try again"

_WORD = re.compile(r"\w")

Content = bytes | str | Path | AsyncIterable[bytes]
"""Bytes, text, a file, or a stream of bytes."""
Source = Content | Blob
"""Content, or a blob received before."""
HandOver = Callable[[Document, Priority], Awaitable[bool]]
"""Passes an accepted document to another process, which enqueues its job with `begin`; False if
that failed."""


class Documents:
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
        self._tools = tools
        self._queue = queue
        self._enqueue = enqueue
        self._logs = logs
        self._embedding = embedding
        self._remote = remote
        self._most_bytes = most_bytes
        self._fingerprint = fingerprint
        self._purge = purge
        self._patience = patience
        self._cutoff = cutoff
        self._names = Names(tools.mask)
        self._passed_on: HandOver | None = None

    def hand_over(self, to: HandOver) -> None:
        """From now on pass accepted documents on, instead of enqueueing their jobs."""
        self._passed_on = to

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

    def check(self) -> None:
        """Raise MissingExtra if documents could be accepted but never become searchable."""
        self._embedding.check()

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
            size = _size(question, *(collections or ()), *(documents or ()), metadata=metadata)
            text, scope = await self._tools.masked(masked, size)
            asked = self._tools.mask.without_labels(text)
            if asked != text and not _WORD.search(asked):
                return SearchResult([], "hybrid", NOT_LOOKED_FOR)
            model = (await self._tools.documents.serving()).model or self._tools.model
            found = await search(
                self._tools.documents,
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

    async def receive(self, parts: AsyncIterable[bytes]) -> Blob:
        """Store a stream of bytes, for `add` once the rest of a request is known. Drop what is
        never passed to `add`; otherwise it is deleted hours later."""
        self.check()
        return await self._tools.blobs.put(parts, most=self._most_bytes)

    async def drop(self, blob: Blob) -> None:
        await self._tools.blobs.delete(blob.key)

    async def bring(self, ctx: JobContext, url: str, *, before: Before | None = None) -> Brought:
        """In a job: store the content of a URL, for `add`. `before` is called before every hop, see
        `JobFetch`."""
        return await bring(self._tools, ctx, url, most=self._most_bytes, before=before)

    async def lane_of(self, host: str) -> str:
        """Return the lane of requests to a host."""
        return await lane_of_host(self._tools, host)

    async def add(
        self,
        source: Source,
        *,
        id: str | None = None,
        collection: str = DEFAULT_COLLECTION,
        title: str = "",
        origin: str = "",
        metadata: Mapping[str, Any] | None = None,
        charset: str = "",
        tenant: str = "default",
        priority: PriorityName | Priority = "medium",
        retry: bool = False,
    ) -> Document:
        """Accept a document: once this returns it is never lost. The same content under the same id
        changes nothing; other content replaces the current version once it is ready. Content that
        has failed before is retried only with `retry`; otherwise the failed document is returned,
        with its error and a message that says so.

        `origin` is its source, for people; of an HTML page from the web only the main text is kept.
        `charset` is the encoding declared by a server. The default `id` is the file's name, or
        derived from the content. A blob belongs to the library from here on, even if this fails: by
        then the document may be accepted.
        """
        self.check()
        if isinstance(source, Path):
            origin = origin or str(source)
            id = id or source.name
        names = self._names
        try:
            # All is checked before a byte is stored. The id is a stand-in where the content is it.
            rank = Priority.parse(priority)
            ref = await self._ref(tenant, collection, id or "content")
            known, title, origin, charset = await self._tools.masked(
                lambda: (
                    names.metadata(metadata or {}),
                    names.text(title),
                    names.text(origin),
                    names.text(charset),
                ),
                _size(title, origin, charset, metadata=metadata),
            )
        except PenstockError:
            if isinstance(source, Blob):
                await self.drop(source)
            raise
        blob = source if isinstance(source, Blob) else await self.receive(_parts(source))
        if not id:
            ref = await self._ref(tenant, collection, blob.key[:16])
        digest = digest_of(blob.key[:64], title, origin, known, self._fingerprint, charset)
        upload = Upload(
            ref, blob.key, digest, blob.size, title, origin, known, charset=charset, retry=retry
        )
        return await self._accept(upload, rank)

    async def add_url(
        self,
        url: str,
        *,
        id: str | None = None,
        collection: str = DEFAULT_COLLECTION,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        tenant: str = "default",
        priority: PriorityName = "medium",
        buckets: Sequence[BucketAddress] = (),
    ) -> Document:
        """Accept a document that the workers fetch, from a public address or one in the setting
        `fetch_allow`; raises AddressRefused if it can be rejected at once. Once this returns it is
        not lost. The default `id` is the URL. Adding it again fetches it again; the same content
        changes nothing.

        With `buckets` it may also be an object in one of them, below its prefix
        (`s3://bucket/prefix/name`), which is read but not modified.
        """
        self.check()
        names, rank, endpoint = self._names, Priority.parse(priority), None
        address: WebAddress | ObjectAddress
        if buckets and is_object(url):
            address = object_address(url, buckets)
            endpoint = address.bucket.endpoint
        else:
            address = web_address(url)
            check(address, self._remote.allow)
        ref = await self._ref(tenant, collection, id or name_of(address))
        known, title, source = await self._tools.masked(
            lambda: (names.metadata(metadata or {}), names.text(title), names.text(shown(address))),
            _size(title, url, metadata=metadata),
        )
        blob = await Request(address.url, title, endpoint).keep(self._tools.blobs)
        digest = digest_of(address.url, title, source, known, self._fingerprint, "")
        upload = Upload(ref, blob.key, digest, 0, title, source, known, remote=True, retry=True)
        return await self._accept(upload, rank)

    async def _accept(self, upload: Upload, priority: Priority) -> Document:
        before = await self._tools.documents.original(upload.ref)
        try:
            accepted = await self._tools.documents.accept(upload)
            if self._failed_before(accepted) and before and await self._is_gone(before):
                accepted = await self._tools.documents.accept(replace(upload, retry=True))
        except PenstockError:
            await self._tools.blobs.delete(upload.blob)
            raise
        # Interrupted before here, it may be accepted or not: then the reconciler finds out.
        spare = before if accepted.new else upload.blob
        if accepted.new:
            pass_on, document = self._passed_on, accepted.document
            if pass_on is None or not await pass_on(document, priority):
                await self._start(document, upload.blob, priority)
        if spare is not None:
            await _now_or_later(self._tools.let_go(spare))
        if self._failed_before(accepted):
            return replace(accepted.document, message=FAILED_BEFORE)
        return accepted.document

    async def begin(
        self,
        id: str,
        *,
        collection: str = DEFAULT_COLLECTION,
        generation: int,
        tenant: str = "default",
        priority: PriorityName = "medium",
    ) -> bool:
        """Enqueue the job of a document that was passed on; idempotent. False if there is nothing
        to do: it was replaced, deleted, or processed before."""
        rank, ref = Priority.parse(priority), await self._ref(tenant, collection, id)
        document, blob = (
            await self._tools.documents.get(ref),
            await self._tools.documents.original(ref),
        )
        if document is None or blob is None or document.generation != generation:
            return False
        if document.state is not DocumentState.PROCESSING:
            return False
        await self._start(document, blob, rank)
        return True

    @staticmethod
    def _failed_before(accepted: Accepted) -> bool:
        return not accepted.new and accepted.document.state is DocumentState.FAILED

    async def _is_gone(self, blob: str) -> bool:
        """Whether a failed document cannot be retried, because its original is gone."""
        try:
            await self._tools.blobs.check(blob)
        except BlobMissing:
            return True
        return False

    async def _start(self, document: Document, blob: str, priority: Priority) -> None:
        if document.remote:
            await self._remote.start(self._enqueue, document, blob, priority)
        else:
            await start(self._enqueue, document, blob, priority)

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
            lambda: [mask(storable(text)).text for text in texts], _size(*texts)
        )

    def masked(self, text: str) -> str:
        """Mask a text about documents, to show or log it."""
        return self._names.text(text)

    async def get(
        self, id: str, *, collection: str = DEFAULT_COLLECTION, tenant: str = "default"
    ) -> Document:
        return await self._get(await self._ref(tenant, collection, id))

    async def _ref(self, tenant: str, collection: str, name: str) -> DocumentRef:
        return await self._tools.masked(lambda: self._names.ref(tenant, collection, name))

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
        await _now_or_later(self._tools.blobs.delete(blob))


async def _now_or_later(deleting: Awaitable[None]) -> None:
    """Ignore that an original cannot be deleted now: the document is accepted, or gone, in any
    case."""
    try:
        await deleting
    except StoreUnavailable as error:
        log.warning("could not delete an original, left for cleanup: %s", error)


async def _parts(source: Content) -> AsyncIterator[bytes]:
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


def _size(*texts: str, metadata: Mapping[str, Any] | None = None) -> float:
    """Return how many characters have to be masked; unknown for metadata before it is checked."""
    return inf if metadata else sum(map(len, texts))
