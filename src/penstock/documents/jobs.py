"""Names, payloads and ids of the jobs of a document.

A job's id is derived from the original and the generation. So a document's jobs can be looked up
without being recorded anywhere, and enqueueing is idempotent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.model.document import Document, DocumentRef
from penstock.model.ids import child_id
from penstock.model.job import Job, Priority, PriorityName
from penstock.model.payload import encode_payload
from penstock.ports.documents import Version

FETCH, PARSE = "ingest.fetch", "ingest.parse"
SCAN, EMBED = "ingest.scan", "ingest.embed"
EMBEDDER_LANE = "embedder"
BLOBS_LANE = "blobs"
"""Lane of the server that holds the originals."""

BUCKET_LANE = "bucket:"
"""Prefix of lanes for buckets with objects that messages name as documents."""

WEB = ("http://", "https://")
"""Marks documents from the web: HTML is then read as a page."""

Enqueue = Callable[..., Awaitable[Job]]


def log_of(ref: DocumentRef) -> str:
    """The log of a document."""
    return f"document:{ref.collection}/{ref.id}"


def fetch_id(version: Version, blob: str) -> str:
    """Id of the fetch job; `blob` holds the URL."""
    return child_id(f"{blob}@{version.generation}", FETCH, "", 1)


def parse_id(version: Version, blob: str) -> str:
    return child_id(f"{blob}@{version.generation}", PARSE, "", 1)


def job_ids(version: Version, blob: str) -> list[str]:
    """Ids of all jobs that a document may have, in order: those that scan and embed are children of
    the one that parses, or the one that embeds is a child of the one that scans."""
    payload, parse = encode_payload(payload_of(version, blob)), parse_id(version, blob)
    scan = child_id(parse, SCAN, payload, 1)
    return [parse, scan, *(child_id(parent, EMBED, payload, 1) for parent in (parse, scan))]


def payload_of(version: Version, blob: str) -> dict[str, Any]:
    return {
        "collection": version.ref.collection,
        "document": version.ref.id,
        "generation": version.generation,
        "blob": blob,
    }


async def start(
    enqueue: Enqueue,
    document: Document,
    blob: str,
    priority: PriorityName | Priority = Priority.MEDIUM,
) -> Job:
    """Enqueue the first job of a document; idempotent."""
    version = Version(document.ref, document.generation)
    return await enqueue(
        PARSE,
        {**payload_of(version, blob), "title": document.title, **_page(document)},
        job_id=parse_id(version, blob),
        tenant=document.tenant,
        log=log_of(document.ref),
        priority=priority,
    )


def _page(document: Document) -> dict[str, Any]:
    """Return what the parser needs to know about a document from the web."""
    if not document.source.startswith(WEB):
        return {}
    return {"web": True, "charset": document.charset}
