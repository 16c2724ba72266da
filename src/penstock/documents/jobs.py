"""Names, payloads and ids of the jobs of a document.

A job's id follows from the original and the generation. So a document's jobs can be asked for
without having been noted anywhere, and enqueueing one twice makes one.
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
"""Where originals are on a server."""

BUCKET_LANE = "bucket:"
"""And a name: what others have stored there, and name as a document."""

WEB = ("http://", "https://")
"""What comes from there is read as a page, if it is HTML."""

Enqueue = Callable[..., Awaitable[Job]]


def log_of(ref: DocumentRef) -> str:
    """The log that tells what becomes of a document."""
    return f"document:{ref.collection}/{ref.id}"


def fetch_id(version: Version, blob: str) -> str:
    """`blob` holds the address."""
    return child_id(f"{blob}@{version.generation}", FETCH, "", 1)


def parse_id(version: Version, blob: str) -> str:
    return child_id(f"{blob}@{version.generation}", PARSE, "", 1)


def job_ids(version: Version, blob: str) -> list[str]:
    """Of all that a document may have, the later ones last: those that scan and embed are children
    of the one that parses, or the one that embeds is a child of the one that scans."""
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
    """Enqueue what makes a document searchable; once, however often this is called."""
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
    """What the parser is told of a document that comes from the web."""
    if not document.source.startswith(WEB):
        return {}
    return {"web": True, "charset": document.charset}
