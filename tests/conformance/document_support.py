"""Words shared by the conformance tests of documents. Everything goes through the port."""

from __future__ import annotations

import array
import hashlib
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from penstock.adapters.postgres import PostgresQueue
from penstock.adapters.postgres.documents import PostgresDocuments
from penstock.adapters.sql.documents import DocumentStore
from penstock.adapters.sqlite.documents import SqliteDocuments
from penstock.adapters.sqlite.file import SqliteFile
from penstock.model.document import (
    DEFAULT_COLLECTION,
    Document,
    DocumentRef,
    NewChunk,
    Staged,
    Upload,
)
from penstock.ports.documents import DocumentQuery, Findings, Scope, Version
from tests.support.database_servers import postgres_url

MODEL = "toy-1"
TENANT = "default"
WORDS = ("sun", "moon", "rain", "snow", "wind", "tide", "leaf", "root")
"""What the toy model knows: a dimension for each."""


@asynccontextmanager
async def _sqlite(place: Path) -> AsyncIterator[DocumentStore]:
    file = SqliteFile(f"sqlite:///{place}/documents.db", durable=False)
    await file.open()
    documents = SqliteDocuments(file)
    await documents.open()
    yield documents
    await documents.close()
    await file.close()


@asynccontextmanager
async def _postgres(place: Path) -> AsyncIterator[DocumentStore]:
    namespace = f"test_{hashlib.sha256(str(place).encode()).hexdigest()[:24]}"
    queue = PostgresQueue(f"{postgres_url()}?namespace={namespace}")
    await queue.open()
    documents = PostgresDocuments(queue.database, queue.pool)
    await documents.open()
    yield documents
    await documents.close()
    await queue.close()


DOCUMENT_STORES: dict[str, Callable[[Path], AbstractAsyncContextManager[DocumentStore]]] = {
    "postgres": _postgres,
    "sqlite": _sqlite,
}
"""Every document store the suite runs against: opens what is stored at a place, any number of
times."""


def vector_of(text: str) -> bytes:
    """How often each word stands in a text, as a unit vector."""
    counts = [1e-3 + text.split().count(word) for word in WORDS]
    length = math.sqrt(sum(count * count for count in counts))
    return array.array("f", [count / length for count in counts]).tobytes()


def ref_of(name: str, tenant: str = TENANT, collection: str = DEFAULT_COLLECTION) -> DocumentRef:
    return DocumentRef(tenant, collection, name)


def upload_of(ref: DocumentRef, content: str = "", **options: Any) -> Upload:
    digest = hashlib.sha256(content.encode()).hexdigest()
    return Upload(ref, blob=f"blob-{digest[:8]}", digest=digest, size=len(content), **options)


def staged_of(chunks: Sequence[str], title: str = "a title") -> Staged:
    new, at = [], 0
    for text in chunks:
        digest = hashlib.sha256(text.encode()).hexdigest()
        end = at + len(text)
        tokens = len(text.split())
        about = (tokens, (1, 2), ("top",), digest, text, "latin", (end - 1,))
        new.append(NewChunk(text, at, end, at, *about))
        at = end
    return Staged("".join(chunks), new, title, "text/plain", {"email": 2})


async def accept(
    documents: DocumentStore, ref: DocumentRef, content: str = "", **options: Any
) -> Version:
    accepted = await documents.accept(upload_of(ref, content, **options))
    assert accepted.new
    return Version(ref, accepted.document.generation)


async def embed(documents: DocumentStore, version: Version, model: str = MODEL) -> None:
    missing = await documents.to_embed(version, model)
    assert missing is not None
    vectors = {one.hash: vector_of(one.text) for one in missing}
    await documents.put_vectors(version.ref.tenant, model, vectors)


async def publish(documents: DocumentStore, version: Version, *chunks: str) -> bool:
    assert await documents.stage(version, staged_of(chunks))
    await embed(documents, version)
    return await documents.publish(version, MODEL)


async def add(documents: DocumentStore, ref: DocumentRef, *chunks: str, **options: Any) -> Version:
    """A document that can be found."""
    version = await accept(documents, ref, "\n".join(chunks), **options)
    assert await publish(documents, version, *chunks)
    return version


async def find(
    store: DocumentStore,
    query: str,
    *,
    tenant: str = TENANT,
    collections: Sequence[str] | None = None,
    documents: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    limit: int = 10,
    model: str = MODEL,
) -> Findings:
    scope = Scope(tenant, collections, documents, metadata or {})
    return await store.find(wanted(scope, query.split(), vector_of(query), model, limit))


def wanted(
    scope: Scope,
    terms: Sequence[str],
    vector: bytes | None,
    model: str = MODEL,
    limit: int = 10,
) -> DocumentQuery:
    """All terms that are asked for are looked for."""
    return DocumentQuery(scope, terms, lambda frequencies, total: terms, vector, model, limit)


def texts(findings: Findings) -> list[str]:
    return [findings.places[hit.chunk].chunk.text for hit in findings.text]


def nearest(findings: Findings) -> list[str]:
    return [findings.places[hit.chunk].chunk.text for hit in findings.vector]


async def there(documents: DocumentStore, ref: DocumentRef) -> Document:
    document = await documents.get(ref)
    assert document is not None
    return document
