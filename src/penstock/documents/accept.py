"""Accepts documents: content that is given, and URLs that workers fetch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from penstock.adapters.blobs.address import BucketAddress, ObjectAddress, is_object, object_address
from penstock.documents.addresses import Remote, Request, digest_of, name_of, shown
from penstock.documents.document_names import Names
from penstock.documents.embedding import Embedding
from penstock.documents.jobs import Enqueue, start
from penstock.documents.pipeline import IngestDeps
from penstock.errors import BlobMissing, PenstockError, StoreUnavailable
from penstock.model.document import DEFAULT_COLLECTION, Document, DocumentRef, DocumentState, Upload
from penstock.model.job import Priority, PriorityName
from penstock.outbound.web_address import WebAddress, check, web_address
from penstock.ports.blobs import Blob
from penstock.ports.documents import Accepted

log = logging.getLogger("penstock.ingest")

READ_BYTES = 1 << 20
FAILED_BEFORE = "the same content failed before; give `retry` to try again"

Content = bytes | str | Path | AsyncIterable[bytes]
"""Bytes, text, a file, or a stream of bytes."""
Source = Content | Blob
"""Content, or a blob received before."""
HandOver = Callable[[Document, Priority], Awaitable[bool]]
"""Passes an accepted document to another process, which enqueues its job with `begin`; False if
that failed."""


class DocumentAcceptor:
    """The part of `Documents` by which they come in."""

    def __init__(
        self,
        tools: IngestDeps,
        enqueue: Enqueue,
        embedding: Embedding,
        remote: Remote,
        most_bytes: int,
        fingerprint: str,
    ) -> None:
        self._tools = tools
        self._enqueue = enqueue
        self._embedding = embedding
        self._remote = remote
        self._most_bytes = most_bytes
        self._fingerprint = fingerprint
        self._names = Names(tools.mask)
        self._passed_on: HandOver | None = None

    def hand_over(self, to: HandOver) -> None:
        """From now on pass accepted documents on, instead of enqueueing their jobs."""
        self._passed_on = to

    def check(self) -> None:
        """Raise MissingExtra if documents could be accepted but never become searchable."""
        self._embedding.check()

    async def receive(self, parts: AsyncIterable[bytes]) -> Blob:
        """Store a stream of bytes, for `add` once the rest of a request is known. Drop what is
        never passed to `add`; otherwise it is deleted hours later."""
        self.check()
        return await self._tools.blobs.put(parts, most=self._most_bytes)

    async def drop(self, blob: Blob) -> None:
        await self._tools.blobs.delete(blob.key)

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
                size_of(title, origin, charset, metadata=metadata),
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
            size_of(title, url, metadata=metadata),
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
            await now_or_later(self._tools.let_go(spare))
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

    async def _ref(self, tenant: str, collection: str, name: str) -> DocumentRef:
        return await self._tools.masked(lambda: self._names.ref(tenant, collection, name))


async def now_or_later(deleting: Awaitable[None]) -> None:
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


def size_of(*texts: str, metadata: Mapping[str, Any] | None = None) -> float:
    """Return how many characters have to be masked; unknown for metadata before it is checked."""
    return inf if metadata else sum(map(len, texts))
