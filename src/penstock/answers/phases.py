"""The phases of an answer, each a job: plan, search, write.

A phase stores its result, then enqueues the next. If interrupted, it runs again and resumes from
what is stored. If a model fails or is too slow, the phase is done without it, and the answer says
so. If a model is unreachable, that concerns its lane: the job waits for it like any other, until
the clock of the phase continues without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar

from penstock.answers import prompts
from penstock.answers.deps import AnswerDeps, asked_twice, with_note
from penstock.answers.jobs import PLAN, SEARCH, WRITE
from penstock.answers.writer import Writer
from penstock.engine.context import JobContext
from penstock.errors import (
    ConfigError,
    LaneBusy,
    ModelError,
    PenstockError,
    PermanentError,
    RunLater,
)
from penstock.model.answer import Answer, Phase, Plan
from penstock.ports.language_model import LanguageModel
from penstock.ports.librarian import LANE, Errand, Librarian

T = TypeVar("T")

MAX_SECONDS = 3600.0
"""Maximum duration of an answer, and of each of its jobs."""
RESERVE_SECONDS, RESERVE_SHARE = 1.0, 0.1
"""Time of a phase that is reserved for continuing without a model before its clock does: the lesser
of the two."""
UNAIDED_SECONDS = 10.0
"""Time for a search without a model, even after the deadline: without evidence there is no
answer."""
LONGEST_QUERY = 1000
"""Maximum length of a question that is searched for as it is."""

NO_MODEL = "no model is configured for {}"
LOST = ": the librarian cannot be reached"
TOO_SLOW = "the model did not {} in time"

_PASSING = (LaneBusy, RunLater)
"""Errors that the engine handles: the job runs again, and nothing is lost."""


class Phases:
    def __init__(self, tools: AnswerDeps) -> None:
        self._tools = tools

    def register(self, job: Callable[..., Callable[[Any], Any]]) -> None:
        @job(PLAN, lane=self._lane(Phase.PLAN), timeout=MAX_SECONDS)
        async def plan(ctx: JobContext, answer: str, until: float) -> dict[str, Any]:
            return await self._run(ctx, answer, Phase.PLAN, until, self._plan)

        @job(SEARCH, lane=self._tools.librarian.lane, timeout=MAX_SECONDS)
        async def search(ctx: JobContext, answer: str, until: float) -> dict[str, Any]:
            return await self._run(ctx, answer, Phase.SEARCH, until, self._search)

        @job(WRITE, lane=self._lane(Phase.ANSWER), timeout=MAX_SECONDS)
        async def write(ctx: JobContext, answer: str, until: float) -> dict[str, Any]:
            return await self._run(ctx, answer, Phase.ANSWER, until, self._write)

    def _lane(self, phase: Phase) -> str | None:
        model = self._tools.models.get(phase)
        return None if model is None else model.lane

    async def _run(
        self,
        ctx: JobContext,
        answer_id: str,
        phase: Phase,
        until: float,
        work: Callable[[JobContext, Answer, float], Awaitable[Answer | None]],
    ) -> dict[str, Any]:
        tools = self._tools
        answer = await tools.store.get(ctx.tenant, answer_id)
        if answer is None:
            return {"refused": "there is no such answer"}
        if answer.phase is phase and not answer.over:
            after = await work(ctx, answer, until)
            if after is None:
                return {"refused": "it was changed concurrently"}
            answer = after
        # Also where an earlier run, or the clock, has stored it and may have died since.
        await self.go_on(ctx, answer)
        return {"phase": answer.phase.value, "state": answer.state.value}

    async def go_on(self, ctx: JobContext, answer: Answer) -> None:
        if answer.over:
            await self._tools.close(answer)
        else:
            await self._tools.start(answer, ctx.job.priority)

    # Plan

    async def _plan(self, ctx: JobContext, answer: Answer, until: float) -> Answer | None:
        model = self._tools.models.get(Phase.PLAN)
        if model is None:
            return await self.unplanned(answer, "")
        answer = _asked(answer, model)
        try:
            plan = await self._in_time(ctx, until, self._ask_plan(ctx, model, answer))
        except TimeoutError:
            return await self.unplanned(answer, TOO_SLOW.format("plan"))
        except ModelError as error:
            return await self.unplanned(answer, f"without a plan: {error}")
        except PenstockError as error:
            return await self._give_up(ctx, error, lambda why: self.unplanned(answer, why))
        return await self.planned(answer, plan, "")

    async def _ask_plan(self, ctx: JobContext, model: LanguageModel, answer: Answer) -> Plan:
        messages = prompts.plan_messages(answer.question)
        plan = await asked_twice(
            model, ctx, messages, prompts.read_plan, most=prompts.PLAN_TOKENS, effort="low"
        )
        enough, *queries = await self._tools.masked([plan.enough, *plan.queries])
        return Plan(tuple(queries), enough)

    async def unplanned(self, answer: Answer, why: str) -> Answer | None:
        """Use the question itself as the plan."""
        return await self.planned(answer, Plan((answer.question[:LONGEST_QUERY],)), why)

    async def planned(self, answer: Answer, plan: Plan, why: str) -> Answer | None:
        notes = with_note(with_note(answer.notes, why), await self._tools.unread(answer))
        after = await self._tools.store.save(
            replace(answer, phase=Phase.SEARCH, plan=plan, notes=notes)
        )
        if after is not None:
            data = {"queries": list(plan.queries), "enough": plan.enough, "note": why}
            await self._tools.note(answer, "plan", data)
        return after

    # Search

    async def _search(self, ctx: JobContext, answer: Answer, until: float) -> Answer | None:
        model = self._tools.models.get(Phase.SEARCH)
        answer = answer if model is None else _asked(answer, model)
        ends_at = self._tools.now() + self._left(ctx, until)
        try:
            rounds = await self._look(ctx, answer, self._tools.librarian, ends_at)
        except PenstockError as error:
            # Each round that was stored has changed it.
            now = await self._tools.store.get(answer.tenant, answer.id)
            if now is None or now.over or now.phase is not Phase.SEARCH:
                return None
            there = now
            return await self._give_up(ctx, error, lambda why: self.found(ctx, there, why))
        return None if rounds is None else await self.found(ctx, rounds, "")

    async def _look(
        self, ctx: JobContext, answer: Answer, librarian: Librarian, ends_at: float
    ) -> Answer | None:
        """Run the rounds of one errand, storing each as it ends; returns the answer, or None if
        somebody else has changed it."""
        tools = self._tools
        assert answer.plan is not None
        following = answer.rounds[-1].next if answer.rounds else answer.plan.queries
        if not following:
            return answer
        errand = Errand(
            tenant=answer.tenant,
            question=answer.question,
            plan=replace(answer.plan, queries=following),
            ends_at=ends_at,
            collections=answer.collections,
            found=answer.evidence,
            rounds_done=len(answer.rounds),
            asked=tuple(query for one in answer.rounds for query in one.queries),
        )
        await self._tell_searching(answer, len(answer.rounds) + 1, following)
        async with aclosing(librarian.search(ctx, errand)) as rounds:
            async for one in rounds:
                notes = with_note(answer.notes, one.note)
                after = await tools.store.save(
                    replace(answer, rounds=(*answer.rounds, one), notes=notes)
                )
                if after is None:
                    return None
                answer = after
                numbers = [found.number for found in one.evidence]
                titles = dict.fromkeys(found.title or found.document for found in one.evidence)
                data = {"round": one.number, "numbers": numbers, "titles": list(titles)}
                await tools.note(answer, "evidence", data | {"missing": list(one.missing)})
                if one.next:
                    await self._tell_searching(answer, one.number + 1, one.next)
        return answer

    async def _tell_searching(self, answer: Answer, number: int, queries: tuple[str, ...]) -> None:
        await self._tools.note(answer, "searching", {"round": number, "queries": list(queries)})

    async def found(self, ctx: JobContext, answer: Answer, why: str) -> Answer | None:
        """End the search with the evidence found so far. If there was no search yet, search now,
        without a model."""
        tools = self._tools
        if not answer.rounds:
            ends_at = tools.now() + UNAIDED_SECONDS
            looked = await self._look(ctx, answer, tools.unaided, ends_at)
            if looked is None:
                return None
            answer = looked
        last = answer.rounds[-1] if answer.rounds else None
        if last is not None and last.next and not why:
            why = "the time for searching ran out"
            if await tools.is_down(tools.librarian.lane):
                why += LOST
        return await tools.store.save(
            replace(
                answer,
                phase=Phase.ANSWER,
                missing=() if last is None else last.missing,
                notes=with_note(answer.notes, why),
            )
        )

    # Write

    async def _write(self, ctx: JobContext, answer: Answer, until: float) -> Answer | None:
        model = self._tools.models.get(Phase.ANSWER)
        if model is None:
            return await self.written(ctx, answer, NO_MODEL.format("answers"))
        if not answer.evidence:
            return await self.written(ctx, answer, "nothing was found")
        answer = _asked(answer, model)
        try:
            writer = Writer(self._tools, ctx, answer)
            done = await self._in_time(ctx, until, writer.by_model(model))
        except TimeoutError:
            return await self.written(ctx, answer, TOO_SLOW.format("write an answer"))
        except ModelError as error:
            return await self.written(ctx, answer, f"the model wrote no answer: {error}")
        except PenstockError as error:
            return await self._give_up(ctx, error, lambda why: self.written(ctx, answer, why))
        return await self._tools.store.save(done)

    async def written(self, ctx: JobContext, answer: Answer, why: str) -> Answer | None:
        """Write the answer without a model."""
        return await self._tools.store.save(await Writer(self._tools, ctx, answer).extractive(why))

    # A model that does not do what it should

    async def _in_time(self, ctx: JobContext, until: float, work: Awaitable[T]) -> T:
        """Run with a time limit; raises TimeoutError."""
        async with asyncio.timeout(self._left(ctx, until)):
            return await work

    def _left(self, ctx: JobContext, until: float) -> float:
        """Seconds left for a model, so that the phase ends before its clock runs and before the
        job's timeout."""
        left = max(0.0, min(until - self._tools.now(), ctx.remaining()))
        return left - min(RESERVE_SECONDS, RESERVE_SHARE * left)

    async def _give_up(
        self,
        ctx: JobContext,
        error: PenstockError,
        without: Callable[[str], Awaitable[Answer | None]],
    ) -> Answer | None:
        """Continue without the model or librarian if the error is not retried; then raise it, so
        that the engine and the lane learn of it."""
        final = isinstance(error, PermanentError | ConfigError) or ctx.last_attempt
        if isinstance(error, _PASSING) or not final:
            raise error
        whom = "librarian" if getattr(error, "lane", None) == LANE else "model"
        after = await without(f"without the {whom}: {await self._tools.reason(error)}")
        if after is not None:
            await self.go_on(ctx, after)
        raise error


def _asked(answer: Answer, model: LanguageModel) -> Answer:
    return replace(answer, models={**answer.models, answer.phase.value: model.name})
