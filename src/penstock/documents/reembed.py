"""Re-embeds all texts for a new model; the old vectors are used until then.

A process that is configured for another model requests the change once, when it starts; if two
differ, the one that started last wins. The vectors are the checkpoint: an interrupted run resumes
where it was. Documents published meanwhile have vectors of the new model only, and are found by
their words until the change.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from penstock.adapters.sql.documents import DocumentStore
from penstock.documents.embed_batches import Embed
from penstock.documents.jobs import EMBEDDER_LANE, Enqueue
from penstock.documents.pipeline import BATCH, IngestDeps, Result
from penstock.engine.context import JobContext
from penstock.ports.documents import ServingModel

REEMBED = "ingest.reembed"
LATER_SECONDS = 5.0
"""Delay after which a job is left to another process."""
SOME = 1000
"""Texts read at a time: finding them means skipping all that are done."""


class Reembedding:
    """Makes the configured model the serving one."""

    def __init__(self, documents: DocumentStore, model: str, enqueue: Enqueue) -> None:
        self._documents = documents
        self._model = model
        self._enqueue = enqueue
        self._wanted = False
        self._number = 0
        """Number of the change that a job was enqueued for."""

    async def __call__(self) -> None:
        serving = await self._documents.serving()
        if not self._wanted:
            if self._model not in (serving.model, serving.next) or self._is_back(serving):
                await self._documents.want(self._model)
                serving = await self._documents.serving()
            self._wanted = True
        if serving.next == self._model and serving.number != self._number:
            # One that has failed or was cancelled is tried again by each process that starts.
            key = f"{self._model}@{serving.number}"
            await self._enqueue(REEMBED, {"model": self._model}, key=key, replace="finished")
            self._number = serving.number

    def _is_back(self, serving: ServingModel) -> bool:
        """Whether the previous model is configured again, before the change to another was
        finished."""
        return serving.model == self._model and serving.next is not None


def register(tools: IngestDeps, job: Callable[..., Callable[[Any], Any]]) -> None:
    @job(REEMBED, lane=EMBEDDER_LANE)
    async def reembed(ctx: JobContext, model: str) -> Result:
        if model != tools.model:
            ctx.run_later(LATER_SECONDS, f"needs a worker process with the embedder {model}")
        with tools.embedding(ctx) as ask:
            return await _reembed(tools, ctx, ask)


async def _reembed(tools: IngestDeps, ctx: JobContext, ask: Embed) -> Result:
    documents, model, given, done = tools.documents, tools.model, ctx.remaining(), 0
    while not await documents.serve(model):
        if (await documents.serving()).next != model:
            return {"late": True}
        some = await documents.to_reembed(model, SOME)
        for start in range(0, len(some), BATCH):
            if done and ctx.remaining() < given / 2:
                ctx.run_later(0.0, f"{done} texts embedded")
            batch = some[start : start + BATCH]
            vectors = await ask([one.text for _, one in batch])
            known: dict[str, dict[str, bytes]] = {}
            for (tenant, one), vector in zip(batch, vectors, strict=True):
                known.setdefault(tenant, {})[one.hash] = vector
            for tenant, theirs in known.items():
                await documents.put_vectors(tenant, model, theirs)
            done += len(batch)
            ctx.progress(0.0, f"{done} texts embedded")
    return {"embedded": done}


log = logging.getLogger("penstock.ingest")

STEP_SECONDS = 10.0
STEP = 1000
"""Vectors checked at a time, in some milliseconds: one process checks 100,000 in a quarter of an
hour."""


class Purge:
    """Runs in every process that ingests; safe to run concurrently."""

    def __init__(self, documents: DocumentStore, keep_seconds: float) -> None:
        self._documents = documents
        self._keep_seconds = keep_seconds
        self._after: tuple[Any, ...] | None = None
        self._next_at = 0.0

    async def __call__(self) -> None:
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + STEP_SECONDS
        step = await self._documents.purge(
            after=self._after, keep_seconds=self._keep_seconds, limit=STEP
        )
        self._after = step.after
        if step.deleted:
            log.info("deleted %d unused vectors", step.deleted)
