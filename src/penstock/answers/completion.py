"""Ends an answer: in time, and exactly once.

The clock of a phase is a delayed job. It runs when the phase should be over; if it is not, because
its lane is full, its service is down or its job was lost, the clock continues without a model. So a
question is answered in time whatever a model does.

The end is published by one job with a fixed id, which checks whether it was published already: runs
of one job never overlap, so it is published once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.answers.deps import AnswerDeps
from penstock.answers.jobs import CLOCK, CLOSE, RETRIES, ids_of, job_id, log_of
from penstock.answers.phases import LOST, MAX_SECONDS, Phases
from penstock.engine.context import JobContext
from penstock.model.answer import Answer, AnswerState, Phase
from penstock.model.job import JobState
from penstock.ports.queue import JobFilter
from penstock.wire.answers import AnswerDetails, details_of

DONE, ERROR = "done", "error"
TERMINAL = (DONE, ERROR)
PAGE = 1000
"""Log entries read at a time."""

LATE = {
    Phase.PLAN: "planning did not finish in time",
    Phase.SEARCH: "searching did not finish in time",
    Phase.ANSWER: "writing did not finish in time",
}


class AnswerEnding:
    def __init__(self, tools: AnswerDeps, phases: Phases) -> None:
        self._tools = tools
        self._phases = phases

    def register(self, job: Callable[..., Callable[[Any], Any]]) -> None:
        @job(CLOCK, timeout=MAX_SECONDS, max_retries=RETRIES)
        async def clock(ctx: JobContext, answer: str, phase: str) -> dict[str, Any]:
            return await self._clock(ctx, answer, Phase(phase))

        @job(CLOSE, max_retries=RETRIES)
        async def close(ctx: JobContext, answer: str) -> dict[str, Any]:
            return await self._close(ctx.tenant, answer)

    async def _clock(self, ctx: JobContext, answer_id: str, phase: Phase) -> dict[str, Any]:
        tools = self._tools
        answer = await tools.store.get(ctx.tenant, answer_id)
        if answer is None:
            return {"refused": "there is no such answer"}
        late, out_of_reach, lost = answer.phase is phase and not answer.over, False, False
        if late:
            model, librarian = tools.models.get(phase), tools.librarian
            out_of_reach = model is not None and await self._out_of_reach(answer, model.lane)
            lost = phase is Phase.SEARCH and await self._out_of_reach(answer, librarian.lane)
            await tools.queue.cancel(JobFilter(ids=ids_of(answer), tenant=answer.tenant))
            # Whoever was at work may have stored something while it was being cancelled.
            answer = await tools.store.get(ctx.tenant, answer_id) or answer
        if late and answer.phase is phase and not answer.over:
            why = LATE[phase]
            if out_of_reach:
                why += ": its model cannot be reached"
            elif lost:
                why += LOST
            after = await self._without(ctx, answer, why, whole=out_of_reach)
            if after is None:
                ctx.run_later(0.1, "it was changed concurrently")
                raise AssertionError("unreachable")
            answer = after
        await self._phases.go_on(ctx, answer)
        return {"late": late, "phase": answer.phase.value}

    async def _out_of_reach(self, answer: Answer, lane: str | None) -> bool:
        """Whether the phase waits for a service that is down. If it is a model, the other phases do
        not wait either, since their models have the same address."""
        jobs = await self._tools.queue.get(ids_of(answer))
        if not any(job.state is JobState.QUEUED for job in jobs.values()):
            return False
        return await self._tools.is_down(lane)

    async def _without(
        self, ctx: JobContext, answer: Answer, why: str, *, whole: bool
    ) -> Answer | None:
        """Run the phase without a model; with `whole`, all remaining phases."""
        after: Answer | None = answer
        while after is not None and not after.over:
            match after.phase:
                case Phase.PLAN:
                    after = await self._phases.unplanned(after, why)
                case Phase.SEARCH:
                    after = await self._phases.found(ctx, after, why)
                case _:
                    after = await self._phases.written(ctx, after, why)
            if not whole:
                break
        return after

    async def _close(self, tenant: str, answer_id: str) -> dict[str, Any]:
        tools = self._tools
        answer = await tools.store.get(tenant, answer_id)
        if answer is None or not answer.over:
            return {"refused": "it is not over"}
        if not await self._is_told(answer):
            if answer.state is AnswerState.COMPLETED:
                await tools.note(answer, "answer", told(answer))
            await tools.note(
                answer, DONE if answer.state is AnswerState.COMPLETED else ERROR, ending(answer)
            )
        clocks = [job_id(answer, CLOCK, phase) for phase in LATE]
        await tools.queue.cancel(JobFilter(ids=clocks, tenant=tenant))
        return {"state": answer.state.value}

    async def _is_told(self, answer: Answer) -> bool:
        since = 0
        while True:
            page = await self._tools.queue.changes(answer.tenant, log_of(answer.id), since, PAGE)
            if any(one.what in TERMINAL and not one.job_id for one in page):
                return True
            if len(page) < PAGE:
                return False
            since = page[-1].version


def told(answer: Answer) -> dict[str, Any]:
    """The final event: the whole answer without the passages, which can be read by its id."""
    known = details_of(answer, AnswerDetails).as_dict()
    kept = ("text", "citations", "unsupported", "missing", "mode", "notes", "models")
    return {name: known[name] for name in kept}


def ending(answer: Answer) -> dict[str, Any]:
    return {"state": answer.state.value, "error": answer.error, "finished_at": answer.finished_at}
