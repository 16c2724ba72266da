"""Answers: as a list entry, as a summary, and with all details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from penstock.model.answer import Answer, AnswerState, Citation, Evidence, Phase, Plan, Sources
from penstock.wire.view import ListPage, WireView, described, made

described(Citation, Evidence, Plan)


@dataclass(slots=True, frozen=True)
class AnswerLine(WireView):
    """An answer in a list."""

    answer_id: str
    question: str
    """As stored: personal data is masked."""
    sources: Sources
    state: AnswerState
    mode: Literal["", "model", "extractive"]
    """`extractive`: sentences quoted from the evidence, chosen without a model."""
    created_at: float
    """Seconds since 1970."""
    finished_at: float | None


@dataclass(slots=True, frozen=True)
class AnswerPage(ListPage):
    answers: Sequence[AnswerLine]


@dataclass(slots=True, frozen=True)
class AnswerSummary(AnswerLine):
    """The text of an answer, and its progress."""

    phase: Phase
    text: str
    """`[1]` cites the evidence of that number."""
    missing: Sequence[str]
    """What was searched for but not found."""
    notes: Sequence[str]
    """Remarks for the reader."""
    error: str | None


@dataclass(slots=True, frozen=True)
class RoundView(WireView):
    """One round of the search loop."""

    number: int
    queries: Sequence[str]
    evidence: Sequence[int]
    """Numbers of the new evidence."""
    missing: Sequence[str]
    enough: bool
    note: str
    next: Sequence[str]
    """Queries of the next round."""


@dataclass(slots=True, frozen=True)
class AnswerDetails(AnswerSummary):
    """All details of an answer."""

    collections: Sequence[str] | None
    """Collections that were searched; None: all."""
    citations: Sequence[Citation]
    unsupported: Sequence[tuple[int, int]]
    """Start and end of each sentence without a citation."""
    models: Mapping[str, str]
    """Model used, by phase."""
    plan: Plan | None
    rounds: Sequence[RoundView]
    evidence: Sequence[Evidence]
    task: str | None
    """With `web`: the research task that searched."""
    ends_at: float
    """Deadline of the answer."""


@dataclass(slots=True, frozen=True)
class AnswerAtVersion(AnswerDetails):
    """All details of an answer, as of `version`."""

    version: int
    """Pass it as `since` to wait for the next change."""
    next_poll: float | None
    """Recommended next `wait`, in seconds; None: finished."""


def line_of(answer: Answer) -> AnswerLine:
    return made(AnswerLine, answer, answer_id=answer.id)


D = TypeVar("D", bound=AnswerDetails)


def details_of(answer: Answer, view: type[D], **more: Any) -> D:
    rounds = [
        made(RoundView, one, evidence=[passage.number for passage in one.evidence])
        for one in answer.rounds
    ]
    return made(view, answer, answer_id=answer.id, rounds=rounds, **more)
