"""Repairs documents that were interrupted between the queue and the store.

Queue and store may be two servers, so what belongs together is not always written together. A
process can die between accepting a document and enqueueing its job; a job can end (cancelled, out
of time, killed too often) without its handler having the last word. Both leave a document
`processing` that nobody works on. And an upload can end before anything knows of its bytes.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from penstock.documents.addresses import Remote
from penstock.documents.jobs import FETCH, Enqueue, fetch_id, job_ids, start
from penstock.documents.pipeline import IngestDeps
from penstock.errors import BlobMissing, DeadlineExceeded, StoreUnavailable, describe
from penstock.model.document import DocumentState
from penstock.model.job import Job, JobState
from penstock.ports.documents import Pending, Version
from penstock.ports.queue import JobQueue

log = logging.getLogger("penstock.ingest")

GRACE_SECONDS = 2.0
"""Time for the process that accepted a document to enqueue its job."""
PASSED_ON_SECONDS = 600.0
"""The same if jobs are enqueued through messages, which may wait."""
PAGE = 100
"""Documents checked per pass; if there are more, they take turns."""
ORPHAN_SECONDS = 3600.0
"""Age at which an unreferenced blob is deleted: a younger one may belong to a document that is
being accepted."""
SWEEP_SECONDS = 600.0

_LIVE = (JobState.QUEUED, JobState.RUNNING)


class DocumentReconciler:
    """Runs in every process that ingests; safe to run concurrently. `patience`: seconds for which a
    document may have no job."""

    def __init__(
        self, tools: IngestDeps, remote: Remote, queue: JobQueue, enqueue: Enqueue, patience: float
    ) -> None:
        self._tools = tools
        self._remote = remote
        self._queue = queue
        self._enqueue = enqueue
        self._patience = patience
        self._after = 0
        self._sweep_at = 0.0

    async def __call__(self) -> None:
        await self._mend()
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + SWEEP_SECONDS
            await self._sweep()

    async def _mend(self) -> None:
        page = await self._tools.documents.processing(
            after=self._after, older_than=GRACE_SECONDS, limit=PAGE
        )
        self._after = page[-1].document.generation if len(page) == PAGE else 0
        if not page:
            return
        jobs = await self._queue.get([job for one in page for job in (*_before(one), *_now(one))])
        for one in page:
            known = [jobs[job] for job in _now(one) if job in jobs]
            handing_on = [jobs[job] for job in _before(one) if job in jobs]
            if any(job.state in _LIVE for job in (*handing_on, *known)):
                continue
            if known:
                await self._fail(one, _error_of(known[-1]))
            elif one.document.accepted_at <= self._queue.now() - self._patience:
                log.warning("requeued a document that had no job: %s", one.document.generation)
                await self._start(one)

    async def _start(self, pending: Pending) -> None:
        document, blob, _ = pending
        if not document.remote:
            await start(self._enqueue, document, blob)
            return
        try:
            await self._remote.start(self._enqueue, document, blob)
        except BlobMissing as error:
            await self._fail(pending, describe(error, retryable=False))
        except StoreUnavailable as error:
            log.debug("a document waits until its original can be read: %s", error)

    async def _fail(self, pending: Pending, error: dict[str, Any]) -> None:
        """Fail a document. Its jobs were read after it: the next of them may be running by now, or
        may have finished it."""
        documents, document = self._tools.documents, pending.document
        now, blob = await documents.get(document.ref), await documents.original(document.ref)
        if now is None or (now.generation, now.state) != (document.generation, document.state):
            return
        if blob != pending.blob:
            return
        await documents.mark(
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
            ORPHAN_SECONDS, lambda keys: self._tools.documents.blobs_in_use(keys, published=keep)
        )
        if deleted:
            log.warning("deleted %d unreferenced originals", deleted)


def _now(pending: Pending) -> list[str]:
    """Jobs of a document's current version, in order."""
    document, blob, _ = pending
    version = Version(document.ref, document.generation)
    return [fetch_id(version, blob)] if document.remote else job_ids(version, blob)


def _before(pending: Pending) -> list[str]:
    """The job that fetched it, which may be about to enqueue the next."""
    document, _, request = pending
    if document.remote or request is None:
        return []
    return [fetch_id(Version(document.ref, document.generation), request)]


def _error_of(job: Job) -> dict[str, Any]:
    if job.error is None:
        return {"type": "JobGone", "message": f"{job.kind} was {job.state}", "retryable": True}
    error = dict(job.error)
    if job.kind == FETCH and error["type"] == DeadlineExceeded.__name__:
        error["message"] = "its URL could not be fetched within the time limit"
    return error
