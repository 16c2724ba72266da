"""`app.research`: questions in, and out again as what others have published about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from penstock.model.job import PriorityName
from penstock.model.research import ResearchTask
from penstock.research.views import (
    PageText,
    Queued,
    Resumed,
    Stopped,
    TaskLine,
    TaskView,
)

Mode = Literal["graceful", "immediate"]
Format = Literal["markdown", "json", "bibtex"]

MOST_WAIT = 300.0
MOST_QUERIES = 100
"""In one call."""
MOST_SEARCHES = 1000
"""In one task."""
MOST_RESULTS = 100
"""For one query."""
QUERY_LIMIT = 1000
QUESTION_LIMIT = 10_000


class Research:
    """The research tasks of an app. What is done for them is done by jobs; see `jobs`.

    Unknown ids, and those of other tenants, raise TaskNotFound; what cannot be right raises
    ValidationError, with a sentence that says what can be.
    """

    @property
    def providers(self) -> tuple[str, ...]:
        """Who is asked unless a call says otherwise, in order."""
        raise NotImplementedError

    async def create(
        self,
        question: str,
        *,
        budget_pages: int | None = None,
        budget_seconds: float | None = None,
        tenant: str = "default",
        task_id: str | None = None,
    ) -> ResearchTask:
        """A new task without searches: running, 0/0. `task_id` makes it idempotent: the task that
        has it is given back."""
        raise NotImplementedError

    async def queue_searches(
        self,
        task_id: str,
        queries: Sequence[str],
        *,
        max_results: int = 10,
        priority: PriorityName = "medium",
        providers: Sequence[str] | None = None,
        tenant: str = "default",
    ) -> Queued:
        """Add searches to a task; returns at once. Queries it has already are skipped and counted.
        TaskStopped while it is paused: resume it first."""
        raise NotImplementedError

    async def status(
        self,
        task_id: str,
        *,
        wait: float = 0.0,
        since: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
        tenant: str = "default",
    ) -> TaskView:
        """The task as it stands. With `wait`, up to so many seconds (300 at most) for a change
        after version `since`, or after now; at once where there was one, where the task is
        finished, and where there is none. `limit` results at most, from `cursor` on."""
        raise NotImplementedError

    async def stop(
        self, task_id: str, *, mode: Mode = "graceful", tenant: str = "default"
    ) -> Stopped:
        """Stop a task; returns at once. Queued jobs are cancelled and no new ones taken. Graceful:
        running ones finish and are stored. Immediate: they are cancelled, and not stored."""
        raise NotImplementedError

    async def resume(self, task_id: str, *, tenant: str = "default") -> Resumed:
        """Go on with what is unfinished. Harmless for a task that is not paused."""
        raise NotImplementedError

    async def tasks(
        self, *, tenant: str = "default", limit: int = 100, before: str | None = None
    ) -> list[TaskLine]:
        """The newest first; `before` is the id of the last one of the page before."""
        raise NotImplementedError

    async def page(
        self,
        document: str,
        *,
        collection: str | None = None,
        limit: int = 20_000,
        cursor: str | None = None,
        tenant: str = "default",
    ) -> PageText:
        """The text of a page that was read (`Work.document`, or its address), or of any document of
        the corpus with its `collection`. `limit` characters at most, from `cursor` on.
        DocumentNotFound where there is none."""
        raise NotImplementedError

    async def export(
        self,
        task_id: str,
        format: Format = "markdown",
        *,
        tenant: str = "default",
    ) -> str:
        """All of a task as one text."""
        raise NotImplementedError
