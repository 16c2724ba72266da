"""Penstock makes documents searchable: accepted, parsed, masked, chunked, embedded, published."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contenders.worker import until_told, wait_for_go
from penstock import Penstock
from penstock.model.document import Document, DocumentState

UPLOADS = 10
"""Documents accepted at a time."""
PATIENCE = 600.0
PAGE = 500
LOOK_SECONDS = 0.02


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    config = folder / "penstock.yaml"
    config.write_text(  # JSON is YAML
        json.dumps({"embedder": settings["embedder"], "blobs": str(folder / "blobs")})
    )
    url = settings.get("url") or f"sqlite:///{folder / 'jobs.db'}"
    app = Penstock(url, config_file=str(config))
    app.use("documents")
    asyncio.run(_work(app, sorted(Path(settings["documents"]).iterdir())))


async def _work(app: Penstock, every: Sequence[Path]) -> None:
    first, *files = every
    async with app.running():
        await _ingest(app, [first])
        wait_for_go()
        start, began = time.perf_counter(), time.time()
        await _ingest(app, files)
        print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
        print(json.dumps(await _told(app, began)), flush=True)
        await asyncio.to_thread(until_told)


async def _ingest(app: Penstock, files: Sequence[Path]) -> None:
    waiting = iter(files)

    async def upload() -> None:
        for file in waiting:
            await app.documents.add(file, id=file.name)

    async with asyncio.TaskGroup() as group:
        for _ in range(UPLOADS):
            group.create_task(upload())
    for file in files:
        document = await app.documents.wait(file.name, timeout=PATIENCE)
        if document.state is not DocumentState.COMPLETED:
            raise RuntimeError(f"{file.name} {document.state}: {document.message}")


async def _told(app: Penstock, began: float) -> dict[str, Any]:
    """What the harness wants to know, without the document that warmed up: it was first."""
    documents: list[Document] = []
    before = None
    while page := await app.documents.documents(limit=PAGE, before=before):
        documents += page
        before = page[-1].generation
    documents.pop()
    return {
        "documents": len(documents),
        "chunks": sum(one.chunks for one in documents),
        "found": [(one.finished_at or 0) - began for one in documents],
        "waits": [(one.finished_at or 0) - one.accepted_at for one in documents],
        "work": await _work_seconds(app) / (len(documents) + 1),
    }


async def _work_seconds(app: Penstock) -> float:
    """How long all jobs have run; waits between them are not in it."""
    while await app.queue.work_left(None):  # noqa: ASYNC110 (there is no signal for it)
        await asyncio.sleep(LOOK_SECONDS)
    total, before = 0.0, None
    while page := await app.jobs(kind="ingest.*", limit=PAGE, before=before):
        total += sum((job.finished_at or 0) - (job.started_at or 0) for job in page)
        before = page[-1].id
    return total
