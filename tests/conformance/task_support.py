"""Words shared by the conformance tests of research tasks. Everything goes through the port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from penstock.adapters.sql.tasks import TaskStore
from penstock.model.finding import Finding
from penstock.model.ids import new_id
from penstock.model.job import Priority
from penstock.model.research import (
    Added,
    Granted,
    NewPage,
    NewSearch,
    PageState,
    ProviderReply,
    ResearchTask,
    Search,
    SearchRef,
    SearchState,
    TaskPage,
    TaskRecord,
)
from tests.conformance.access_support import STORES

TENANT = "default"
NOW = 1_700_000_000.0
"""The callers' clock: the store has none of its own."""
MOST = 100


@asynccontextmanager
async def tasks_at(name: str, url: str) -> AsyncIterator[TaskStore]:
    """What another process with the same store would have."""
    store = STORES[name](url)
    await store.open()
    try:
        yield store.research()
    finally:
        await store.close()


async def new_task(store: TaskStore, tenant: str = TENANT, **options: Any) -> ResearchTask:
    return await store.create(ResearchTask(tenant, new_id(), "why?", NOW, **options))


def new_search(query: str, id: str | None = None, key: str | None = None) -> NewSearch:  # noqa: A002
    return NewSearch(
        id or new_id(), query if key is None else key, query, 10, Priority.MEDIUM, ("openalex",)
    )


async def add(
    store: TaskStore,
    task: ResearchTask,
    *new: NewSearch | str,
    most: int = MOST,
    now: float = NOW,
) -> Added:
    """Add searches, by what they are or what they ask."""
    searches = [new_search(one) if isinstance(one, str) else one for one in new]
    added = await store.add_searches(task.tenant, task.id, searches, most, now)
    assert added is not None
    return added


async def search_of(store: TaskStore, task: ResearchTask, query: str = "q") -> Search:
    """A new search, not begun."""
    (search,) = (await add(store, task, query)).searches
    return search


async def begun(store: TaskStore, query: str = "q", **options: Any) -> Search:
    """The search of a new task, begun."""
    search = await search_of(store, await new_task(store, **options), query)
    started = await store.start(search.ref, search.run, NOW)
    assert started is not None
    return started.search


async def task_there(store: TaskStore, tenant: str, task: str) -> ResearchTask:
    found = await store.get(tenant, task)
    assert found is not None
    return found


async def record_there(store: TaskStore, ref: SearchRef | ResearchTask) -> TaskRecord:
    task = ref.task if isinstance(ref, SearchRef) else ref.id
    record = await store.record(ref.tenant, task)
    assert record is not None
    return record


async def search_there(store: TaskStore, ref: SearchRef) -> Search:
    record = await record_there(store, ref)
    (search,) = [one for one in record.searches if one.ref == ref]
    return search


async def page_there(store: TaskStore, ref: SearchRef, key: str) -> TaskPage:
    record = await record_there(store, ref)
    (page,) = [one for one in record.pages if one.key == key]
    return page


def answer_of(
    search: Search, provider: str = "openalex", titles: Sequence[str] = ()
) -> ProviderReply:
    findings = tuple(
        Finding(provider, f"id{n}", title, f"https://example.org/{n}")
        for n, title in enumerate(titles)
    )
    return ProviderReply(search.ref.id, provider, findings, at=NOW)


def new_pages(*keys: str) -> list[NewPage]:
    return [NewPage(key, f"https://{key}") for key in keys]


async def grant(store: TaskStore, search: Search, *keys: str, now: float = NOW) -> Granted:
    granted = await store.grant(search.ref, search.run, new_pages(*keys), now)
    assert granted is not None
    return granted


def keys(pages: Sequence[TaskPage] | Sequence[NewPage]) -> list[str]:
    return [page.key for page in pages]


async def mark(
    store: TaskStore, search: Search, key: str, state: PageState, now: float = NOW, **known: Any
) -> bool:
    return await store.page(search.ref, search.run, key, state, now, **known)


async def finish(
    store: TaskStore,
    search: Search,
    state: SearchState = SearchState.COMPLETED,
    reason: str | None = None,
    now: float = NOW,
) -> bool:
    return await store.finish(search.ref, search.run, state, reason, now)


async def restart(store: TaskStore, search: Search) -> Search:
    again = await store.restart(search.ref, search.run)
    assert again is not None
    return again
