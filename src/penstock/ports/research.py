"""The port to the store of research tasks.

An adapter promises:
- every row belongs to a tenant, and nothing of a task is read or changed without naming it;
- a query is in a task once, however often and by however many it is queued at a time: queries are
  compared by `key`;
- what a job brings is stored only while its `run` is that of its search (`Search.run`), checked in
  the same transaction; so after `restart` or `stop` a job of before is refused;
- no more pages are granted than the task's budget has, by any number of jobs at a time;
- storing the same twice changes nothing.

Times are those of the caller (`now`): the queue's clock, which deadlines of jobs are on.
Methods raise StoreUnavailable while the store cannot be reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from penstock.model.job import Priority
from penstock.model.research import (
    PageState,
    ProviderReply,
    ResearchTask,
    Search,
    SearchRef,
    SearchState,
    TaskPage,
    TaskRecord,
)


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


class TaskStore(Protocol):
    """Usable while the store it is in is open."""

    async def create(self, task: ResearchTask) -> ResearchTask:
        """Store a task; if there is one of this tenant and id, that one as it is."""
        ...

    async def get(self, tenant: str, task: str) -> ResearchTask | None: ...

    async def tasks(
        self, tenant: str, limit: int, before: str | None = None
    ) -> list[tuple[ResearchTask, list[Search]]]:
        """The newest first, with their searches; `before` is the id of the last one of the page
        before."""
        ...

    async def add_searches(
        self, tenant: str, task: str, new: Sequence[NewSearch], most: int, now: float
    ) -> Added | None:
        """Add searches, all or none; None: there is no such task. ValidationError where the task
        would have over `most`. The first ones start the clock of `budget_seconds`."""
        ...

    async def record(self, tenant: str, task: str) -> TaskRecord | None:
        """All of a task, as of one moment."""
        ...

    async def start(self, ref: SearchRef, run: int, now: float) -> Started | None:
        """The search begins, or goes on. None: it is not to be done (any more) in this run."""
        ...

    async def answer(self, ref: SearchRef, run: int, answer: ProviderReply) -> bool:
        """Keep what a provider said, in place of what it said before. False: refused."""
        ...

    async def grant(
        self, ref: SearchRef, run: int, pages: Sequence[NewPage], now: float
    ) -> Granted | None:
        """Let a search read these pages, within the task's budget, in the order given. One that
        failed in an earlier run is to be tried again. None: refused."""
        ...

    async def page(
        self,
        ref: SearchRef,
        run: int,
        key: str,
        state: PageState,
        now: float,
        *,
        collection: str | None = None,
        document: str | None = None,
        title: str = "",
        reason: str | None = None,
    ) -> bool:
        """What became of a page. False: refused."""
        ...

    async def finish(
        self, ref: SearchRef, run: int, state: SearchState, reason: str | None, now: float
    ) -> bool:
        """The search is completed or failed. False: refused."""
        ...

    async def restart(self, ref: SearchRef, run: int) -> Search | None:
        """Another run of an unfinished search whose run is still `run`: queued, its run one
        greater. None: somebody was faster, or it is finished."""
        ...

    async def stop(self, tenant: str, task: str, now: float, *, refuse: bool) -> bool:
        """Stop the clock of the task. `refuse`: give every unfinished search another run, so that
        nothing its jobs bring is stored any more. False: there is no such task."""
        ...

    async def resume(self, tenant: str, task: str, now: float) -> bool:
        """Let the clock go on. False: there is no such task."""
        ...

    async def unfinished(
        self, before: float, limit: int, after: SearchRef | None = None
    ) -> list[Search]:
        """Searches of all tenants that are queued or running and were queued before a time, in the
        order of their refs: what a reconciler looks through."""
        ...

    async def seconds_taken(self, tenant: str, last: int) -> float | None:
        """How long the last searches of a tenant took from start to finish, on average (of the
        `last` newest completed ones); None: none has yet."""
        ...
