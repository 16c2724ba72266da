"""Answers: as a line in a list, in short, and with all they are founded on."""

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
    """As it is stored: personal data is masked."""
    sources: Sources
    state: AnswerState
    mode: Literal["", "model", "extractive"]
    """`extractive`: sentences as they stand in the evidence, chosen without a model."""
    created_at: float
    """Seconds since 1970."""
    finished_at: float | None


@dataclass(slots=True, frozen=True)
class AnswerPage(ListPage):
    answers: Sequence[AnswerLine]


@dataclass(slots=True, frozen=True)
class AnswerSummary(AnswerLine):
    """The text of an answer, and how far it is."""

    phase: Phase
    text: str
    """`[1]` cites the evidence of that number."""
    missing: Sequence[str]
    """What was looked for and not found."""
    notes: Sequence[str]
    """What a reader should know."""
    error: str | None


@dataclass(slots=True, frozen=True)
class RoundView(WireView):
    """One turn of the search loop."""

    number: int
    queries: Sequence[str]
    evidence: Sequence[int]
    """Numbers of what was new."""
    missing: Sequence[str]
    enough: bool
    note: str
    next: Sequence[str]
    """What was looked for after it."""


@dataclass(slots=True, frozen=True)
class AnswerDetails(AnswerSummary):
    """All of an answer."""

    collections: Sequence[str] | None
    """Of the documents; None: all."""
    citations: Sequence[Citation]
    unsupported: Sequence[tuple[int, int]]
    """Sentences of the text without a citation: start and end of each."""
    models: Mapping[str, str]
    """Which model was asked, by phase."""
    plan: Plan | None
    rounds: Sequence[RoundView]
    evidence: Sequence[Evidence]
    task: str | None
    """With `web`: the research task that looked."""
    ends_at: float
    """By then it is answered."""


@dataclass(slots=True, frozen=True)
class AnswerAtVersion(AnswerDetails):
    """All of an answer, as of `version`."""

    version: int
    """Give it as `since` to be told of the next change."""
    next_poll: float | None
    """Seconds that `wait` should be next; None: it is over."""


def line_of(answer: Answer) -> AnswerLine:
    return made(AnswerLine, answer, answer_id=answer.id)


D = TypeVar("D", bound=AnswerDetails)


def details_of(answer: Answer, view: type[D], **more: Any) -> D:
    rounds = [
        made(RoundView, one, evidence=[passage.number for passage in one.evidence])
        for one in answer.rounds
    ]
    return made(view, answer, answer_id=answer.id, rounds=rounds, **more)
