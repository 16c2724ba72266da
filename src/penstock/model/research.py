"""Research tasks: a question, its searches, what they found and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from penstock.model.finding import Finding
from penstock.model.job import Priority


class TaskStatus(StrEnum):
    """Derived, never stored: from the searches, and from whether the task was stopped."""

    RUNNING = "running"
    """Searches are left; or there are none yet."""
    COMPLETED = "completed"
    """None is left, and at least one succeeded."""
    FAILED = "failed"
    """All failed."""
    PAUSED = "paused"
    """Stopped with searches left; it can be resumed."""


class SearchState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    """Begun; also while the task is paused, if it was begun before."""
    COMPLETED = "completed"
    FAILED = "failed"


UNFINISHED = (SearchState.QUEUED, SearchState.RUNNING)


class PageState(StrEnum):
    WAITING = "waiting"
    """To be fetched and read."""
    READ = "read"
    """In the documents, searchable."""
    FAILED = "failed"


@dataclass(slots=True, frozen=True)
class ResearchTask:
    """A task as stored."""

    tenant: str
    id: str
    question: str
    created_at: float
    budget_pages: int | None = None
    """How many pages may be read for it."""
    budget_seconds: float | None = None
    """For how long it may search, counted from its first search, pauses left out."""
    pages: int = 0
    """Pages that were granted to its searches so far."""
    ends_at: float | None = None
    """When its seconds are over. None: no such budget, not begun, or paused."""
    seconds_left: float | None = None
    """While it is not begun or paused: what is left of the budget."""


class SearchRef(NamedTuple):
    tenant: str
    task: str
    id: str


@dataclass(slots=True, frozen=True)
class Search:
    """One query of a task."""

    ref: SearchRef
    number: int
    """1, 2, 3 ... within the task, in the order in which they were queued."""
    query: str
    limit: int
    """Results wanted."""
    priority: Priority
    providers: tuple[str, ...]
    state: SearchState
    run: int
    """Greater each time it is started anew. Whatever a job of an earlier run brings is refused:
    after an immediate stop nothing more is stored."""
    queued_at: float
    started_at: float | None = None
    finished_at: float | None = None
    reason: str | None = None
    """Of a failed one: why. Of a completed one: what cut it short, such as a budget."""


@dataclass(slots=True, frozen=True)
class ProviderReply:
    """One provider's response to one search."""

    search: str
    provider: str
    findings: tuple[Finding, ...]
    skipped: int = 0
    """Rows of no use."""
    done: bool = True
    """Whether that is all."""
    next: str | None = None
    """Where to go on, if it is not; None: from the start."""
    error: str | None = None
    """Why it is not all, if nobody goes on any more."""
    at: float = 0.0


@dataclass(slots=True, frozen=True)
class TaskPage:
    """A page to be read for a task. Each address is read once for a task."""

    task: str
    search: str
    """That asked for it first."""
    key: str
    """The address in one spelling."""
    url: str
    state: PageState
    collection: str | None = None
    document: str | None = None
    """Where it is among the documents, once it is there."""
    title: str = ""
    reason: str | None = None
    """Why it could not be read."""
    at: float = 0.0


@dataclass(slots=True, frozen=True)
class TaskRecord:
    """All that is stored of a task, as of one moment."""

    task: ResearchTask
    searches: Sequence[Search]
    """By number."""
    answers: Sequence[ProviderReply]
    """In the order in which they came."""
    pages: Sequence[TaskPage]
    """In the order in which they were granted."""


class NewSearch(NamedTuple):
    id: str
    key: str
    """Equal for queries that ask the same of the same providers."""
    query: str
    limit: int
    priority: Priority
    providers: tuple[str, ...]


class Added(NamedTuple):
    """The result of adding searches."""

    searches: list[Search]
    """Those that are new, in the order given."""
    skipped: list[Search]
    """For each that was there already: the one that is. An item whose id is there already is
    neither new nor skipped: it was stored by the same call before, and is in `searches`."""


class NewPage(NamedTuple):
    key: str
    url: str


class Granted(NamedTuple):
    """Pages that a search was granted to read."""

    pages: list[TaskPage]
    """Those granted to it now or in an earlier run, whatever became of them since."""
    others: list[TaskPage]
    """Those that another search of the task asked for first."""
    refused: list[NewPage]
    """Those beyond the budget, which are not stored."""


@dataclass(slots=True, frozen=True)
class Started:
    """A search that may go on, and its task."""

    task: ResearchTask
    search: Search
    answers: Sequence[ProviderReply]
    """What providers have said to it so far, in earlier runs too."""
    pages: Sequence[TaskPage] = ()
    """Those that were granted to it."""
