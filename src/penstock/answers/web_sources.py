"""`sources: web`: searches the web and reads the pages into the documents before they are searched.

It is a research task like any other, made of the plan's queries. It has half of the time there is
for searching; what is not read by then is left. The job only waits, so it has no lane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.answers.deps import AnswerDeps, with_note
from penstock.answers.jobs import SEARCH, WEB, hand_on
from penstock.answers.phases import MAX_SECONDS
from penstock.engine.context import JobContext
from penstock.errors import PenstockError, PermanentError, TaskStopped
from penstock.model.answer import Answer, Phase
from penstock.model.ids import child_id
from penstock.model.research import TaskStatus
from penstock.research.page import PAGES

SHARE = 0.5
"""Share of the time for searching."""
RESULTS = 5
"""Results per query."""
MAX_PAGES = 20
ENDED = (TaskStatus.COMPLETED, TaskStatus.FAILED)


def register(tools: AnswerDeps, job: Callable[..., Callable[[Any], Any]]) -> None:
    @job(WEB, timeout=MAX_SECONDS)
    async def web(ctx: JobContext, answer: str, until: float) -> dict[str, Any]:
        found = await tools.store.get(ctx.tenant, answer)
        if found is None or found.over or found.phase is not Phase.SEARCH:
            return {"refused": True}
        begun = ctx.job.enqueued_at  # the same in every run
        after = await _ask(tools, ctx, found, begun + SHARE * (until - begun))
        if after is None:
            return {"refused": True}
        await hand_on(tools.enqueue, after, SEARCH, until, ctx.job.priority)
        return {"task": after.task}


async def _ask(tools: AnswerDeps, ctx: JobContext, answer: Answer, until: float) -> Answer | None:
    """Run the research task, and return the answer with its collections and notes; None if somebody
    else has changed the answer."""
    named = replace(answer, task=task_id(answer))
    if answer.collections is not None:
        collections = tuple(dict.fromkeys([*answer.collections, PAGES]))
        named = replace(named, collections=collections)
    if named != answer:  # before there is one: who cancels the answer stops its task, too
        saved = await tools.store.save(named)
        if saved is None:
            return None
        answer = saved
    try:
        note = await _research(tools, ctx, answer, until)
    except PenstockError as error:
        if not isinstance(error, PermanentError) and not ctx.last_attempt:
            raise
        note = f"the web was not searched: {await tools.reason(error)}"
    if not note:
        return answer
    return await tools.store.save(replace(answer, notes=with_note(answer.notes, note)))


async def _research(tools: AnswerDeps, ctx: JobContext, answer: Answer, until: float) -> str:
    """Run the research task; returns remarks for the reader."""
    research, tenant = tools.research, answer.tenant
    assert answer.plan is not None
    assert answer.task is not None
    left = until - tools.now()
    if left <= 0:
        return "the web was not searched: out of time"
    await research.create(
        answer.question,
        budget_pages=MAX_PAGES,
        budget_seconds=max(1.0, left),
        tenant=tenant,
        task_id=answer.task,
    )
    try:
        await research.queue_searches(
            answer.task, answer.plan.queries, max_results=RESULTS, priority="high", tenant=tenant
        )
    except TaskStopped:
        return ""  # by an earlier run, when its time was up
    since: int | None = None
    while (left := until - tools.now()) > 0:
        async with ctx.parked():
            view = await research.status(
                answer.task, wait=min(left, 300.0), since=since, limit=0, tenant=tenant
            )
        if view.status in ENDED:
            return "" if view.status is TaskStatus.COMPLETED else "the web search failed"
        since = view.version
    await research.stop(answer.task, mode="immediate", tenant=tenant)
    return "the web search was cut short: out of time"


def task_id(answer: Answer) -> str:
    """Id of the research task of an answer, the same in every run."""
    return child_id(f"{answer.tenant}/{answer.id}", "research", "", 1)
