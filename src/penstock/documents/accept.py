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
from penstock.model.document import (
    DEFAULT_COLLECTION,
    Document,
    DocumentRef,
    DocumentState,
    Upload,
)
from penstock.model.job import Priority, PriorityName
from penstock.outbound.web_address import WebAddress, check, web_address
from penstock.ports.blobs import Blob
from penstock.ports.documents import Accepted

log = logging.getLogger("penstock.ingest")

READ_BYTES = 1 << 20
FAILED_BEFORE = "the same content failed before; give `retry` to try again"

Content = bytes | str | Path | AsyncIterable[bytes]
"""Bytes as they are, text, a file, or bytes as they come."""
Source = Content | Blob
"""Or what was received before."""
HandOver = Callable[[Document, Priority], Awaitable[bool]]
"""Passes an accepted document on to whoever enqueues its job by `begin`; False where nobody has
taken it."""


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
        """From now on accepted documents are passed on, instead of their jobs being enqueued."""
        self._passed_on = to

    def check(self) -> None:
        """MissingExtra where documents could be accepted but none would become searchable."""
        self._embedding.check()

    async def receive(self, parts: AsyncIterable[bytes]) -> Blob:
        """Store bytes as they come, for `add` once the rest of a request is known. What is never
        given to `add` is to be dropped, or swept away hours later."""
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
        """Accept a document: once this returns it is never lost. The same content under the same
        id changes nothing; other content replaces what is there once it is ready. The same content
        that has failed before is tried again only with `retry`: what comes back is the failed
        document, with its error, and a message that says so.

        `origin` says where it came from, for people; of an HTML page from the web the main text is
        kept. `charset` is the encoding of its text as a server has named it. Without an `id` the
        file's name, else the content, is its id. A blob is the library's from here on, also when
        this fails: by then the document may be accepted.
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
        """Accept a document that the workers fetch, from the open internet or from what the
        setting `fetch_allow` names; AddressRefused for what can be told not to be. Once this
        returns it is not lost. Without an `id` the address is its id. The same again fetches
        again; if that brings the same content, nothing changes.

        With `buckets` it may also be an object in one of them, below its prefix
        (`s3://bucket/prefix/name`), which is read and left as it is."""
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
        """Enqueue the job of a document that was passed on; once, however often this is called.
        False where there is nothing to do: it is replaced, deleted, or was worked on before."""
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
        """Whether a failed document could not be tried again from what is there."""
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
    """The document is accepted, or gone, although its original cannot be deleted now."""
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
    """How many characters are to be masked; of metadata nobody knows before it is checked."""
    return inf if metadata else sum(map(len, texts))
