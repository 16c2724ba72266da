"""One run of a contender over a folder of documents."""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contenders.worker import worker_command
from benchmarks.documents.embedder import Asked, Embedder
from benchmarks.documents.memory import Memory, processor_seconds
from benchmarks.documents.texts import markdown, pdf, writers
from benchmarks.processes import WorkerProcess
from benchmarks.served import peers

PENSTOCK = "benchmarks.contenders.penstock_documents"
LLAMAINDEX = "benchmarks.contenders.llamaindex_documents"


@dataclass(frozen=True, slots=True)
class Run:
    told: Mapping[str, Any]
    """What the contender says; see its module. The seconds first: then the clock stops."""
    peak: float
    """Megabytes of all its processes."""
    growth: float
    """Megabytes a minute, later on."""
    memory: Sequence[tuple[float, float]]
    """(seconds since it started, megabytes of all its processes)."""
    asked: Asked
    """What it asked of the embedder."""
    processor: float
    """Seconds of processor time of all its processes; a server's are not among them."""

    @property
    def rate(self) -> float:
        return float(self.told["documents"] / self.told["seconds"])

    @property
    def milliseconds(self) -> float:
        """Of processor time, for each document."""
        return float(1000 * self.processor / self.told["documents"])

    def median(self, what: str) -> float:
        return float(statistics.median(self.told[what]))


def write_markdown(folder: Path, count: int) -> Path:
    """So many documents, and one more to warm up with."""
    folder.mkdir()
    for number, writer in enumerate(itertools.islice(writers(1), count + 1)):
        (folder / f"{number:05}.md").write_text(markdown(writer), encoding="utf-8")
    return folder


def write_pdfs(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number, writer in enumerate(itertools.islice(writers(2), count + 1)):
        (folder / f"{number:05}.pdf").write_bytes(pdf(writer))
    return folder


def ours(folder: Path, documents: Path, embedder: Embedder, url: str | None = None) -> Run:
    """`url` is that of the store; None: a file."""
    return _run(PENSTOCK, folder, documents, embedder, {"url": url})


def llamaindex(
    folder: Path, documents: Path, embedder: Embedder, settings: Mapping[str, Any]
) -> Run:
    return _run(LLAMAINDEX, folder, documents, embedder, settings, peers.PYTHON)


def _run(
    module: str,
    folder: Path,
    documents: Path,
    embedder: Embedder,
    settings: Mapping[str, Any],
    *python: str,
) -> Run:
    folder.mkdir()
    given = {**settings, "documents": str(documents), "embedder": embedder.config()}
    with WorkerProcess(worker_command(module, folder, given, *python), folder) as worker:
        worker.ready()
        embedder.asked()  # from here on
        before = processor_seconds(worker.pid)
        with Memory(worker.pid) as memory:
            clock = json.loads(worker.go().told())
        spent = processor_seconds(worker.pid) - before
        told = {**clock, **json.loads(worker.told())}
        return Run(told, memory.peak, memory.growth, memory.seen, embedder.asked(), spent)
