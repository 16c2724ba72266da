"""What every store promises of the pages that are read for research tasks."""

from dataclasses import replace

from penstock.adapters.sql.tasks import TaskStore
from penstock.model.research import PageState
from tests.conformance.task_support import (
    NOW,
    begun,
    grant,
    keys,
    mark,
    new_pages,
    page_there,
    record_there,
    restart,
    search_of,
    task_there,
)


async def test_pages_are_granted_in_order_until_the_budget_is_used_up(store: TaskStore) -> None:
    search = await begun(store, budget_pages=3)
    first = await grant(store, search, "b.org", "a.org")
    assert keys(first.pages) == ["b.org", "a.org"]
    assert {page.state for page in first.pages} == {PageState.WAITING}
    second = await grant(store, search, "c.org", "a.org", "d.org", "c.org", "e.org")
    assert keys(second.pages) == ["c.org", "a.org"]
    assert second.refused == new_pages("d.org", "e.org")
    record = await record_there(store, search.ref)
    assert keys(record.pages) == ["b.org", "a.org", "c.org"]
    assert record.pages == [*first.pages, second.pages[0]]
    assert record.task.pages == 3


async def test_without_a_budget_all_pages_are_granted(store: TaskStore) -> None:
    search = await begun(store)
    granted = await grant(store, search, *(f"{n}.org" for n in range(50)))
    assert len(granted.pages) == 50
    assert granted.refused == []
    assert (await task_there(store, *search.ref[:2])).pages == 50


async def test_a_budget_of_no_pages_grants_none(store: TaskStore) -> None:
    search = await begun(store, budget_pages=0)
    granted = await grant(store, search, "a.org")
    assert (granted.pages, granted.refused) == ([], new_pages("a.org"))
    assert (await record_there(store, search.ref)).pages == []


async def test_each_address_belongs_to_the_search_that_asked_first(store: TaskStore) -> None:
    search = await begun(store, budget_pages=2)
    other = await search_of(store, await task_there(store, *search.ref[:2]), "other")
    first = await grant(store, search, "a.org")
    second = await grant(store, other, "a.org", "b.org", "c.org")
    assert (second.others, keys(second.pages)) == (first.pages, ["b.org"])
    assert keys(second.refused) == ["c.org"]
    assert not await mark(store, other, "a.org", PageState.FAILED)
    assert not await mark(store, other, "c.org", PageState.READ), "it was not granted"
    assert await mark(store, search, "a.org", PageState.FAILED)
    again = await restart(store, other)
    (page,) = (await grant(store, again, "a.org")).others
    assert page.state is PageState.FAILED, "whose search may try it again"


async def test_what_became_of_a_page_is_kept(store: TaskStore) -> None:
    search = await begun(store)
    await grant(store, search, "a.org", "b.org")
    assert await mark(
        *(store, search, "a.org", PageState.READ, NOW + 1),
        collection="pages",
        document="https://a.org",
        title="Title",
    )
    assert await mark(store, search, "b.org", PageState.FAILED, NOW + 2, reason="404")
    read, failed = (await record_there(store, search.ref)).pages
    assert (read.collection, read.document, read.title) == ("pages", "https://a.org", "Title")
    assert (read.state, read.reason, read.at) == (PageState.READ, None, NOW + 1)
    assert (failed.state, failed.reason, failed.at) == (PageState.FAILED, "404", NOW + 2)
    assert await mark(store, search, "b.org", PageState.FAILED, NOW + 9, reason="404")
    assert await page_there(store, search.ref, "b.org") == failed, "the same twice changes nothing"
    assert keys((await grant(store, search, "a.org")).pages) == ["a.org"]
    assert await page_there(store, search.ref, "a.org") == read


async def test_what_was_read_stays_read(store: TaskStore) -> None:
    search = await begun(store)
    await grant(store, search, "a.org")
    await mark(store, search, "a.org", PageState.READ, collection="pages", document="a")
    read = await page_there(store, search.ref, "a.org")
    assert not await mark(store, search, "a.org", PageState.FAILED, reason="a second attempt")
    assert await page_there(store, search.ref, "a.org") == read


async def test_a_page_that_failed_is_tried_again_in_another_run_and_not_counted_again(
    store: TaskStore,
) -> None:
    search = await begun(store, budget_pages=2)
    await grant(store, search, "a.org", "b.org")
    await mark(store, search, "a.org", PageState.FAILED, reason="timed out")
    await mark(store, search, "b.org", PageState.READ)
    (failed, read) = (await grant(store, search, "a.org", "b.org")).pages
    assert (failed.state, failed.reason) == (PageState.FAILED, "timed out"), "of this very run"
    again = await restart(store, search)
    (waiting, still) = (await grant(store, again, "a.org", "b.org", now=NOW + 5)).pages
    assert waiting == replace(failed, state=PageState.WAITING, reason=None, at=NOW + 5)
    assert still == read
    assert (await record_there(store, search.ref)).pages == [waiting, read]
    assert (await task_there(store, *search.ref[:2])).pages == 2
    await mark(store, again, "a.org", PageState.FAILED, reason="timed out")
    assert (await grant(store, again, "a.org")).pages[0].state is PageState.FAILED
