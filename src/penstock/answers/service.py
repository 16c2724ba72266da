"""`app.answers`: answers questions from documents, with citations."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence
from dataclasses import replace

from penstock.answers.completion import TERMINAL
from penstock.answers.deps import AnswerDeps
from penstock.answers.jobs import CLOCK, PLAN, SEARCH, WRITE, log_of
from penstock.answers.phases import MAX_SECONDS
from penstock.answers.reconcile import AnswerReconciler
from penstock.answers.views import AnswerSnapshots, AnswerView
from penstock.engine.assembly import Chore
from penstock.engine.waiters import LogWaiters
from penstock.errors import AnswerNotFound, TaskNotFound, ValidationError, WaitTimeout
from penstock.model.answer import Answer, AnswerState, Phase, Sources
from penstock.model.change import Change
from penstock.model.job import Priority, PriorityName
from penstock.research.job_ids import new_task_id

MAX_WAIT = 300.0
MAX_LISTED = 1000
QUESTION_LIMIT = 10_000
MAX_COLLECTIONS = 100
LEAST_SECONDS = 1.0
EVENTS = ("plan", "searching", "evidence", "writing", "token", "answer", *TERMINAL)
"""Events in the log of an answer, besides those of its jobs. Exactly one of the last two ends
it."""


class Answers:
    """The answers of an app. Their work is done by jobs; see `phases`.

    Unknown ids, and those of other tenants, raise AnswerNotFound; invalid arguments raise
    ValidationError, with a message that says what is valid.
    """

    def __init__(self, tools: AnswerDeps, logs: LogWaiters, seconds: float) -> None:
        self._tools = tools
        self._logs = logs
        self._seconds = seconds
        self._snapshots = AnswerSnapshots(tools.queue, tools.store)

    async def open(self) -> None:
        """Do nothing: queue, store, documents and research are already open."""

    async def close(self) -> None:
        await self._snapshots.close()
        await self._tools.librarian.close()

    def chores(self, kinds: Container[str]) -> list[Chore]:
        """Background work of a process that answers. Raises ConfigError if it cannot be done:
        better not to start than to answer every question without a model."""
        for kind, phase in ((PLAN, Phase.PLAN), (SEARCH, Phase.SEARCH), (WRITE, Phase.ANSWER)):
            if kind in kinds and phase in self._tools.models:
                self._tools.models[phase].check()
        return [AnswerReconciler(self._tools)] if CLOCK in kinds else []

    async def ask(
        self,
        question: str,
        *,
        sources: str = "documents",
        collections: Sequence[str] | None = None,
        seconds: float | None = None,
        priority: PriorityName = "high",
        tenant: str = "default",
        answer_id: str | None = None,
    ) -> Answer:
        """Ask a question, to be answered within `seconds` (default: the setting
        `answer_seconds`). Returns at once; the answer is made whether anybody waits for it or
        not. `collections` of documents: default all. `answer_id`, 32 hex digits, makes it
        idempotent: an existing answer with that id is returned."""
        question, rank = " ".join(question.split()), Priority.parse(priority)
        if not 0 < len(question) <= QUESTION_LIMIT:
            raise ValidationError(f"a question must be 1 to {QUESTION_LIMIT:,} characters")
        if sources not in list(Sources):
            raise ValidationError(f"sources must be one of {', '.join(Sources)}")
        total = self._seconds if seconds is None else seconds
        if not LEAST_SECONDS <= total <= MAX_SECONDS:
            raise ValidationError(f"seconds must be {LEAST_SECONDS:g} to {MAX_SECONDS:g}")
        if collections is not None and not 0 < len(collections) <= MAX_COLLECTIONS:
            raise ValidationError(f"name 1 to {MAX_COLLECTIONS} collections, or none for all")
        (masked,) = await self._tools.masked([question])
        within = (
            None if collections is None else await self._tools.documents.collections(collections)
        )
        now = self._tools.now()
        answer = await self._tools.store.create(
            Answer(
                tenant=tenant,
                id=answer_id or new_task_id(),
                question=masked,
                sources=Sources(sources),
                collections=within,
                created_at=now,
                ends_at=now + total,
            )
        )
        if not answer.over:
            await self._tools.start(answer, rank)
        return answer

    async def get(
        self,
        answer_id: str,
        *,
        wait: float = 0.0,
        since: int | None = None,
        tenant: str = "default",
    ) -> AnswerView:
        """Return the current state of an answer. With `wait`, wait up to that many seconds (300
        at most) for a change after version `since`, or after now; returns at once if there was
        one, or if it is finished."""
        if not 0 <= wait <= MAX_WAIT:
            raise ValidationError(f"wait must be 0 to {MAX_WAIT:g} s")
        view = await self._snapshots.get(tenant, answer_id)
        seen = view.version if since is None else since
        if wait > 0 and not view.answer.over and seen >= view.version:
            view = await self._snapshots.after(tenant, answer_id, seen, wait) or view
        return view

    async def wait(
        self, answer_id: str, *, timeout: float | None = None, tenant: str = "default"
    ) -> Answer:
        """Wait until the answer is finished, and return it. Raises WaitTimeout after `timeout`
        seconds."""
        try:
            async with asyncio.timeout(timeout):
                view = await self._snapshots.get(tenant, answer_id)
                while not view.answer.over:
                    view = await self.get(
                        answer_id, wait=MAX_WAIT, since=view.version, tenant=tenant
                    )
                return view.answer
        except TimeoutError:
            raise WaitTimeout(f"answer {answer_id} was not finished after {timeout:g} s") from None

    async def events(
        self,
        answer_id: str,
        since: int = 0,
        *,
        wait: float = 0.0,
        limit: int = 1000,
        tenant: str = "default",
    ) -> list[Change]:
        """Return log entries after version `since`; waits up to `wait` seconds for the first.
        Excludes changes of its jobs: see EVENTS."""
        if not 0 <= wait <= MAX_WAIT:
            raise ValidationError(f"wait must be 0 to {MAX_WAIT:g} s")
        if not 0 < limit <= MAX_LISTED:
            raise ValidationError(f"limit must be 1 to {MAX_LISTED}")
        if await self._tools.store.get(tenant, answer_id) is None:
            raise AnswerNotFound(answer_id)
        loop, log = asyncio.get_running_loop(), log_of(answer_id)
        end = loop.time() + wait
        while True:
            page = await self._tools.queue.changes(tenant, log, since, limit)
            told = [one for one in page if one.what in EVENTS and not one.job_id]
            left = end - loop.time()
            if told or (not page and left <= 0):
                return told
            if page:
                since = page[-1].version
            else:
                await self._logs.passed(tenant, log, since, left)

    async def cancel(self, answer_id: str, *, tenant: str = "default") -> Answer:
        """Cancel a question. Returns its state afterwards: it may have finished just before. Its
        work ends within about a second."""
        tools = self._tools
        while True:
            answer = await tools.store.get(tenant, answer_id)
            if answer is None:
                raise AnswerNotFound(answer_id)
            if answer.over:
                break
            ended = replace(answer, state=AnswerState.CANCELLED, finished_at=tools.now())
            saved = await tools.store.save(ended)
            if saved is not None:  # else a job was faster: look again
                answer = saved
                break
        if answer.state is AnswerState.CANCELLED:  # also again, if who cancelled it died
            await tools.queue.stop(tenant, log_of(answer_id), running=True)
            if answer.task is not None:
                await self._stop_research(tenant, answer.task)
            await tools.close(answer)
        return answer

    async def _stop_research(self, tenant: str, task: str) -> None:
        try:
            await self._tools.research.stop(task, mode="immediate", tenant=tenant)
        except TaskNotFound:
            return  # it was only about to be made, by a job that is cancelled

    async def answers(
        self, *, tenant: str = "default", limit: int = 100, before: str | None = None
    ) -> list[Answer]:
        """List answers, newest first, without evidence; `before` is the id of the last one of
        the previous page."""
        if not 0 < limit <= MAX_LISTED:
            raise ValidationError(f"limit must be 1 to {MAX_LISTED}")
        return await self._tools.store.answers(tenant, limit, before)
