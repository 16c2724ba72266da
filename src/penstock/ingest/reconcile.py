"""No document waits for ever: what was interrupted between the queue and the store is mended.

Queue and store may be two servers, so what belongs together is not always written together. A
process can die between accepting a document and enqueueing its job; a job can end (cancelled, out
of time, killed too often) without its handler having the last word. Both leave a document
`processing` that nobody works on. And an upload can end before anything knows of its bytes.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from penstock.ingest.jobs import Enqueue, job_ids, start
from penstock.ingest.pipeline import Tools
from penstock.model.document import DocumentState
from penstock.model.job import Job, JobState
from penstock.ports.corpus import Pending, Version
from penstock.ports.queue import JobQueue

log = logging.getLogger("penstock.ingest")

GRACE_SECONDS = 2.0
"""Whoever has accepted a document is given this long to enqueue its job."""
PAGE = 100
"""Documents looked at each time. Where more are under way they take turns."""
ORPHAN_SECONDS = 3600.0
"""A blob that nothing refers to is deleted at this age: a younger one may be being accepted."""
SWEEP_SECONDS = 600.0

_LIVE = (JobState.QUEUED, JobState.RUNNING)


class Reconciler:
    """Done by every process that ingests, and harmless when several do it at once."""

    def __init__(self, tools: Tools, queue: JobQueue, enqueue: Enqueue) -> None:
        self._tools = tools
        self._queue = queue
        self._enqueue = enqueue
        self._after = 0
        self._sweep_at = 0.0

    async def __call__(self) -> None:
        await self._mend()
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + SWEEP_SECONDS
            await self._sweep()

    async def _mend(self) -> None:
        page = await self._tools.corpus.processing(
            after=self._after, older_than=GRACE_SECONDS, limit=PAGE
        )
        self._after = page[-1].document.generation if len(page) == PAGE else 0
        if not page:
            return
        jobs = await self._queue.get([job for one in page for job in _job_ids(one)])
        for one in page:
            known = [jobs[job] for job in _job_ids(one) if job in jobs]
            if any(job.state in _LIVE for job in known):
                continue
            if not known:
                log.warning("a document had no job: %s", one.document.generation)
                await start(self._enqueue, one.document, one.blob)
            else:
                await self._fail(one, known[-1])

    async def _fail(self, pending: Pending, job: Job) -> None:
        """The job was read after the document: it may have had the last word in between."""
        corpus, document = self._tools.corpus, pending.document
        now = await corpus.get(document.ref)
        if now is None or (now.generation, now.state) != (document.generation, document.state):
            return
        error = _error_of(job)
        await corpus.mark(
            Version(document.ref, document.generation),
            state=DocumentState.FAILED,
            stage=now.stage,
            progress=now.progress,
            message=error["message"],
            error=error,
        )

    async def _sweep(self) -> None:
        keep = self._tools.keep_originals
        deleted = await self._tools.blobs.sweep(
            ORPHAN_SECONDS, lambda keys: self._tools.corpus.blobs_in_use(keys, published=keep)
        )
        if deleted:
            log.warning("%d originals that nothing referred to were deleted", deleted)


def _job_ids(pending: Pending) -> list[str]:
    return job_ids(Version(pending.document.ref, pending.document.generation), pending.blob)


def _error_of(job: Job) -> dict[str, Any]:
    if job.error is not None:
        return dict(job.error)
    return {"type": "JobGone", "message": f"{job.kind} was {job.state}", "retryable": True}
