"""The two jobs a document takes: parse it, then embed and publish it.

`ingest.parse` reads the original, in a child process, and stages what comes of it; where pages are
pictures, a third job does that once it has read them (scan.py). `ingest.embed` is in the lane of
the embedder: it stores each finished batch under the hash of its texts, which is its checkpoint,
and publishes when none is missing. Each can be run again from the start at any point: staging
replaces, vectors are kept, publishing is one transaction. A version that is published, or older
than the newest, is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from penstock.adapters.blobs.bucket import Objects
from penstock.adapters.sql.documents import DocumentStore
from penstock.documents.chunk import ChunkSettings
from penstock.documents.embed_batches import MAX_TEXTS, Embed
from penstock.documents.jobs import EMBED, EMBEDDER_LANE, PARSE, SCAN, payload_of
from penstock.documents.mask import Masker, prepare
from penstock.documents.parse.pool import ParserPool
from penstock.documents.parse.requests import Scans
from penstock.documents.parsed import Parsed
from penstock.documents.scan_readers import ScanReader, parser_for
from penstock.engine.context import JobContext
from penstock.errors import (
    LaneBusy,
    ParserError,
    PenstockError,
    QueueUnavailable,
    RunLater,
    StoreUnavailable,
    Unavailable,
    describe,
    is_permanent,
)
from penstock.model.document import DocumentRef, DocumentState, Staged
from penstock.ports.blobs import BlobStore
from penstock.ports.documents import Version

BATCH = MAX_TEXTS
"""Texts per checkpoint: at most those of one request to the embedder."""
OTHER_SECONDS = 5.0
"""Delay after which a job is left to a process that has the serving embedder."""
PARSED = 0.3
"""Progress once a document is staged."""

SHORT = 1000
"""Characters that are masked in a millisecond or two."""

Result = dict[str, Any]
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class IngestDeps:
    """Dependencies of the ingest jobs."""

    documents: DocumentStore
    blobs: BlobStore
    parser: ParserPool
    scan_reader: ScanReader | None
    mask: Masker
    chunk: ChunkSettings
    embedding: Callable[[JobContext], AbstractContextManager[Embed]]
    model: str
    keep_originals: bool = False
    blobs_lane: str | None = None
    """Lane of the server that holds the originals; None if they are in a directory."""
    objects: Objects = field(default_factory=Objects)
    """Access to objects in buckets that messages name as documents."""

    async def masked(self, work: Callable[[], T], size: float = 0) -> T:
        """Run `work`, which masks texts of `size` characters: in a thread unless they are short and
        no model takes part, which has to be loaded or may be busy."""
        if size > SHORT or self.mask.heavy:
            return await asyncio.to_thread(work)
        return work()

    @contextmanager
    def blaming_blobs(self) -> Iterator[None]:
        """Attribute errors to the lane of the blob store, so that no attempt is spent while it is
        down. A directory has no lane: the process cannot use it."""
        try:
            yield
        except StoreUnavailable as error:
            if self.blobs_lane is None:
                raise
            raise Unavailable(str(error), lane=self.blobs_lane, address=error.address) from error

    async def let_go(self, blob: str) -> None:
        """Delete an original, unless a document still needs it."""
        if not await self.documents.blobs_in_use([blob], published=self.keep_originals):
            await self.blobs.delete(blob)


class IngestFailed(PenstockError):
    """An unexpected error occurred in a document. Its message is masked."""


def register(
    tools: IngestDeps, job_timeout: float, job: Callable[..., Callable[[Any], Any]]
) -> None:
    """Register the two jobs with an app."""
    # The parsers' limits are earlier than the job's: what is too slow fails there, once and for
    # good. A timeout would be retried. With a model that masks, parsing and cutting are two trips.
    trips = 2 if tools.mask.heavy else 1
    timeout = job_timeout + trips * tools.parser.longest_seconds

    @job(PARSE, timeout=timeout, max_per_process=tools.parser.worth_having)
    async def parse(
        ctx: JobContext,
        collection: str,
        document: str,
        generation: int,
        blob: str,
        title: str,
        web: bool = False,
        charset: str = "",
    ) -> Result:
        version = Version(DocumentRef(ctx.job.tenant, collection, document), generation)
        work = IngestRun(tools, ctx, version, blob)
        return await work.do("parse", 0.0, lambda: work.parse(title, charset if web else None))

    @job(EMBED, lane=EMBEDDER_LANE)
    async def embed(
        ctx: JobContext, collection: str, document: str, generation: int, blob: str
    ) -> Result:
        version = Version(DocumentRef(ctx.job.tenant, collection, document), generation)
        work = IngestRun(tools, ctx, version, blob)
        with tools.embedding(ctx) as ask:
            return await work.do("embed", PARSED, lambda: work.embed(ask))


@dataclass(slots=True, frozen=True)
class IngestRun:
    """One run of one of the jobs."""

    tools: IngestDeps
    ctx: JobContext
    version: Version
    blob: str

    async def do(
        self, phase: str, progress: float, work: Callable[[], Awaitable[Result | None]]
    ) -> Result:
        """Run a job, updating the document's row and masking the errors. `work` returns None if the
        version is outdated."""
        mark = self.tools.documents.mark
        result = None
        if await mark(self.version, state=DocumentState.PROCESSING, phase=phase, progress=progress):
            try:
                result = await work()
            except (Unavailable, LaneBusy, RunLater, QueueUnavailable, StoreUnavailable):
                raise  # it waits, and is run again
            except Exception as error:
                ours = await asyncio.to_thread(self._masked, error)
                final = is_permanent(ours) or self.ctx.last_attempt
                if not final or await mark(
                    self.version,
                    state=DocumentState.FAILED,
                    phase=phase,
                    progress=progress,
                    message=str(ours),
                    error=describe(ours, retryable=False),
                ):
                    if ours is error:
                        raise
                    raise ours from None
        if result is None:  # published already, replaced or deleted
            await self._let_go()
            return {"late": True}
        return result

    @asynccontextmanager
    async def at_blobs(self) -> AsyncIterator[None]:
        """The same under a permit of that lane, for short operations."""
        lane = self.tools.blobs_lane
        if lane is None:
            yield
            return
        async with self.ctx.lanes.permit(lane):
            with self.tools.blaming_blobs():
                yield

    @asynccontextmanager
    async def original(self) -> AsyncIterator[Path]:
        """Provide the original as a file. The lane's slot is held only while it is fetched."""
        async with AsyncExitStack() as held:
            async with self.at_blobs():
                path = await held.enter_async_context(self.tools.blobs.local(self.blob))
            yield path

    async def _let_go(self) -> None:
        async with self.at_blobs():
            await self.tools.let_go(self.blob)

    def _masked(self, error: Exception) -> Exception:
        """Mask an error: its type and message are stored. A parser may quote the document; our
        other errors never do."""
        match error:
            case ParserError():
                return ParserError(self.tools.mask(error.message).text, error.reason)
            case PenstockError():
                return error
            case _:
                said = self.tools.mask(str(error)).text
                return IngestFailed(f"{type(error).__name__}: {said}")

    async def parse(self, title: str, web: str | None) -> Result | None:
        """Parse a document. `web` is the charset declared by a web server, None if it does not come
        from one."""
        tools, parser = self.tools, parser_for(self.ctx, self.tools.parser)
        async with self.original() as path:
            if tools.mask.heavy:  # a model takes part, of which the children have none
                with self.ctx.stage("parse"):
                    parsed = await parser.parse(path, web=web)
                made = Scans(len(parsed.scans)) if parsed.scans else await self._cut(parsed, title)
            else:
                made = await parser.stage(path, title, tools.chunk, web)
        match made:
            case Scans(pages):
                await self.ctx.enqueue(SCAN, payload_of(self.version, self.blob))
                return {"scans": pages}
            case staged:
                self.ctx.stages_done(staged.seconds)
                return await self._stage(staged)

    async def stage(self, parsed: Parsed, title: str, masked: Mapping[str, int]) -> Result | None:
        """Stage a parsed document; `masked` counts what was masked before."""
        return await self._stage(await self._cut(parsed, title, masked))

    async def _cut(
        self, parsed: Parsed, title: str, masked: Mapping[str, int] | None = None
    ) -> Staged:
        tools = self.tools
        with self.ctx.stage("mask"):
            prepared = await asyncio.to_thread(prepare, parsed, title, tools.mask, masked or {})
        with self.ctx.stage("chunk"):
            parser = parser_for(self.ctx, tools.parser)
            chunks = await parser.cut(prepared.uncut, tools.chunk)
        return prepared.staged(chunks, parsed.mime)

    async def _stage(self, staged: Staged) -> Result | None:
        if not await self.tools.documents.stage(self.version, staged):
            return None
        count = len(staged.chunks)
        self.ctx.progress(PARSED, f"{count} chunk" if count == 1 else f"{count} chunks")
        await self.ctx.enqueue(EMBED, payload_of(self.version, self.blob))
        return {"chunks": len(staged.chunks), "masked": dict(staged.masked)}

    async def embed(self, ask: Embed) -> Result | None:
        tools, ctx, version = self.tools, self.ctx, self.version
        given = ctx.remaining()
        serving = await tools.documents.serving()
        if serving.model is not None and tools.model not in serving[:2]:
            ctx.run_later(
                OTHER_SECONDS, f"needs a worker process with the embedder {serving.model}"
            )
        missing = await tools.documents.to_embed(version, tools.model)
        if missing is None:
            return None
        done, total = 0, len(missing)
        if not missing:
            ctx.lanes.leave()
        for start in range(0, total, BATCH):
            if start and ctx.remaining() < given / 2:
                ctx.run_later(0.0, f"{done} of {total} embedded")  # a long one takes several runs
            some = missing[start : start + BATCH]
            with ctx.stage("embed"):
                vectors = await ask([one.text for one in some])
            if start + BATCH >= total:
                ctx.lanes.leave()
            known = {one.hash: vector for one, vector in zip(some, vectors, strict=True)}
            await tools.documents.put_vectors(version.ref.tenant, tools.model, known)
            done += len(some)
            ctx.progress(PARSED + (1 - PARSED) * done / total, f"{done} of {total} embedded")
        with ctx.stage("publish"):
            published = await tools.documents.publish(version, tools.model)
        if not published:
            return None
        await self._let_go()
        return {"embedded": total}
