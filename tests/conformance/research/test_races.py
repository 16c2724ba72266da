"""What every store promises of research tasks when many callers want something at a time."""

import asyncio
from collections import Counter

from penstock.adapters.sql.tasks import TaskStore
from penstock.errors import ValidationError
from penstock.model.ids import new_id
from penstock.model.research import Granted, PageState, ResearchTask, Search, SearchState
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
    new_task,
    record_there,
    search_there,
    task_there,
)

ROUNDS = 10


async def searches_of(store: TaskStore, task: ResearchTask, count: int) -> list[Search]:
    """Searches that are begun."""
    added = await add(store, task, *(f"q{n}" for n in range(count)))
    started = [await store.start(search.ref, search.run, NOW) for search in added.searches]
    return [one.search for one in started if one is not None]


async def test_of_many_that_create_a_task_all_have_the_same(
    store: TaskStore, other: TaskStore
) -> None:
    for _ in range(ROUNDS):
        task_id = new_id()
        made = await asyncio.gather(
            *(
                (store, other)[n % 2].create(ResearchTask(TENANT, task_id, f"question {n}", NOW))
                for n in range(8)
            )
        )
        assert set(made) == {await task_there(store, TENANT, task_id)}


async def test_a_query_is_in_a_task_once_however_many_queue_it(
    store: TaskStore, other: TaskStore
) -> None:
    task = await new_task(store)
    queries = [f"q{n}" for n in range(15)]
    outcomes = await asyncio.gather(
        *(add((store, other)[n % 2], task, *queries[n % 5 :]) for n in range(20))
    )
    record = await record_there(store, task)
    assert sorted(search.query for search in record.searches) == sorted(queries)
    assert [search.number for search in record.searches] == list(range(1, 16))
    new = Counter(search.ref for added in outcomes for search in added.searches)
    assert new == Counter(search.ref for search in record.searches), "one caller is told of each"
    there = {search.ref: search for search in record.searches}
    for n, added in enumerate(outcomes):
        assert len(added.searches) + len(added.skipped) == 15 - n % 5
        assert all(there[search.ref] == search for search in added.skipped)


async def test_the_same_call_made_many_times_at_once_adds_its_searches_once(
    store: TaskStore, other: TaskStore
) -> None:
    task = await new_task(store)
    new = [new_search("one"), new_search("two")]
    outcomes = await asyncio.gather(*(add((store, other)[n % 2], task, *new) for n in range(8)))
    assert all(added == outcomes[0] for added in outcomes)
    assert (await record_there(store, task)).searches == outcomes[0].searches


async def test_a_task_never_has_more_searches_than_it_may(
    store: TaskStore, other: TaskStore
) -> None:
    task = await new_task(store)
    outcomes = await asyncio.gather(
        *(add((store, other)[n % 2], task, f"a{n}", f"b{n}", most=7) for n in range(8)),
        return_exceptions=True,
    )
    refused = [one for one in outcomes if isinstance(one, ValidationError)]
    assert len(refused) == 5
    assert len((await record_there(store, task)).searches) == 6


async def test_the_clock_is_started_by_the_first_search_alone(
    store: TaskStore, other: TaskStore
) -> None:
    for _ in range(ROUNDS):
        task = await new_task(store, budget_seconds=60.0)
        await asyncio.gather(
            *(add((store, other)[n % 2], task, f"q{n}", now=NOW + n) for n in range(6))
        )
        record = await record_there(store, task)
        assert record.task.ends_at == record.searches[0].queued_at + 60.0


async def test_no_more_pages_are_granted_than_the_budget_has(
    store: TaskStore, other: TaskStore
) -> None:
    for _ in range(ROUNDS // 2):
        task = await new_task(store, budget_pages=10)
        searches = await searches_of(store, task, 8)

        async def ask(n: int, search: Search) -> Granted:
            asked = [f"{n % 4}.org", f"{n}.net", "same.org", f"{n}.com"]
            return await grant((store, other)[n % 2], search, *asked)

        outcomes = await asyncio.gather(*(ask(n, one) for n, one in enumerate(searches)))
        record = await record_there(store, task)
        granted = [page for one in outcomes for page in one.pages]
        assert len(granted) == len(record.pages) == record.task.pages == 10
        assert Counter(keys(granted)) == Counter(keys(record.pages)), "each address once"
        owner = {page.key: page.search for page in record.pages}
        for search, one in zip(searches, outcomes, strict=True):
            assert all(owner[page.key] == search.ref.id for page in one.pages)
            assert all(owner[page.key] != search.ref.id for page in one.others)
            assert all(page.key not in owner for page in one.refused)
            assert len(one.pages) + len(one.others) + len(one.refused) == 4


async def test_jobs_of_one_search_that_ask_at_once_are_granted_the_same(
    store: TaskStore, other: TaskStore
) -> None:
    """As when a job is run again before the process it was taken from has noticed."""
    search = await begun(store, budget_pages=3)
    outcomes = await asyncio.gather(
        *(grant((store, other)[n % 2], search, "a.org", "b.org", "c.org") for n in range(8))
    )
    assert all(one == outcomes[0] for one in outcomes)
    assert (await task_there(store, *search.ref[:2])).pages == 3


async def test_what_is_read_of_a_task_is_of_one_moment(store: TaskStore, other: TaskStore) -> None:
    task = await new_task(store)
    searches = await searches_of(store, task, 5)

    looked = asyncio.Event()

    async def work(search: Search) -> None:
        for n in range(8):
            if n == 4:
                await looked.wait()
            await grant(store, search, f"{search.number}.{n}.org")
            await store.answer(search.ref, search.run, answer_of(search, f"p{n}"))
        await finish(store, search)

    working = asyncio.gather(*(work(search) for search in searches))
    looks = 0
    while not working.done():
        record = await record_there(other, task)
        assert record.task.pages == len(record.pages)
        for search in record.searches:
            pages = [page for page in record.pages if page.search == search.ref.id]
            answers = [one for one in record.answers if one.search == search.ref.id]
            assert len(pages) - len(answers) in (0, 1), "a page, then an answer"
            if search.state is SearchState.COMPLETED:
                assert len(answers) == 8
        looks += 1
        if looks == 2:
            looked.set()
    await working


async def test_after_a_stop_that_refuses_nothing_more_is_stored(
    store: TaskStore, other: TaskStore
) -> None:
    """Some come before the stop and some after; what each was told is what is there."""
    for _ in range(ROUNDS // 2):
        task = await new_task(store)
        searches = await searches_of(store, task, 6)
        for search in searches:
            await grant(store, search, f"{search.number}.org")

        async def bring(n: int, search: Search) -> tuple[bool, bool, bool, bool]:
            by = (store, other)[n % 2]
            answered = await by.answer(search.ref, search.run, answer_of(search))
            granted = await by.grant(search.ref, search.run, new_pages(f"{n}.net"), NOW)
            read = await mark(by, search, f"{search.number}.org", PageState.READ)
            return answered, granted is not None, read, await finish(by, search)

        told, stopped = await asyncio.gather(
            asyncio.gather(*(bring(n, one) for n, one in enumerate(searches))),
            other.stop(TENANT, task.id, NOW, refuse=True),
        )
        assert stopped
        record = await record_there(store, task)
        answered = {one.search for one in record.answers}
        for n, search in enumerate(searches):
            now = record.searches[search.number - 1]
            pages = {page.url: page for page in record.pages if page.search == search.ref.id}
            read = pages[f"https://{search.number}.org"].state is PageState.READ
            finished = now.state is SearchState.COMPLETED
            there = (search.ref.id in answered, f"https://{n}.net" in pages, read, finished)
            assert told[n] == there
            assert now.run == search.run + (not finished)
            again = await bring(n, search)
            assert again == ((False, False, True, True) if finished else (False,) * 4)


async def test_of_two_that_start_a_search_anew_one_does(store: TaskStore, other: TaskStore) -> None:
    for _ in range(ROUNDS):
        search = await begun(store)
        outcomes = await asyncio.gather(
            store.restart(search.ref, search.run), other.restart(search.ref, search.run)
        )
        (won,) = [one for one in outcomes if one is not None]
        assert won.run == search.run + 1
        assert await search_there(store, search.ref) == won


async def test_a_search_is_finished_or_started_anew_but_not_both(
    store: TaskStore, other: TaskStore
) -> None:
    for _ in range(ROUNDS):
        search = await begun(store)
        finished, again = await asyncio.gather(
            finish(store, search), other.restart(search.ref, search.run)
        )
        assert finished == (again is None)
        state = SearchState.COMPLETED if finished else SearchState.QUEUED
        assert (await search_there(store, search.ref)).state is state


async def test_of_two_endings_of_a_search_one_counts(store: TaskStore, other: TaskStore) -> None:
    for _ in range(ROUNDS):
        search = await begun(store)
        outcomes = await asyncio.gather(
            finish(store, search, SearchState.COMPLETED),
            finish(other, search, SearchState.FAILED, "no"),
        )
        assert sorted(outcomes) == [False, True]
        state = SearchState.COMPLETED if outcomes[0] else SearchState.FAILED
        assert (await search_there(store, search.ref)).state is state
