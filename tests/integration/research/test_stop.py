"""Stopping and resuming research tasks, under load and racing their end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock import Penstock
from penstock.errors import TaskStopped
from penstock.research.job_ids import FIND, PAGE, SEARCH, log_of
from penstock.wire.tasks import TaskView
from tests.support.counting_server import Answer
from tests.support.provider_server import PATHS
from tests.support.research import Bureau, asked, at_rest, busy_with, finished, live, titles
from tests.support.waiting import until

QUERIES = tuple(f"q{n}" for n in range(6))


@pytest.fixture(autouse=True)
def shelves(bureau: Bureau) -> None:
    """Every query has two pages of its own."""
    bureau.site.shelves = {"": []} | {q: [2 * n, 2 * n + 1] for n, q in enumerate(QUERIES)}


@asynccontextmanager
async def hung(bureau: Bureau, what: str) -> AsyncIterator[None]:
    """A provider or page does not answer until the block is left."""
    bureau.site.faults["searxng"] = bureau.site.answers["/page/"] = Answer(hang=True)
    if what == "page":
        del bureau.site.faults["searxng"]
    else:
        del bureau.site.answers["/page/"]
    yield
    bureau.site.faults.pop("searxng", None)
    bureau.site.answers.pop("/page/", None)


async def all_found(app: Penstock, task: str) -> TaskView:
    view = await finished(app, task)
    assert view.status == "completed"
    assert sorted(titles(view)) == sorted(f"Work {n}" for n in range(12))
    assert {work.page for work in view.results} == {"read"}
    assert view.errors == ()
    return view


async def test_graceful_stop_lets_running_searches_finish_whole_and_starts_nothing_else(
    bureau: Bureau,
) -> None:
    site = bureau.site
    site.held.add("searxng")
    async with bureau.running() as app:
        task = await asked(app, *QUERIES, providers=["searxng"])
        await until(lambda: len(site.at(PATHS["searxng"])) == 2, "two are being asked")
        stopped = await app.research.stop(task)
        assert (stopped.status, stopped.resumable) == ("paused", True)
        assert (stopped.searches_done, stopped.searches_left) == (0, 6)
        assert (stopped.cancelled, stopped.running) == (4, 4)
        site.held.clear()
        await at_rest(app, task)
        view = await app.research.status(task)
        assert (view.status, view.progress) == ("paused", "2/6")
        assert sorted(titles(view)) == ["Work 0", "Work 1", "Work 2", "Work 3"]
        assert {work.page for work in view.results} == {"read"}
        rows = await app.jobs(log=log_of(task), kind=SEARCH)
        done = [row for row in rows if row.state == "completed"]
        assert {row.result["query"]: len(row.result["results"]) for row in done} == {
            "q0": 2,
            "q1": 2,
        }
        assert {one["page"] for row in done for one in row.result["results"]} == {"read"}
        assert {row.state for row in rows if row not in done} == {"cancelled"}
        assert {one["q"] for one in site.asked("searxng")} == {"q0", "q1"}
        resumed = await app.research.resume(task)
        assert (resumed.status, resumed.queued) == ("running", 4)
        await all_found(app, task)
        # What was answered before the stop was not asked again.
        pages = [(one["q"], one["pageno"]) for one in site.asked("searxng")]
        assert len(pages) == len(set(pages))


async def test_second_graceful_stop_takes_nothing_from_a_search_that_finishes(
    bureau: Bureau,
) -> None:
    bureau.site.pages_held = threading.Event()
    async with bureau.running() as app:
        task = await asked(app, *QUERIES, providers=["searxng"])
        await busy_with(app, task, PAGE)
        stops = [await app.research.stop(task) for _ in range(3)]
        assert [one.cancelled for one in stops[1:]] == [0, 0]
        bureau.site.pages_held.set()
        await at_rest(app, task)
        view = await app.research.status(task)
        assert view.status == "paused"
        assert {work.page for work in view.results} == {"read"}
        assert view.errors == ()


async def test_immediate_stop_ends_searches_that_a_graceful_one_let_finish(
    bureau: Bureau,
) -> None:
    async with bureau.running(page_seconds=600.0, grace_seconds=0.5) as app:
        async with hung(bureau, "page"):
            task = await asked(app, *QUERIES, providers=["searxng"])
            await busy_with(app, task, PAGE)
            assert (await app.research.stop(task)).running > 0
            assert (await app.research.stop(task, mode="immediate")).running == 0
            assert await live(app, task) == []
        await app.research.resume(task)
        await all_found(app, task)


async def test_immediate_stop_cancels_what_runs_and_stores_none_of_it(bureau: Bureau) -> None:
    site = bureau.site
    site.held.add("searxng")
    async with bureau.running() as app:
        task = await asked(app, *QUERIES, providers=["searxng"])
        await until(lambda: len(site.at(PATHS["searxng"])) == 2, "two are being asked")
        stopped = await app.research.stop(task, mode="immediate")
        assert (stopped.status, stopped.running, stopped.resumable) == ("paused", 0, True)
        await at_rest(app, task)
        site.held.clear()
        await until(lambda: all(hit.answered for hit in site.hits), "the server is done")
        view = await app.research.status(task)
        assert (view.status, view.progress, view.results) == ("paused", "0/6", ())
        assert {job.state for job in await app.jobs(log=log_of(task))} == {"cancelled"}
        assert (await app.research.resume(task)).queued == 6
        await all_found(app, task)


@pytest.mark.parametrize("mode", ["graceful", "immediate"])
@pytest.mark.parametrize("what", ["provider", "page"])
async def test_hung_work_is_left_behind_and_done_after_the_resume(
    bureau: Bureau, mode: str, what: str
) -> None:
    patient = {"provider_seconds": 600.0, "page_seconds": 600.0}
    async with bureau.running(**patient, grace_seconds=0.5) as app:
        async with hung(bureau, what):
            task = await asked(app, *QUERIES, providers=["searxng"])
            kind = FIND if what == "provider" else PAGE
            await busy_with(app, task, kind)
            await app.research.stop(task)
            if mode == "immediate":  # a second stop, in a hurry
                stopped = await app.research.stop(task, mode="immediate")
                assert stopped.running == 0
                await at_rest(app, task)
        if mode == "graceful":
            # Resumed before the running ones have ended: they are not done twice.
            await app.research.resume(task)
            for kind in (FIND, PAGE):
                for job in await app.jobs(log=log_of(task), kind=kind, states=["running"]):
                    await app.cancel(job.id)
            bureau.site.down()
            bureau.site.up()
        else:
            await app.research.resume(task)
        view = await finished(app, task)
        assert view.status == "completed"
        assert view.progress == "6/6"


async def test_stopped_task_takes_no_searches_and_others_are_untouched(bureau: Bureau) -> None:
    async with bureau.running() as app:
        stopped, other = await asked(app, "q0"), await asked(app, "q1")
        await app.research.stop(stopped)
        with pytest.raises(TaskStopped, match="resume"):
            await app.research.queue_searches(stopped, ["q2"])
        assert (await finished(app, other)).status == "completed"
        view = await app.research.status(stopped)
        assert view.status in ("paused", "completed")
        await app.research.resume(stopped)
        assert (await finished(app, stopped)).status == "completed"


@pytest.mark.parametrize("mode", ["graceful", "immediate"])
async def test_stop_that_races_the_end_leaves_nothing_half_done(bureau: Bureau, mode: str) -> None:
    """Stopped at moments spread over the life of a task: afterwards it is finished or can be
    resumed, and then it is finished, with all that there is."""
    async with bureau.running() as app:
        for moment in (0, 2, 4, 7):
            task = await asked(app, "q0", "q1", providers=["searxng"])
            log = log_of(task)
            await app.changes(log, since=3 * moment, wait=5.0)
            stopped = await app.research.stop(task, mode=mode)  # type: ignore[arg-type]
            assert stopped.resumable == (stopped.status == "paused")
            await at_rest(app, task)
            view = await app.research.status(task)
            assert view.status in ("paused", "completed")
            if view.status == "paused":
                await app.research.resume(task)
            view = await finished(app, task)
            assert (view.status, view.errors) == ("completed", ())
            assert sorted(titles(view)) == ["Work 0", "Work 1", "Work 2", "Work 3"]
            assert {work.page for work in view.results} == {"read"}


async def test_stop_of_a_finished_task_changes_nothing(bureau: Bureau) -> None:
    async with bureau.running() as app:
        task = await asked(app, "q0")
        before = await finished(app, task)
        stopped = await app.research.stop(task, mode="immediate")
        assert (stopped.status, stopped.resumable, stopped.cancelled) == ("completed", False, 0)
        assert titles(await app.research.status(task)) == titles(before)
        assert (await app.research.resume(task)).queued == 0
        assert (await app.research.queue_searches(task, ["q1"])).queued == 1
        assert (await finished(app, task)).progress == "2/2"


async def test_clock_of_a_budget_stands_still_while_a_task_is_paused(bureau: Bureau) -> None:
    async with bureau.idle() as app:
        task = await asked(app, "q0", budget_seconds=100.0)
        await app.research.stop(task)
        first = (await app.research.status(task)).budget.seconds_left
        assert first is not None
        assert 50 < first <= 100
        assert (await app.research.status(task)).budget.seconds_left == first
        await app.research.resume(task)
        left = (await app.research.status(task)).budget.seconds_left
        assert left is not None
        assert left <= first


async def test_stops_under_load_end_only_their_own_task(bureau: Bureau) -> None:
    bureau.site.page_delay = 0.02
    async with bureau.running(max_workers=8) as app:
        tasks = [await asked(app, *QUERIES, providers=["searxng"]) for _ in range(4)]
        stopped = tasks[::2]
        await asyncio.gather(
            *(app.research.stop(one, mode="immediate") for one in stopped),
        )
        for one in tasks[1::2]:
            await all_found(app, one)
        for one in stopped:
            await app.research.resume(one)
        for one in stopped:
            await all_found(app, one)
