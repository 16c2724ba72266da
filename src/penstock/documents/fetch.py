"""`ingest.fetch`: fetches a document's URL, then continues like an upload.

The document has its generation since it was accepted. So a fetch that took long can tell that it is
late, and what it brought is dropped. Interrupted anywhere, it is run again from the start; once the
bytes are the document's original, only handing on is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.documents.addresses import Request, digest_of
from penstock.documents.download import bring, bring_object
from penstock.documents.jobs import BUCKET_LANE, FETCH, Enqueue, start
from penstock.documents.pipeline import IngestDeps, IngestRun, Result
from penstock.engine.context import JobContext
from penstock.model.document import DocumentRef, DocumentState
from penstock.outbound.http import host_lane
from penstock.ports.documents import Arrived, Version

STAGE = "fetch"


@dataclass(slots=True, frozen=True)
class Fetching:
    """Further dependencies of the fetch job."""

    tools: IngestDeps
    enqueue: Enqueue
    most_bytes: int
    fingerprint: str


def register(fetching: Fetching, job: Callable[..., Callable[[Any], Any]]) -> None:
    @job(FETCH, lane=lambda payload: _lane(payload["host"]))
    async def fetch(
        ctx: JobContext, collection: str, document: str, generation: int, blob: str, host: str
    ) -> Result:
        version = Version(DocumentRef(ctx.job.tenant, collection, document), generation)
        work = IngestRun(fetching.tools, ctx, version, blob)
        return await work.do(STAGE, 0.0, lambda: _fetch(fetching, work))


def _lane(host: str) -> str:
    """Return the lane of a host, or of a bucket (`s3://bucket`)."""
    _, is_bucket, bucket = host.partition("://")
    return f"{BUCKET_LANE}{bucket}" if is_bucket else host_lane(host)


async def _fetch(fetching: Fetching, work: IngestRun) -> Result | None:
    tools, ctx, version = fetching.tools, work.ctx, work.version
    documents, blobs = tools.documents, tools.blobs
    document, original = await documents.get(version.ref), await documents.original(version.ref)
    if document is None or original is None or document.generation != version.generation:
        return None
    if not document.remote:  # a run before this one came as far
        await start(fetching.enqueue, document, original, ctx.job.priority)
        async with work.at_blobs():
            await blobs.delete(work.blob)
        return {"size": document.size}
    async with work.original() as path:
        request = Request.read(path)
    if (there := request.object()) is not None:
        brought = await bring_object(tools, ctx, there, most=fetching.most_bytes)
    else:
        brought = await bring(tools, ctx, request.url, most=fetching.most_bytes)
    stored, _, name, mime, charset = brought
    title = request.title or name
    known = (document.source, document.metadata, fetching.fingerprint)
    digest = digest_of(stored.key[:64], title, *known, charset)
    # Interrupted before the next line, the bytes are nobody's, and swept when they are old.
    arrived = await documents.fetched(
        version, work.blob, Arrived(stored.key, digest, stored.size, title, charset)
    )
    if arrived is None:
        async with work.at_blobs():
            await blobs.delete(stored.key)
        return None
    unchanged = arrived.state is DocumentState.COMPLETED
    if not unchanged:
        await start(fetching.enqueue, arrived, stored.key, ctx.job.priority)
    async with work.at_blobs():
        if unchanged:
            await tools.let_go(stored.key)
        await blobs.delete(work.blob)
    return {
        "size": stored.size,
        "unchanged": unchanged,
        "mime": mime,
        "charset": charset,
        "name": name,
    }
