"""What every store promises of research tasks."""

from dataclasses import replace

import pytest

from penstock.adapters.sql.tasks import TaskStore
from penstock.errors import ValidationError
from penstock.model.finding import Finding
from penstock.model.ids import new_ids
from penstock.model.job import Priority
from penstock.model.research import (
    NewSearch,
    PageState,
    ProviderReply,
    ResearchTask,
    SearchRef,
    SearchState,
)
from tests.conformance.task_support import (
    MOST,
    NOW,
    TENANT,
    add,
    answer_of,
    begun,
    finish,
    grant,
    mark,
    new_pages,
    new_search,
    new_task,
    record_there,
    restart,
    search_of,
    search_there,
    task_there,
)

# Tasks


async def test_a_task_is_created_once_and_given_back_as_it_is(store: TaskStore) -> None:
    (task_id,) = new_ids(1)
    task = ResearchTask(TENANT, task_id, "why?", NOW, budget_pages=5, budget_seconds=60.0)
    created = await store.create(task)
    assert created == replace(task, seconds_left=60.0)
    assert await store.create(replace(task, question="other?", budget_pages=9)) == created
    assert await store.get(TENANT, task_id) == created
    assert await store.get(TENANT, "none") is None


async def test_tasks_come_the_newest_first_with_their_searches(store: TaskStore) -> None:
    made = [await new_task(store) for _ in range(5)]
    await new_task(store, "other")
    await add(store, made[3], "one", "two")
    newest = await store.tasks(TENANT, 3)
    assert [task for task, _ in newest] == made[:1:-1]
    assert [[one.query for one in searches] for _, searches in newest] == [[], ["one", "two"], []]
    older = await store.tasks(TENANT, 3, before=newest[-1][0].id)
    assert [task for task, _ in older] == made[1::-1]
    assert await store.tasks(TENANT, 3, before=older[-1][0].id) == []
    assert await store.tasks("none", 3) == []


async def test_tasks_whose_ids_tell_no_time_come_the_newest_first_too(store: TaskStore) -> None:
    ids = [sign * 32 for sign in "4c08f"]
    for number, task_id in enumerate(ids):
        await store.create(ResearchTask(TENANT, task_id, "why?", NOW + number))
    newest = [task.id for task, _ in await store.tasks(TENANT, 2)]
    older = [task.id for task, _ in await store.tasks(TENANT, 9, before=newest[-1])]
    assert newest + older == ids[::-1]


# Searches


async def test_searches_are_numbered_without_gaps_in_the_order_given(store: TaskStore) -> None:
    task = await new_task(store)
    new = NewSearch("s1", "key", "Why so?", 7, Priority.HIGH, ("arxiv", "crossref"))
    (first,) = (await add(store, task, new)).searches
    assert first.ref == SearchRef(TENANT, task.id, "s1")
    assert (first.query, first.limit, first.priority) == ("Why so?", 7, Priority.HIGH)
    assert first.providers == ("arxiv", "crossref")
    assert (first.state, first.queued_at) == (SearchState.QUEUED, NOW)
    assert (first.started_at, first.finished_at, first.reason) == (None, None, None)
    more = await add(store, task, "two", "Why so?", new_search("again", key="key"), "three")
    assert [search.number for search in more.searches] == [2, 3, 4]
    record = await record_there(store, task)
    assert record.searches == [first, *more.searches]


async def test_a_query_is_in_a_task_once(store: TaskStore) -> None:
    task = await new_task(store)
    (first,) = (await add(store, task, "one")).searches
    added = await add(store, task, "two", "one", "two", "three")
    assert [search.query for search in added.searches] == ["two", "three"]
    assert added.skipped == [first, added.searches[0]]
    assert len((await add(store, await new_task(store), "one")).searches) == 1


async def test_a_call_that_is_made_again_is_answered_as_before(store: TaskStore) -> None:
    task = await new_task(store)
    new = [new_search("one"), new_search("two")]
    first = await add(store, task, *new)
    await add(store, task, "three")
    assert await add(store, task, *new, most=3) == first
    assert await add(store, task, *new, *new, most=1) == first
    assert len((await record_there(store, task)).searches) == 3


async def test_more_searches_than_a_task_may_have_are_refused_as_a_whole(
    store: TaskStore,
) -> None:
    task = await new_task(store, budget_seconds=60.0)
    with pytest.raises(ValidationError, match="at most 2"):
        await add(store, task, "one", "two", "three", most=2)
    assert (await record_there(store, task)).searches == []
    assert await task_there(store, TENANT, task.id) == task, "its clock stands"
    added = await add(store, task, "one", "two", "one", most=2)
    assert [search.number for search in added.searches] == [1, 2]
    with pytest.raises(ValidationError):
        await add(store, task, "three", most=2)


async def test_searches_of_a_task_that_is_not_there_are_not_taken(store: TaskStore) -> None:
    assert await store.add_searches(TENANT, "none", [new_search("q")], MOST, NOW) is None
    assert await store.record(TENANT, "none") is None


async def test_a_search_starts_once_and_goes_on(store: TaskStore) -> None:
    task = await new_task(store, budget_pages=3)
    search = await search_of(store, task)
    started = await store.start(search.ref, search.run, NOW + 1)
    assert started is not None
    assert started.task == task
    assert started.search == replace(search, state=SearchState.RUNNING, started_at=NOW + 1)
    assert (started.answers, started.pages) == ([], [])
    assert await store.start(search.ref, search.run, NOW + 2) == started
    assert await store.start(search.ref, search.run + 1, NOW) is None
    assert await store.start(search.ref._replace(id="none"), search.run, NOW) is None


async def test_whoever_starts_a_search_is_told_what_is_known_of_it(store: TaskStore) -> None:
    search = await begun(store)
    other = await search_of(store, await task_there(store, *search.ref[:2]), "other")
    answers = [answer_of(search, "openalex", ["A"]), answer_of(search, "arxiv", ["B"])]
    for answer in answers:
        assert await store.answer(search.ref, search.run, answer)
    assert await store.answer(other.ref, other.run, answer_of(other))
    granted = await grant(store, search, "b.org", "a.org")
    await grant(store, other, "c.org")
    again = await restart(store, search)
    assert again == replace(search, state=SearchState.QUEUED, run=search.run + 1)
    started = await store.start(search.ref, again.run, NOW + 9)
    assert started is not None
    assert started.search.started_at == NOW, "kept from the first start"
    assert (started.answers, started.pages) == (answers, granted.pages)


async def test_a_search_ends_once(store: TaskStore) -> None:
    search = await begun(store)
    assert await finish(store, search, SearchState.COMPLETED, "budget", NOW + 5)
    ended = await search_there(store, search.ref)
    assert ended == replace(
        search, state=SearchState.COMPLETED, reason="budget", finished_at=NOW + 5
    )
    assert await finish(store, search, SearchState.COMPLETED, "other", NOW + 6), "told again"
    assert not await finish(store, search, SearchState.FAILED, "other", NOW + 6)
    assert await search_there(store, search.ref) == ended


async def test_a_finished_search_takes_no_more(store: TaskStore) -> None:
    search = await begun(store)
    await grant(store, search, "a.org", "b.org")
    await finish(store, search, SearchState.FAILED, "no provider answered")
    assert await store.start(search.ref, search.run, NOW) is None
    assert not await store.answer(search.ref, search.run, answer_of(search))
    assert await store.grant(search.ref, search.run, new_pages("c.org"), NOW) is None
    assert await store.restart(search.ref, search.run) is None
    assert await mark(store, search, "a.org", PageState.READ), "it is stored all the same"
    record = await record_there(store, search.ref)
    assert record.answers == []
    assert [page.state for page in record.pages] == [PageState.READ, PageState.WAITING]


async def test_a_search_is_started_anew_by_one_caller_only(store: TaskStore) -> None:
    search = await begun(store)
    again = await restart(store, search)
    assert await store.restart(search.ref, search.run) is None
    assert (await restart(store, again)).run == search.run + 2


async def test_whatever_a_job_of_an_earlier_run_brings_is_refused(store: TaskStore) -> None:
    search = await begun(store)
    await grant(store, search, "a.org")
    before = await record_there(store, search.ref)
    again = await restart(store, search)
    assert await store.start(search.ref, search.run, NOW) is None
    assert not await store.answer(search.ref, search.run, answer_of(search))
    assert await store.grant(search.ref, search.run, new_pages("b.org"), NOW) is None
    assert not await mark(store, search, "a.org", PageState.READ)
    assert not await finish(store, search)
    after = await record_there(store, search.ref)
    assert after == replace(before, searches=[again])


# Answers


async def test_an_answer_is_kept_whole_and_in_place_of_the_one_before(store: TaskStore) -> None:
    search = await begun(store)
    finding = Finding(
        provider="openalex",
        provider_id="W1",
        title="Über 暗号",
        url="https://example.org/1",
        authors=("Kim", "Lee"),
        year=2020,
        doi="10.1/x",
        arxiv_id="2001.00001",
        abstract="An abstract." * 20_000,
        open_access_url="https://example.org/1.pdf",
        extra={"cited_by": 3, "venue": {"name": "Über"}, "tags": ["a", None, 1.5, True]},
    )
    first = ProviderReply(search.ref.id, "openalex", (finding,), 2, False, "page2", "slow", NOW + 1)
    other = answer_of(search, "arxiv", ["B"])
    for answer in (first, other, first):
        assert await store.answer(search.ref, search.run, answer)
    assert (await record_there(store, search.ref)).answers == [first, other]
    better = replace(first, findings=(finding, finding), done=True, next=None, error=None)
    assert await store.answer(search.ref, search.run, better)
    assert (await record_there(store, search.ref)).answers == [better, other]


# The clock


async def test_the_first_searches_start_the_clock(store: TaskStore) -> None:
    task = await new_task(store, budget_seconds=60.0)
    assert await store.add_searches(TENANT, task.id, [], MOST, NOW) == ([], [])
    assert await task_there(store, TENANT, task.id) == task
    await add(store, task, "one", now=NOW + 100)
    running = await task_there(store, TENANT, task.id)
    assert (running.ends_at, running.seconds_left) == (NOW + 160, None)
    await add(store, task, "two", now=NOW + 200)
    assert await task_there(store, TENANT, task.id) == running


async def test_pauses_do_not_count(store: TaskStore) -> None:
    task = await new_task(store, budget_seconds=60.0)
    await add(store, task, "one")
    for now in (NOW + 20, NOW + 25):
        assert await store.stop(TENANT, task.id, now, refuse=now > NOW + 20)
        await add(store, task, "two", now=now)
        paused = await task_there(store, TENANT, task.id)
        assert (paused.ends_at, paused.seconds_left) == (None, 40.0)
    for now in (NOW + 500, NOW + 600):
        assert await store.resume(TENANT, task.id, now)
        running = await task_there(store, TENANT, task.id)
        assert (running.ends_at, running.seconds_left) == (NOW + 540, None)


async def test_seconds_that_are_used_up_do_not_come_back(store: TaskStore) -> None:
    task = await new_task(store, budget_seconds=60.0)
    await add(store, task, "one")
    await store.stop(TENANT, task.id, NOW + 100, refuse=False)
    assert (await task_there(store, TENANT, task.id)).seconds_left == 0.0
    await store.resume(TENANT, task.id, NOW + 200)
    assert (await task_there(store, TENANT, task.id)).ends_at == NOW + 200


async def test_a_task_that_is_stopped_before_it_begins_keeps_its_seconds(store: TaskStore) -> None:
    task = await new_task(store, budget_seconds=60.0)
    assert await store.stop(TENANT, task.id, NOW, refuse=True)
    assert await store.resume(TENANT, task.id, NOW + 5)
    assert await task_there(store, TENANT, task.id) == task
    await add(store, task, "one", now=NOW + 10)
    assert (await task_there(store, TENANT, task.id)).ends_at == NOW + 70


async def test_a_task_without_a_budget_has_no_clock(store: TaskStore) -> None:
    task = await new_task(store)
    await add(store, task, "one")
    await store.stop(TENANT, task.id, NOW, refuse=False)
    await store.resume(TENANT, task.id, NOW)
    assert await task_there(store, TENANT, task.id) == task
    assert not await store.stop(TENANT, "none", NOW, refuse=True)
    assert not await store.resume(TENANT, "none", NOW)


async def test_a_stop_that_refuses_gives_every_unfinished_search_another_run(
    store: TaskStore,
) -> None:
    search = await begun(store)
    task = await task_there(store, *search.ref[:2])
    queued, done = (await add(store, task, "queued", "done")).searches
    await finish(store, done)
    await grant(store, search, "a.org")
    await store.stop(TENANT, task.id, NOW, refuse=False)
    assert await store.answer(search.ref, search.run, answer_of(search)), "it may end in peace"
    before = await record_there(store, task)

    await store.stop(TENANT, task.id, NOW, refuse=True)
    assert not await store.answer(search.ref, search.run, answer_of(search, "arxiv"))
    assert not await mark(store, search, "a.org", PageState.READ)
    assert not await finish(store, search)
    assert await store.grant(search.ref, search.run, new_pages("b.org"), NOW) is None
    assert await store.start(queued.ref, queued.run, NOW) is None
    after = await record_there(store, task)
    assert (after.answers, after.pages) == (before.answers, before.pages)
    first, second, third = after.searches
    assert (first.state, first.run) == (SearchState.QUEUED, search.run + 1)
    assert (second.state, second.run) == (SearchState.QUEUED, queued.run + 1)
    assert third == before.searches[2]
    assert await store.start(search.ref, first.run, NOW) is not None


# What a reconciler and an estimate read


async def test_unfinished_searches_come_in_the_order_of_their_refs(store: TaskStore) -> None:
    refs = []
    for tenant in ("b", "a"):
        for _ in range(2):
            task = await new_task(store, tenant)
            searches = (await add(store, task, "one", "two", "three")).searches
            await store.start(searches[0].ref, 1, NOW)
            await finish(store, searches[1])
            refs += [searches[0].ref, searches[2].ref]
            await add(store, task, "young", now=NOW + 10)
    found = await store.unfinished(NOW + 1, 100)
    assert [search.ref for search in found] == sorted(refs)
    assert {search.state for search in found} == {SearchState.QUEUED, SearchState.RUNNING}
    page = await store.unfinished(NOW + 1, 5)
    rest = await store.unfinished(NOW + 1, 5, after=page[-1].ref)
    assert page + rest == found
    assert await store.unfinished(NOW + 1, 5, after=rest[-1].ref) == []
    assert await store.unfinished(NOW, 5) == []


async def test_the_time_searches_take_is_that_of_the_newest_completed_ones(
    store: TaskStore,
) -> None:
    assert await store.seconds_taken(TENANT, 3) is None
    for n, seconds in enumerate((100.0, 2.0, 4.0, 6.0)):
        await finish(store, await begun(store), now=NOW + seconds + 1000 * n)
    await finish(store, await begun(store), SearchState.FAILED, now=NOW + 5000)
    await finish(store, await search_of(store, await new_task(store)), now=NOW + 9000)
    await finish(store, await begun(store, tenant="other"), now=NOW + 9000)
    assert await store.seconds_taken(TENANT, 1) == pytest.approx(3006.0)
    assert await store.seconds_taken(TENANT, 3) == pytest.approx((1002 + 2004 + 3006) / 3)
    assert await store.seconds_taken("none", 3) is None
