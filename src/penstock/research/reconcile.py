"""Repairs searches that were interrupted between the queue and the store.

Queue and store may be two servers, so what belongs together is not always written together. A
process can die between storing a search and enqueueing its job; a job can end without its handler
having the last word (cancelled by hand, killed too often); a task can be resumed while a job of
before is about to end. Each leaves a search unfinished that nobody works on.
"""

from __future__ import annotations

import logging

from penstock.documents.jobs import Enqueue
from penstock.errors import TaskStopped
from penstock.model.job import Job, JobState
from penstock.model.research import Search, SearchRef, SearchState
from penstock.research.job_ids import job_id, log_of, start
from penstock.research.jobs import ResearchDeps

log = logging.getLogger("penstock.research")

GRACE_SECONDS = 2.0
"""Time for the process that stored a search to enqueue its job."""
PAGE = 100
"""Searches checked per pass; if there are more, they take turns."""

_LIVE = (JobState.QUEUED, JobState.RUNNING)


class TaskReconciler:
    """Runs in every process that searches; safe to run concurrently."""

    def __init__(self, tools: ResearchDeps, enqueue: Enqueue) -> None:
        self._tools = tools
        self._enqueue = enqueue
        self._after: SearchRef | None = None

    async def __call__(self) -> None:
        queue, store = self._tools.queue, self._tools.store
        page = await store.unfinished(self._tools.now() - GRACE_SECONDS, PAGE, self._after)
        self._after = page[-1].ref if len(page) == PAGE else None
        if not page:
            return
        jobs = await queue.get([job_id(search) for search in page])
        logs = [(search.ref.tenant, log_of(search.ref.task)) for search in page]
        for search, stopped in zip(page, await queue.stopped(logs), strict=True):
            job = jobs.get(job_id(search))
            if not stopped and (job is None or job.state not in _LIVE):
                await self._mend(search, job)

    async def _mend(self, search: Search, job: Job | None) -> None:
        store = self._tools.store
        if job is not None and job.state is JobState.COMPLETED:
            # It ended for a task that was stopped, and has been resumed since. Or it has just
            # finished the search, and then there is nothing to restart.
            again = await store.restart(search.ref, search.run)
        elif job is not None:
            said = job.error["message"] if job.error else f"its job was {job.state}"
            await store.finish(search.ref, search.run, SearchState.FAILED, said, self._tools.now())
            await self._tools.queue.note(
                search.ref.tenant, log_of(search.ref.task), "search", {"search": search.ref.id}
            )
            return
        else:
            again = search
        if again is not None:
            log.warning("requeued a search that had no job: %s", search.ref.id)
            try:
                await start(self._enqueue, again)
            except TaskStopped:
                log.debug("its task was stopped in the meantime")
