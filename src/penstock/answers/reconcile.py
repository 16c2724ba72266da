"""Repairs answers that were interrupted between the queue and the store.

A process can die between storing an answer and enqueueing its next job. A job, and the clock of its
phase, can both end without having the last word: cancelled by hand, or failed too often. Each
leaves an answer that nobody works on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from penstock.answers.deps import AnswerDeps
from penstock.answers.jobs import clock_id, ids_of
from penstock.model.answer import Answer, AnswerState
from penstock.model.job import Job, JobState, Priority

log = logging.getLogger("penstock.answers")

GRACE_SECONDS = 2.0
"""Time for the process that stored an answer to enqueue its job."""
PAGE = 100
"""Answers checked per pass; if there are more, they take turns."""

_LIVE = (JobState.QUEUED, JobState.RUNNING)


class AnswerReconciler:
    """Runs in every process that answers; safe to run concurrently."""

    def __init__(self, tools: AnswerDeps) -> None:
        self._tools = tools
        self._after: tuple[str, str] | None = None

    async def __call__(self) -> None:
        store, queue = self._tools.store, self._tools.queue
        page = await store.running(self._tools.now() - GRACE_SECONDS, PAGE, self._after)
        self._after = (page[-1].tenant, page[-1].id) if len(page) == PAGE else None
        if not page:
            return
        wanted = [one for answer in page for one in (*ids_of(answer), clock_id(answer))]
        jobs = await queue.get(wanted)
        for answer in page:
            await self._look_at(answer, jobs)

    async def _look_at(self, answer: Answer, jobs: Mapping[str, Job]) -> None:
        clock = jobs.get(clock_id(answer))
        work = [jobs[one] for one in ids_of(answer) if one in jobs]
        if clock is None or not work:
            log.warning("requeued an answer that had no job: %s", answer.id)
            await self._tools.start(answer, Priority.HIGH)
        elif not any(one.state in _LIVE for one in (clock, *work)):
            await self._fail(answer, (clock, *work))

    async def _fail(self, answer: Answer, jobs: tuple[Job, ...]) -> None:
        """Fail the answer, unless it has changed since: its jobs may have ended because they were
        done."""
        now = await self._tools.store.get(answer.tenant, answer.id)
        if now is None or now.over or now.saves != answer.saves:
            return
        said = next((one.error["message"] for one in jobs if one.error), "its jobs were cancelled")
        failed = replace(now, state=AnswerState.FAILED, error=said, finished_at=self._tools.now())
        if await self._tools.store.save(failed) is not None:
            log.warning("cancelled an answer: %s", answer.id)
            await self._tools.close(failed)
