"""How long a search takes in a large corpus: quiet, while another process ingests, and filtered."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.contenders.worker import worker_command
from benchmarks.documents import shelf
from benchmarks.documents.texts import writers
from benchmarks.processes import WorkerProcess
from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from penstock import Penstock
from penstock.model.document import DocumentState

MEDIAN_MS, SLOWEST_MS = 60.0, 250.0
"""The targets: of p50 and of p99."""
PER_SECOND = 10
WARM_UP = 5
VECTORS = (
    f"{shelf.EMBEDDED} chunks have vectors of the offline embedder, the others random unit vectors "
    "of the same 512 dimensions. The question's own embedding is included."
)


def run(sizes: Sizes, folder: Path) -> list[Result]:
    shelf.fill(folder, sizes.chunks)
    return asyncio.run(_measure(sizes, folder))


async def _measure(sizes: Sizes, folder: Path) -> list[Result]:
    asked = [writer.question() for writer in itertools.islice(writers(5), sizes.questions)]
    results = []
    app = Penstock(shelf.url(folder))
    documents = app.use("documents").documents
    async with app:
        start = time.perf_counter()
        await documents.search(asked[0])
        loaded = time.perf_counter() - start
        for question in asked[:WARM_UP]:
            await documents.search(question)
        every = f"{sizes.chunks:,} chunks"
        first = f"The first search of a process, which reads all vectors, took {loaded:.1f} s."
        results += _results(f"{every}, quiet", await _ask(app, asked), f"{VECTORS} {first}")
        some = {"metadata": {"shelf": 1}}
        results += _results(f"{every}, a filter that keeps 1 %", await _ask(app, asked, **some))
        spent, added = await _beside_ingestion(app, folder, asked)
        note = (
            f"Another process takes {PER_SECOND} documents/s of one page and embeds them offline, "
            f"on the same cores; {added:.1f} documents/s became searchable meanwhile."
        )
        results += _results(f"{every}, while another process ingests", spent, note)
    return results


async def _ask(app: Penstock, asked: Sequence[str], **where: Any) -> list[float]:
    """Milliseconds of each question. One after another: what a person waits for."""
    spent = []
    for question in asked:
        start = time.perf_counter()
        result = await app.documents.search(question, **where)
        spent.append(1000 * (time.perf_counter() - start))
        if result.mode != "hybrid":
            raise RuntimeError(f"searched by words alone: {result.note}")
    return spent


async def _beside_ingestion(
    app: Penstock, folder: Path, asked: Sequence[str]
) -> tuple[list[float], float]:
    settings = {"url": shelf.url(folder), "per_second": PER_SECOND}
    command = worker_command("benchmarks.contenders.penstock_trickle", folder, settings)
    with WorkerProcess(command, folder) as worker:
        await asyncio.to_thread(worker.ready)
        worker.go()
        start = time.perf_counter()
        spent = await _ask(app, asked)
        seconds = time.perf_counter() - start
        documents = await app.documents.documents(states=[DocumentState.COMPLETED], limit=1000)
    added = sum(one.ref.id.startswith("added-") for one in documents)
    return spent, added / seconds


def _results(where: str, spent: Sequence[float], note: str = "") -> list[Result]:
    slow = statistics.quantiles(spent, n=100, method="inclusive")[98]
    return [
        Result(
            "hybrid search, SQLite",
            f"{name}, {where}",
            "ms",
            Figure.of("penstock", [value]),
            better=Better.LESS,
            target=AtMost(target, "ms"),
            note=note,
        )
        for name, value, target in (
            ("p50", statistics.median(spent), MEDIAN_MS),
            ("p99", slow, SLOWEST_MS),
        )
    ]
