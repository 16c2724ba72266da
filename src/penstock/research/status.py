"""Converts the stored state of a task to the view that callers get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.model.finding import Finding
from penstock.model.research import (
    UNFINISHED,
    PageState,
    ResearchTask,
    Search,
    SearchState,
    TaskPage,
    TaskRecord,
    TaskStatus,
)
from penstock.research.identity import canonical_url
from penstock.research.merge import Merged, merge
from penstock.wire.tasks import Budget, PageProgress, SearchView, Trouble, Work
from penstock.wire.view import made

DOCUMENTS = "documents"
"""The provider of stored documents: nothing has to be fetched for its findings."""


def status_of(searches: Sequence[Search], *, stopped: bool) -> TaskStatus:
    left = any(search.state in UNFINISHED for search in searches)
    if left or not searches:
        return TaskStatus.PAUSED if stopped else TaskStatus.RUNNING
    succeeded = any(search.state is SearchState.COMPLETED for search in searches)
    return TaskStatus.COMPLETED if succeeded else TaskStatus.FAILED


def progress_of(searches: Sequence[Search]) -> str:
    finished = sum(search.state not in UNFINISHED for search in searches)
    return f"{finished}/{len(searches)}"


def budget_of(task: ResearchTask, now: float) -> Budget:
    left = task.seconds_left
    if task.ends_at is not None:
        left = max(0.0, task.ends_at - now)
    elif task.budget_seconds is not None and left is None:
        left = task.budget_seconds
    return Budget(task.budget_pages, task.pages, task.budget_seconds, left)


def address_of(finding: Finding) -> tuple[str, str] | None:
    """Return the URL to read for a work, normalized and as given; None if there is none."""
    for url in (finding.open_access_url, finding.url):
        if url and (key := canonical_url(url)):
            return key, url
    return None


def selected(record_lists: Iterable[Sequence[Finding]], limit: int) -> list[Merged]:
    """Select the results of one search: the best works that its providers found."""
    return merge(record_lists)[:limit]


@dataclass(slots=True, frozen=True)
class Results:
    """The results of a task, without duplicates."""

    works: tuple[Work, ...]
    found: dict[str, int]
    """Number of results by search."""


def results_of(record: TaskRecord) -> Results:
    """Merge the results, in the order of the searches, best first within each."""
    lists: dict[str, list[Sequence[Finding]]] = {}
    for answer in record.answers:
        lists.setdefault(answer.search, []).append(answer.findings)
    whole = merge(one for some in lists.values() for one in some)
    group = {id(finding): at for at, work in enumerate(whole) for finding in work.findings}
    queries: dict[int, list[str]] = {}
    found: dict[str, int] = {}
    for search in record.searches:
        best = selected(lists.get(search.ref.id, ()), search.limit)
        found[search.ref.id] = len(best)
        for work in best:
            at = group[id(work.findings[0])]
            asked = queries.setdefault(at, [])
            if search.query not in asked:
                asked.append(search.query)
    pages = {page.key: page for page in record.pages}
    return Results(tuple(_work(whole[at], asked, pages) for at, asked in queries.items()), found)


def _work(merged: Merged, queries: Sequence[str], pages: dict[str, TaskPage]) -> Work:
    finding = merged.finding
    here = next((one for one in merged.findings if one.provider == DOCUMENTS), None)
    addresses = (address_of(one) for one in (finding, *merged.findings))
    page = next((pages[one[0]] for one in addresses if one and one[0] in pages), None)
    state: PageProgress = "none"
    collection, document = None, None
    if page is not None:
        state, collection, document = page.state.value, page.collection, page.document
    if here is not None and state != "read":
        state = "read"
        collection, document = here.extra["collection"], here.extra["document"]
    return made(
        Work,
        finding,
        providers=merged.providers,
        queries=tuple(queries),
        page=state,
        collection=collection,
        document=document,
    )


def troubles_of(record: TaskRecord) -> tuple[Trouble, ...]:
    """List the problems, in the order of the searches."""
    found: dict[str, list[Trouble]] = {search.ref.id: [] for search in record.searches}
    queries = {search.ref.id: search.query for search in record.searches}
    for answer in record.answers:
        if answer.error is not None and answer.search in found:
            query = queries[answer.search]
            found[answer.search].append(Trouble(query, answer.provider, None, answer.error))
    for page in record.pages:
        if page.state is PageState.FAILED and page.search in found:
            reason = page.reason or "it could not be read"
            found[page.search].append(Trouble(queries[page.search], None, page.url, reason))
    for search in record.searches:
        if search.reason is not None:
            found[search.ref.id].append(Trouble(search.query, None, None, search.reason))
    return tuple(one for some in found.values() for one in some)


def search_views(record: TaskRecord, found: dict[str, int]) -> tuple[SearchView, ...]:
    return tuple(
        made(SearchView, search, id=search.ref.id, found=found.get(search.ref.id, 0))
        for search in record.searches
    )
