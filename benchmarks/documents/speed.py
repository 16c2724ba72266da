"""Documents a second beside LlamaIndex's IngestionPipeline, with the same embedder.

Both start with Markdown files on disk, for which neither needs a library, and count tokens alike.
Penstock accepts each durably, parses it in a child, masks it, cuts it, embeds it and publishes it
to full text and vectors in a file. LlamaIndex splits and embeds, and keeps what comes of it in
memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.documents import runs
from benchmarks.documents.embedder import BATCH, PARALLEL, SECONDS, Embedder
from benchmarks.documents.runs import Run
from benchmarks.report import Better, Cell, Figure, Result, TimesThePeer
from benchmarks.served import peers
from benchmarks.sizes import Sizes
from penstock.ingest.chunk import ChunkSettings
from penstock.ingest.tokens import TOKEN

FACTOR = 2
NAME = "ingestion, documents of 10 pages"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "its event loop": {"asynchronous": True, "processes": None, "requests": PARALLEL},
    "2 processes of 2 requests": {"asynchronous": True, "processes": 2, "requests": 2},
    "4 processes": {"asynchronous": False, "processes": 4, "requests": 1},
}
"""What is tried of LlamaIndex; the best counts. None has more than PARALLEL requests under way."""


def run(sizes: Sizes, folder: Path) -> list[Result]:
    documents = runs.write_markdown(folder / "documents", sizes.documents)
    missing = "" if "llama-index-core" in peers.versions() else "not installed"
    with Embedder() as embedder:
        best = None if missing else _best(folder, documents, embedder)
        mine: list[Run] = []
        theirs: list[Run] = []
        for number in range(sizes.rounds):
            mine.append(runs.ours(folder / f"ours-{number}", documents, embedder))
            if best:
                where = folder / f"peer-{number}"
                theirs.append(runs.llamaindex(where, documents, embedder, _settings(best)))
    note = _note(sizes, mine[-1])
    if best:
        note += f" LlamaIndex at its best of {len(SETTINGS)} settings: {best}, without its cache."
        note += f" It made {theirs[-1].told['chunks']} chunks in {theirs[-1].asked.requests}."
    rate = [one.rate for one in mine], [one.rate for one in theirs]
    peak = [one.peak for one in mine], [one.peak for one in theirs]
    return [
        Result.beside(
            NAME,
            what,
            unit,
            Figure.of("penstock", ours),
            {"LlamaIndex": _cell(peer, missing)},
            better,
            target,
            note,
        )
        for what, unit, (ours, peer), better, target in (
            ("documents made searchable", "documents/s", rate, Better.MORE, TimesThePeer(FACTOR)),
            ("memory of all processes at its peak", "MB", peak, Better.LESS, None),
        )
    ]


def _best(folder: Path, documents: Path, embedder: Embedder) -> str:
    tried = {
        name: runs.llamaindex(folder / f"try-{at}", documents, embedder, _settings(name))
        for at, name in enumerate(SETTINGS)
    }
    return max(tried, key=lambda name: tried[name].rate)


def _settings(name: str) -> Mapping[str, Any]:
    chunk = ChunkSettings()
    return {
        **SETTINGS[name],
        "batch": BATCH,
        "chunk_tokens": chunk.size,
        "chunk_overlap": chunk.overlap,
        "token": TOKEN.pattern,
    }


def _cell(values: list[float], missing: str) -> Cell:
    return Figure.of("LlamaIndex", values) if values else f"not measured: {missing}"


def _note(sizes: Sizes, last: Run) -> str:
    return (
        f"{sizes.documents} Markdown files in three languages, chunks of 500 tokens, 128 shared; "
        f"one embedder for both, {1000 * SECONDS:g} ms a request, at most {BATCH} texts in one and "
        f"{PARALLEL} under way. Ours is accepted durably, masked and published to an index; "
        f"{last.told['chunks']} chunks in {last.asked.requests} requests. LlamaIndex keeps nodes "
        "in memory."
    )
