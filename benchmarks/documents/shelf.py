"""A corpus of many chunks, stored as jobs would store it, without the jobs."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy

from benchmarks.documents.texts import PAGE_TOKENS, Writer, writers
from penstock.adapters.models.offline_embedder import OfflineEmbedder
from penstock.adapters.sqlite.documents import SqliteDocuments
from penstock.adapters.sqlite.file import SqliteFile
from penstock.documents.tokens import count_tokens
from penstock.model.document import DocumentRef, NewChunk, Staged, Upload
from penstock.ports.documents import Version
from penstock.retrieval.terms import index_terms, script

CHUNKS = 100
"""Of a document."""
SHELVES = 100
"""Documents are spread over so many by their metadata: a filter for one keeps 1 %."""
EMBEDDED = 64
"""Chunks with a vector of the embedder; it would take an hour for all. Others have a random unit
vector of the same dimensions: what a comparison costs does not depend on it."""
SEED = 7


def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'jobs.db'}"


def fill(folder: Path, chunks: int) -> None:
    """Make a corpus of so many chunks."""
    asyncio.run(_fill(folder, chunks))


async def _fill(folder: Path, chunks: int) -> None:
    file = SqliteFile(url(folder), durable=False)
    await file.open()
    documents = SqliteDocuments(file)
    await documents.open()
    embedder = OfflineEmbedder()
    numbers = numpy.random.default_rng(SEED)
    try:
        for number, writer in enumerate(itertools.islice(writers(SEED), max(1, chunks // CHUNKS))):
            staged = [_chunk(writer, at) for at in range(min(CHUNKS, chunks))]
            vectors = _vectors(numbers, len(staged))
            if number * CHUNKS < EMBEDDED:
                some = staged[:EMBEDDED]
                vectors[: len(some)] = await embedder.embed([one.text for one in some])
            await _store(documents, number, staged, vectors)
    finally:
        embedder.close()
        await documents.close()
        await file.close()


def _chunk(writer: Writer, at: int) -> NewChunk:
    """As a chunker would leave it: a little under its limit."""
    text = writer.prose(int(PAGE_TOKENS * 0.9))
    return NewChunk(
        text=text,
        start=at * len(text),
        end=(at + 1) * len(text),
        fresh=at * len(text),
        tokens=count_tokens(text),
        pages=(at + 1, at + 1),
        section=(),
        hash=hashlib.sha256(text.encode()).hexdigest(),
        terms=" ".join(index_terms(text)),
        script=script(text),
    )


def _vectors(numbers: numpy.random.Generator, count: int) -> list[bytes]:
    drawn = numbers.standard_normal((count, OfflineEmbedder.dimensions), dtype=numpy.float32)
    drawn /= numpy.linalg.norm(drawn, axis=1, keepdims=True)
    return [row.astype("<f4").tobytes() for row in drawn]


async def _store(
    documents: SqliteDocuments, number: int, chunks: Sequence[NewChunk], vectors: Sequence[bytes]
) -> None:
    ref = DocumentRef("default", "default", f"filled-{number}")
    about = {"shelf": number % SHELVES}
    accepted = await documents.accept(Upload(ref, f"none{number}", f"{number}", 1, "", "", about))
    version = Version(ref, accepted.document.generation)
    text = "".join(one.text for one in chunks)
    await documents.stage(version, Staged(text, chunks, f"Document {number}", "text/plain", {}))
    known = {one.hash: vector for one, vector in zip(chunks, vectors, strict=True)}
    await documents.put_vectors(ref.tenant, OfflineEmbedder.model, known)
    await documents.publish(version, OfflineEmbedder.model)
