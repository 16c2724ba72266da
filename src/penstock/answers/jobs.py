"""Names, payloads and ids of the jobs of an answer.

Each phase is one job, in the lane of its model; `answers.web` precedes the search if the web is
searched. Each phase has a clock: a delayed job, which continues without a model if the phase has
not ended by then. `answers.close` publishes the end, once.

Their ids are derived from the answer, so they can be looked up without being recorded anywhere, and
enqueueing is idempotent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.errors import LogStopped
from penstock.model.answer import Answer, Phase, Sources
from penstock.model.ids import child_id
from penstock.model.job import Job, Priority

PLAN, WEB, SEARCH, WRITE = "answers.plan", "answers.web", "answers.search", "answers.write"
CLOCK, CLOSE = "answers.clock", "answers.close"
RETRIES = 10
"""Retries of jobs that finish an answer, which no other job does."""

PLAN_SHARE, WRITE_SHARE = 1 / 6, 1 / 3
"""Shares of an answer's time: the plan is abandoned after the first, the second is reserved for
writing."""

Enqueue = Callable[..., Awaitable[Job]]


def log_of(answer: str) -> str:
    """The log of an answer."""
    return f"answer:{answer}"


def job_id(answer: Answer, kind: str, phase: Phase | None = None) -> str:
    """Id of a job; `phase` is that of a clock."""
    return child_id(f"{answer.tenant}/{answer.id}", kind, phase or "", 1)


def kinds_of(answer: Answer) -> tuple[str, ...]:
    """Kinds of the jobs of the current phase, in order."""
    if answer.phase is Phase.SEARCH and answer.sources is Sources.WEB:
        return WEB, SEARCH
    return ({Phase.PLAN: PLAN, Phase.SEARCH: SEARCH, Phase.ANSWER: WRITE}[answer.phase],)


def ids_of(answer: Answer) -> tuple[str, ...]:
    return tuple(job_id(answer, kind) for kind in kinds_of(answer))


def clock_id(answer: Answer) -> str:
    return job_id(answer, CLOCK, answer.phase)


def phase_end(answer: Answer, now: float, loop_seconds: float) -> float:
    """Return when a phase that starts now has to end."""
    total = answer.ends_at - answer.created_at
    match answer.phase:
        case Phase.PLAN:
            return answer.created_at + total * PLAN_SHARE
        case Phase.SEARCH:
            return min(now + loop_seconds, answer.ends_at - total * WRITE_SHARE)
        case _:
            return answer.ends_at


async def start(
    enqueue: Enqueue, answer: Answer, now: float, loop_seconds: float, priority: Priority
) -> None:
    """Enqueue the job of the current phase, and its clock; idempotent. Does nothing if the answer
    was cancelled meanwhile."""
    until = phase_end(answer, now, loop_seconds)
    # The clock first: what else is lost, it finds.
    await enqueue(
        CLOCK,
        {"answer": answer.id, "phase": answer.phase.value},
        job_id=clock_id(answer),
        tenant=answer.tenant,
        priority=priority,
        run_at=max(now, until),
    )
    await hand_on(enqueue, answer, kinds_of(answer)[0], until, priority)


async def hand_on(
    enqueue: Enqueue, answer: Answer, kind: str, until: float, priority: Priority
) -> None:
    """Enqueue one job of a phase that has to end by `until`."""
    payload: dict[str, Any] = {"answer": answer.id, "until": until}
    try:
        await enqueue(
            kind,
            payload,
            job_id=job_id(answer, kind),
            tenant=answer.tenant,
            log=log_of(answer.id),
            priority=priority,
        )
    except LogStopped:
        return  # cancelled: who did that tells the end


async def close(enqueue: Enqueue, answer: Answer) -> None:
    """Enqueue the job that announces the end of an answer; idempotent."""
    await enqueue(
        CLOSE,
        {"answer": answer.id},
        job_id=job_id(answer, CLOSE),
        tenant=answer.tenant,
        priority=Priority.HIGH,
    )
