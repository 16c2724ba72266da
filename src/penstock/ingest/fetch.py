"""The job before the two: fetch what a document's address holds, then go on as an upload does.

The document has its generation since it was accepted. So a fetch that took long can tell that it is
late, and what it brought is dropped. Interrupted anywhere, it is run again from the start; once the
bytes are the document's original, only handing on is left.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from penstock.engine.context import JobContext
from penstock.engine.http import host_lane
from penstock.ingest.jobs import FETCH, Enqueue, start
from penstock.ingest.mask import Masker
from penstock.ingest.names import Names
from penstock.ingest.pipeline import Result, Tools, Work
from penstock.ingest.remote import Request, digest_of
from penstock.model.document import DocumentRef, DocumentState
from penstock.model.errors import HttpError, PenstockError, RateLimited
from penstock.ports.corpus import Arrived, Version

STAGE = "fetch"
MEGABYTE = 1_000_000


@dataclass(slots=True, frozen=True)
class Fetching:
    """What the job works with besides the tools of the others."""

    tools: Tools
    enqueue: Enqueue
    most_bytes: int
    fingerprint: str


def register(fetching: Fetching, job: Callable[..., Callable[[Any], Any]]) -> None:
    @job(FETCH, lane=lambda payload: host_lane(payload["host"]))
    async def fetch(
        ctx: JobContext, collection: str, document: str, generation: int, blob: str, host: str
    ) -> Result:
        version = Version(DocumentRef(ctx.job.tenant, collection, document), generation)
        work = Work(fetching.tools, ctx, version, blob)
        return await work.do(STAGE, 0.0, lambda: _fetch(fetching, work))


async def _fetch(fetching: Fetching, work: Work) -> Result | None:
    tools, ctx, version = fetching.tools, work.ctx, work.version
    corpus, blobs = tools.corpus, tools.blobs
    document, original = await corpus.get(version.ref), await corpus.original(version.ref)
    if document is None or original is None or document.generation != version.generation:
        return None
    if not document.remote:  # a run before this one came as far
        await start(fetching.enqueue, document, original, ctx.job.priority)
        async with work.at_blobs():
            await blobs.delete(work.blob)
        return {"size": document.size}
    async with work.original() as path:
        request, names = Request.read(path), Names(tools.mask)

    async def lane_of(host: str) -> str:
        """A host can be personal data, too: its lane has the masked name."""
        return host_lane(await tools.masked(lambda: names.host(host)))

    with work.blaming_blobs():
        try:
            async with ctx.fetch(request.url, most=fetching.most_bytes, lane_of=lane_of) as fetched:
                stored = await blobs.put(_noted(ctx, fetched.parts), most=fetching.most_bytes)
        except PenstockError as error:
            problem = error
            raise await tools.masked(lambda: _masked(problem, tools.mask)) from None
    said = (fetched.name, fetched.mime, fetched.charset)
    name, mime, charset = await tools.masked(lambda: [names.text(one) for one in said])
    title = request.title or name
    digest = digest_of(
        stored.key[:64], title, document.source, document.metadata, fetching.fingerprint
    )
    # Interrupted before the next line, the bytes are nobody's, and swept when they are old.
    arrived = await corpus.fetched(
        version, work.blob, Arrived(stored.key, digest, stored.size, title)
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


async def _noted(ctx: JobContext, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same parts, and a word on how many there were."""
    size = 0
    async for part in parts:
        yield part
        size += len(part)
        ctx.progress(0.0, f"{size / MEGABYTE:.1f} MB")


def _masked(error: PenstockError, mask: Masker) -> PenstockError:
    """The same error, which the lane and the engine read, with what it says masked: a server may
    be called by a number, and chooses where its redirects lead."""
    said = mask(str(error)).text
    if isinstance(error, HttpError | RateLimited):
        error.message = said
    elif type(error).__str__ is Exception.__str__:
        error.args = (said,)
    return error
