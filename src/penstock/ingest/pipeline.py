"""The two jobs a document takes: parse it, then embed and publish it.

`ingest.parse` reads the original, in a child process, and stages what comes of it. `ingest.embed`
is in the lane of the embedder: it stores each finished batch under the hash of its texts, which is
its checkpoint, and publishes when none is missing. Either can be run again from the start at any
point: staging replaces, vectors are kept, publishing is one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from penstock.engine.context import JobContext
from penstock.ingest.chunk import ChunkSettings
from penstock.ingest.mask import Masker
from penstock.ingest.parse.pool import ParserPool
from penstock.ingest.prepare import prepare
from penstock.model.document import DocumentRef, DocumentState
from penstock.model.errors import (
    LaneBusy,
    PenstockError,
    QueueUnavailable,
    RunLater,
    StoreUnavailable,
    Unavailable,
    describe,
    is_permanent,
)
from penstock.ports.blobs import BlobStore
from penstock.ports.corpus import Corpus, Version

PARSE, EMBED = "ingest.parse", "ingest.embed"
EMBEDDER_LANE = "embedder"
BATCH = 50
"""Texts in one request to the embedder, and in one checkpoint."""
PARSED = 0.3
"""How much of the work is done once a document is staged."""

Embed = Callable[[JobContext, Sequence[str]], Awaitable[list[bytes]]]


@dataclass(slots=True, frozen=True)
class Tools:
    """What the two jobs work with."""

    corpus: Corpus
    blobs: BlobStore
    parser: ParserPool
    mask: Masker
    chunk: ChunkSettings
    embed: Embed
    model: str
    keep_originals: bool = False


class IngestFailed(PenstockError):
    """Something unforeseen went wrong with a document. What it said is masked."""


@asynccontextmanager
async def _marking(
    tools: Tools, ctx: JobContext, version: Version, stage: str, progress: float
) -> AsyncIterator[None]:
    """Keep the document's row in step with its job, and what is said of failures masked."""
    corpus = tools.corpus
    await corpus.mark(version, state=DocumentState.PROCESSING, stage=stage, progress=progress)
    try:
        yield
    except (Unavailable, LaneBusy, RunLater, QueueUnavailable, StoreUnavailable):
        raise  # it waits, and is run again
    except Exception as error:
        ours = error
        if not isinstance(error, PenstockError):
            ours = IngestFailed(f"{type(error).__name__}: {tools.mask(str(error)).text}")
        if is_permanent(ours, ()) or ctx.last_attempt:
            await corpus.mark(
                version,
                state=DocumentState.FAILED,
                stage=stage,
                progress=progress,
                message=str(ours),
                error=describe(ours, retryable=False),
            )
        if ours is error:
            raise
        raise ours from None


async def parse(
    tools: Tools,
    ctx: JobContext,
    collection: str,
    document: str,
    generation: int,
    blob: str,
    title: str,
) -> dict[str, Any]:
    version = Version(DocumentRef(ctx.job.tenant, collection, document), generation)
    async with _marking(tools, ctx, version, "parse", 0.0):
        async with tools.blobs.local(blob) as path:
            parsed = await tools.parser.parse(path)
        staged = await asyncio.to_thread(prepare, parsed, title, tools.mask, tools.chunk)
        if not await tools.corpus.stage(version, staged):
            return {"superseded": True}
        ctx.progress(PARSED, f"{len(staged.chunks)} chunks")
        await ctx.enqueue(
            EMBED,
            {
                "collection": collection,
                "document": document,
                "generation": generation,
                "blob": blob,
            },
            task=ctx.job.task,
        )
    return {"chunks": len(staged.chunks), "masked": dict(staged.masked)}


async def embed(
    tools: Tools, ctx: JobContext, collection: str, document: str, generation: int, blob: str
) -> dict[str, Any]:
    version = Version(DocumentRef(ctx.job.tenant, collection, document), generation)
    async with _marking(tools, ctx, version, "embed", PARSED):
        missing = await tools.corpus.to_embed(version, tools.model)
        done, total = 0, len(missing or ())
        for start in range(0, total, BATCH):
            assert missing is not None
            some = missing[start : start + BATCH]
            vectors = await tools.embed(ctx, [one.text for one in some])
            known = {one.hash: vector for one, vector in zip(some, vectors, strict=True)}
            await tools.corpus.put_vectors(version.ref.tenant, tools.model, known)
            done += len(some)
            ctx.progress(PARSED + (1 - PARSED) * done / total, f"{done} of {total} embedded")
        published = missing is not None and await tools.corpus.publish(version, tools.model)
    if not tools.keep_originals:
        await tools.blobs.delete(blob)
    return {"embedded": total} if published else {"superseded": True}
