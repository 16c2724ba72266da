"""Answers: a question, its searches, its evidence and its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal


class AnswerState(StrEnum):
    """Whether there is an answer yet. All but the first are for good."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Sources(StrEnum):
    """Where evidence may come from."""

    DOCUMENTS = "documents"
    WEB = "web"
    """A research task's providers too, and the pages they name."""


class Phase(StrEnum):
    """The phase an answer is in."""

    PLAN = "plan"
    SEARCH = "search"
    ANSWER = "answer"
    DONE = "done"


@dataclass(slots=True, frozen=True)
class Plan:
    """A plan: what to search for, and when it is enough."""

    queries: tuple[str, ...]
    enough: str = ""
    """When it is enough."""


@dataclass(slots=True, frozen=True)
class Evidence:
    """A passage that an answer may cite, by its number. Its text is data of others, never
    instructions."""

    number: int
    """1, 2, 3 ... within the answer, in the order found: what `[1]` in the text means."""
    collection: str
    document: str
    """Its id."""
    title: str
    source: str
    """Where it came from: an address or a file name."""
    chunk: int
    start: int
    """Where in the document's text it begins ..."""
    end: int
    """... and ends."""
    pages: tuple[int, int] | None
    """First and last page, where it has pages."""
    text: str
    score: float
    query: str
    """That found it."""
    round: int
    page_starts: tuple[int, ...] = ()
    """Where in the document's text each of its pages after the first begins, if that is known."""


@dataclass(slots=True, frozen=True)
class Round:
    """One turn of the search loop."""

    number: int
    """1 to 5; from 4 on it is to recover from having found too little."""
    queries: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    """New in this round."""
    missing: tuple[str, ...]
    """What is not found yet, as far as can be told."""
    enough: bool
    note: str = ""
    """What went wrong in it, such as an answer of the model that was of no use."""
    next: tuple[str, ...] = ()
    """What to look for in the round after it; empty: it was the last."""


@dataclass(slots=True, frozen=True)
class Citation:
    """`[number]` at a place of the text. It resolves: `number` is that of some evidence."""

    number: int
    start: int
    """Where in the text it stands ..."""
    end: int
    """... and ends."""


@dataclass(slots=True, frozen=True)
class Answer:
    """An answer as it stands."""

    tenant: str
    id: str
    question: str
    sources: Sources
    collections: tuple[str, ...] | None
    """Of the documents; None: all."""
    created_at: float
    ends_at: float
    """When its time is up: then what is there is answered with."""
    state: AnswerState = AnswerState.RUNNING
    phase: Phase = Phase.PLAN
    plan: Plan | None = None
    rounds: tuple[Round, ...] = ()
    text: str = ""
    citations: tuple[Citation, ...] = ()
    unsupported: tuple[tuple[int, int], ...] = ()
    """Sentences of the text (start, end) without a citation that resolves."""
    missing: tuple[str, ...] = ()
    """What was looked for and not found."""
    mode: Literal["", "model", "extractive"] = ""
    """`model`, or `extractive`: sentences of the evidence as they are, chosen without a model."""
    notes: tuple[str, ...] = ()
    """What the reader should know: no model configured, time was up, a phase was given up."""
    models: Mapping[str, str] = field(default_factory=dict)
    """By phase: which model was asked."""
    task: str | None = None
    """With sources `web`: the research task that looked."""
    error: str | None = None
    finished_at: float | None = None
    saves: int = 0
    """How often it was stored since it was created: of two who change it at the same time, only
    the first does."""

    @property
    def over(self) -> bool:
        return self.state is not AnswerState.RUNNING

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return tuple(one for turn in self.rounds for one in turn.evidence)
