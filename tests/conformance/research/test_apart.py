"""Research tasks with text of any kind, of several tenants, and in stores that are opened again."""

from dataclasses import replace

import pytest

from penstock.adapters.sql.tasks import TaskStore
from penstock.model.finding import Finding
from penstock.model.ids import new_ids
from penstock.model.research import (
    NewPage,
    PageState,
    ProviderReply,
    ResearchTask,
    SearchRef,
    SearchState,
)
from tests.conformance.task_support import (
    NOW,
    TENANT,
    add,
    answer_of,
    begun,
    finish,
    grant,
    keys,
    mark,
    new_pages,
    new_search,
    record_there,
    tasks_at,
)

DIRTY, CLEAN = "a\x00b\ud800c", "a\N{REPLACEMENT CHARACTER}b?c"
"""Text that not every store takes, and what is stored of it."""
LONG = "https://example.org/" + "long" * 5000


async def test_any_text_can_be_stored(store: TaskStore) -> None:
    (task_id,) = new_ids(1)
    task = await store.create(ResearchTask(TENANT, task_id, DIRTY, NOW))
    assert task.question == CLEAN
    new = new_search(DIRTY, key=DIRTY * 3000)
    (search,) = (await add(store, task, new)).searches
    assert search.query == CLEAN
    assert (await add(store, task, new_search(DIRTY, key=DIRTY * 3000))).skipped == [search]
    finding = Finding("p", "1", DIRTY, "u", (DIRTY,), extra={DIRTY: [DIRTY, {"x": DIRTY}]})
    answer = ProviderReply(search.ref.id, "p", (finding,), next=DIRTY, error=DIRTY, at=NOW)
    assert await store.answer(search.ref, search.run, answer)
    clean = Finding("p", "1", CLEAN, "u", (CLEAN,), extra={CLEAN: [CLEAN, {"x": CLEAN}]})
    pages = [NewPage(DIRTY, DIRTY), NewPage(LONG, LONG), NewPage(LONG + "#", LONG)]
    granted = await store.grant(search.ref, search.run, pages, NOW)
    assert granted is not None
    assert keys(granted.pages) == [CLEAN, LONG, LONG + "#"]
    for key in (DIRTY, CLEAN, LONG):
        assert await mark(
            *(store, search, key, PageState.READ),
            collection=DIRTY,
            document=DIRTY,
            title=DIRTY,
            reason=DIRTY,
        )
    assert await finish(store, search, SearchState.FAILED, DIRTY)
    record = await record_there(store, task)
    assert record.answers == [replace(answer, findings=(clean,), next=CLEAN, error=CLEAN)]
    page = record.pages[0]
    assert [page.url, page.collection, page.document, page.title, page.reason] == [CLEAN] * 5
    assert record.searches[0].reason == CLEAN
    assert await store.tasks(TENANT, 10) == [(record.task, record.searches)]


@pytest.mark.parametrize("word", [DIRTY, "none", "", "x" * 5000, "'; DROP TABLE x"])
async def test_an_id_that_no_task_has_is_like_any_other(store: TaskStore, word: str) -> None:
    search = await begun(store)
    before = await record_there(store, search.ref)
    for ref in (
        SearchRef(word, search.ref.task, search.ref.id),
        SearchRef(TENANT, word, search.ref.id),
        SearchRef(TENANT, search.ref.task, word),
    ):
        await nothing_to_be_had(store, ref, search.run)
    assert await record_there(store, search.ref) == before


async def test_a_tenant_can_do_nothing_with_the_ids_of_another(store: TaskStore) -> None:
    search = await begun(store, tenant="kim", budget_seconds=60.0)
    await grant(store, search, "a.org")
    before = await record_there(store, search.ref)
    await nothing_to_be_had(store, search.ref._replace(tenant="lee"), search.run)
    assert await store.tasks("lee", 10) == []
    assert await record_there(store, search.ref) == before


async def test_tenants_with_the_same_ids_are_apart(store: TaskStore) -> None:
    (task_id,) = new_ids(1)
    searches = []
    for tenant in ("kim", "lee"):
        task = await store.create(ResearchTask(tenant, task_id, tenant, NOW, budget_pages=1))
        (search,) = (await add(store, task, new_search("q", "s1"))).searches
        await store.answer(search.ref, search.run, answer_of(search, titles=[tenant]))
        assert keys((await grant(store, search, "a.org")).pages) == ["a.org"]
        searches.append(search)
    kim, lee = searches
    before = await record_there(store, lee.ref)
    await mark(store, kim, "a.org", PageState.FAILED)
    await store.stop("kim", task_id, NOW, refuse=True)
    assert await record_there(store, lee.ref) == before
    assert before.answers[0].findings[0].title == "lee"
    assert await finish(store, lee)
    assert not await finish(store, kim)


async def nothing_to_be_had(store: TaskStore, ref: SearchRef, run: int) -> None:
    """Every method that takes a search finds nothing; if its task is not there either, so do
    those that take a task."""
    answer = ProviderReply(ref.id, "arxiv", ())
    assert await store.start(ref, run, NOW) is None
    assert not await store.answer(ref, run, answer)
    assert await store.grant(ref, run, new_pages("a.org", "z.org"), NOW) is None
    assert not await store.page(ref, run, "a.org", PageState.READ, NOW)
    assert not await store.finish(ref, run, SearchState.FAILED, None, NOW)
    assert await store.restart(ref, run) is None
    if await store.get(ref.tenant, ref.task) is None:
        assert await store.record(ref.tenant, ref.task) is None
        assert await store.add_searches(ref.tenant, ref.task, [new_search("x")], 9, NOW) is None
        assert not await store.stop(ref.tenant, ref.task, NOW, refuse=True)
        assert not await store.resume(ref.tenant, ref.task, NOW)


async def test_all_is_there_when_the_store_is_opened_again(store_name: str, url: str) -> None:
    async with tasks_at(store_name, url) as store:
        search = await begun(store, budget_pages=3, budget_seconds=60.0)
        await store.answer(search.ref, search.run, answer_of(search, titles=["A", "B"]))
        await grant(store, search, "a.org")
        await mark(store, search, "a.org", PageState.FAILED, reason="404")
        before = await record_there(store, search.ref)
    async with tasks_at(store_name, url) as store:
        assert await record_there(store, search.ref) == before
        assert await finish(store, search)
