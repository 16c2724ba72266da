"""Research tasks, from a question to results, with real workers against providers on loopback."""

from __future__ import annotations

import asyncio
import json

import pytest

from penstock.errors import DocumentNotFound, TaskNotFound, ValidationError
from penstock.model.job import JobState
from penstock.research.job_ids import FIND, PAGE, SEARCH
from tests.support.counting_server import Answer
from tests.support.provider_server import PATHS
from tests.support.rate_windows import most_at_once
from tests.support.research import HTML, SOON, Bureau, asked, finished, titles
from tests.support.result_server import ResultServer
from tests.support.waiting import look_on, until


async def test_a_question_becomes_merged_results_whose_pages_are_searchable(
    bureau: Bureau,
) -> None:
    async with bureau.running() as app:
        task = await app.research.create("How do water wheels turn?")
        before = await app.research.status(task.id)
        assert (before.status, before.progress, before.results) == ("running", "0/0", ())
        queued = await app.research.queue_searches(task.id, ["water wheels", "mills"])
        assert (queued.queued, queued.skipped, len(queued.search_ids)) == (2, 0, 2)
        view = await finished(app, task.id)
        assert (view.status, view.progress, view.errors) == ("completed", "2/2", ())
        assert sorted(titles(view)) == ["Work 0", "Work 1", "Work 2"]
        first = view.results[0]
        assert first.providers == ("openalex", "searxng")
        assert first.queries == ("water wheels", "mills")
        assert (first.page, first.collection) == ("read", "web")
        assert [one.found for one in view.searches] == [3, 3]
        # Each page was fetched once, although two searches and two providers named it.
        assert sorted(bureau.site.pages_hit()) == ["/page/0", "/page/1", "/page/2"]
        assert first.document is not None
        text = await app.research.page(first.document)
        assert "tells how the water wheel of mill" in text.text
        assert "Imprint" not in text.text
        assert text.untrusted
        assert text.fetched_at is not None
        found = await app.documents.search("water wheel of mill 1", collections=["web"])
        assert found.passages
        await app.drain(SOON)
        jobs = await app.jobs(log=f"research:{task.id}")
        kinds = [job.kind for job in jobs]
        assert (kinds.count(SEARCH), kinds.count(FIND), kinds.count(PAGE)) == (2, 4, 3)
        assert {job.state for job in jobs} == {JobState.COMPLETED}
        (search,) = [job for job in jobs if job.id == jobs[-1].id]
        assert json.dumps(search.result)


async def test_queries_that_a_task_has_are_skipped_and_counted(bureau: Bureau) -> None:
    async with bureau.idle() as app:
        task = await asked(app, "Water wheels")
        again = await app.research.queue_searches(task, ["water  WHEELS", "mills", "Mills"])
        assert (again.queued, again.skipped) == (1, 2)
        other = await app.research.queue_searches(task, ["mills"], providers=["searxng"])
        assert other.queued == 1  # other providers may know more
        assert len((await app.research.status(task)).searches) == 3


async def test_what_goes_wrong_with_one_page_or_provider_does_not_stop_the_rest(
    bureau: Bureau,
) -> None:
    site = bureau.site
    site.faults["openalex"] = Answer(400)
    site.answers["/page/1"] = Answer(404)
    site.answers["/page/2"] = Answer(headers=HTML, body=b"<html><body></body></html>")
    async with bureau.running() as app:
        view = await finished(app, await asked(app, "water wheels"))
        assert view.status == "completed"
        assert sorted(titles(view)) == ["Work 0", "Work 1", "Work 2"]
        by_title = {work.title: work.page for work in view.results}
        assert by_title == {"Work 0": "read", "Work 1": "failed", "Work 2": "failed"}
        reasons = {(one.provider, one.url): one.reason for one in view.errors}
        assert "400" in reasons["openalex", None]
        assert "404" in reasons[None, site.page_url(1)]
        assert reasons[None, site.page_url(2)]
        assert len(reasons) == 3


async def test_pages_that_robots_txt_keeps_for_itself_are_not_fetched(bureau: Bureau) -> None:
    bureau.site.answers["/robots.txt"] = Answer(body=b"User-agent: *\nDisallow: /page/1\n")
    async with bureau.running() as app:
        view = await finished(app, await asked(app, "water wheels"))
        assert sorted(bureau.site.pages_hit()) == ["/page/0", "/page/2"]
        (error,) = view.errors
        assert error.url == bureau.site.page_url(1)
        assert "robots.txt" in error.reason


async def test_a_task_all_of_whose_searches_failed_is_failed(bureau: Bureau) -> None:
    for name in PATHS:
        bureau.site.faults[name] = Answer(400)
    async with bureau.running() as app:
        view = await finished(app, await asked(app, "water wheels", "mills"))
        assert (view.status, view.progress, view.results) == ("failed", "2/2", ())
        assert {one.provider for one in view.errors} == {"openalex", "searxng", None}


async def test_nothing_found_is_no_failure(bureau: Bureau) -> None:
    bureau.site.shelves[""] = []
    async with bureau.running() as app:
        view = await finished(app, await asked(app, "water wheels"))
        assert (view.status, view.results, view.errors) == ("completed", (), ())


async def test_results_are_told_before_the_end(bureau: Bureau) -> None:
    bureau.site.answers["/page/0"] = Answer(hang=True)
    async with bureau.running(page_seconds=600.0) as app:
        task, since = await asked(app, "water wheels"), None
        async with asyncio.timeout(SOON):
            while True:
                view = await app.research.status(task, wait=10.0, since=since)
                since = view.version
                read = [work for work in view.results if work.page == "read"]
                if len(read) == 2:
                    break
        assert (view.status, view.progress) == ("running", "0/1")
        await app.research.stop(task, mode="immediate")


async def test_no_more_than_two_searches_go_on_at_a_time(bureau: Bureau) -> None:
    site = bureau.site
    site.shelves = {"": []} | {f"q{n}": [n] for n in range(6)}
    site.held.add("searxng")
    async with bureau.running(max_workers=8) as app:
        task = await asked(app, *(f"q{n}" for n in range(6)), providers=["searxng"])
        await until(lambda: len(site.asked("searxng")) >= 2, "two to be asked")
        await look_on(0.3)
        site.held.clear()
        view = await finished(app, task)
        assert sorted(titles(view)) == [f"Work {n}" for n in range(6)]
    assert {one["q"] for one in site.asked("searxng")} == {f"q{n}" for n in range(6)}
    assert most_at_once(site.spans(PATHS["searxng"])) == 2


async def test_one_worker_is_enough(bureau: Bureau) -> None:
    """Searches wait for their own jobs without holding the worker those need."""
    async with bureau.running(max_workers=1) as app:
        view = await finished(app, await asked(app, "water wheels", "mills", "sluices"))
        assert (view.status, view.progress, view.errors) == ("completed", "3/3", ())


async def test_asked_number_of_results_is_kept_and_pages_followed(bureau: Bureau) -> None:
    bureau.site.shelves[""] = range(30)
    async with bureau.running() as app:
        few = await finished(app, await asked(app, "few", max_results=4))
        assert len(few.results) == 4
        many = await finished(app, await asked(app, "many", max_results=25, providers=["searxng"]))
        assert len(many.results) == 25
        assert {one["pageno"] for one in bureau.site.asked("searxng")} == {"1", "2", "3"}


async def test_results_are_cut_with_a_cursor(bureau: Bureau) -> None:
    bureau.site.shelves[""] = range(7)
    async with bureau.running() as app:
        task = await asked(app, "water wheels")
        whole = await finished(app, task)
        seen, cursor = [], None
        while True:
            part = await app.research.status(task, limit=3, cursor=cursor)
            assert part.total_results == 7
            seen += titles(part)
            cursor = part.cursor
            if cursor is None:
                break
        assert seen == titles(whole)
        page = whole.results[0].document
        assert page is not None
        text = await app.research.page(page)
        parts, cursor = "", None
        while True:
            piece = await app.research.page(page, limit=100, cursor=cursor)
            parts += piece.text
            cursor = piece.cursor
            if cursor is None:
                break
        assert parts == text.text
        assert len(parts) == text.total


async def test_budget_of_pages_is_kept_over_searches_and_says_so(bureau: Bureau) -> None:
    bureau.site.shelves = {"": range(4), "mills": range(4, 8)}
    async with bureau.running() as app:
        view = await finished(app, await asked(app, "wheels", "mills", budget_pages=5))
        assert view.status == "completed"
        assert len(view.results) == 8
        assert len(bureau.site.pages_hit()) == 5
        assert (view.budget.pages, view.budget.pages_used) == (5, 5)
        told = [one.reason for one in view.errors]
        assert any("budget of 5 pages is used up" in reason for reason in told)
        assert sum(work.page == "none" for work in view.results) == 3


async def test_budget_of_seconds_ends_what_goes_on_and_says_so(bureau: Bureau) -> None:
    bureau.site.answers["/page/"] = Answer(hang=True)
    bureau.site.shelves = {"": []} | {"wheels": [1], "mills": [2], "sluices": [3]}
    async with bureau.running() as app:
        task = await asked(app, "wheels", "mills", "sluices", budget_seconds=1.0)
        view = await finished(app, task)
        assert all("time budget of 1 s" in (one.reason or "") for one in view.searches)
        assert view.budget.seconds_left == 0

        async def none_left() -> bool:
            return not await app.jobs(log=f"research:{task}", states=["queued", "running"])

        # Each search is stored as ended by its own job, which is over a moment later.
        await until(none_left, "its jobs to end")


async def test_providers_that_do_not_answer_are_given_up_and_the_rest_goes_on(
    bureau: Bureau,
) -> None:
    bureau.site.faults["openalex"] = Answer(hang=True)
    async with bureau.running(provider_seconds=12.0) as app:
        view = await finished(app, await asked(app, "water wheels"))
        assert view.status == "completed"
        assert sorted(titles(view)) == ["Work 0", "Work 1", "Work 2"]
        (error,) = view.errors
        assert (error.provider, "no answer within 12 s" in error.reason) == ("openalex", True)


async def test_pages_read_lately_are_not_fetched_again(bureau: Bureau) -> None:
    async with bureau.running() as app:
        await finished(app, await asked(app, "water wheels"))
        again = await finished(app, await asked(app, "water wheels"))
        assert {work.page for work in again.results} == {"read"}
        assert len(bureau.site.pages_hit()) == 3


async def test_personal_data_in_queries_and_findings_is_masked(bureau: Bureau) -> None:
    canary = "mill.owner@example.com"
    async with bureau.running() as app:
        task = await app.research.create(f"Who is {canary}?")
        await app.research.queue_searches(task.id, [f"mills of {canary}"])
        view = await finished(app, task.id)
        assert canary not in json.dumps(view.as_dict())
        assert view.results
    assert all(
        canary not in hit.query and "mill.owner" not in hit.query for hit in bureau.site.hits
    )
    stored = bureau.farm.path.read_bytes()
    wal = bureau.farm.path.with_name("jobs.db-wal")
    stored += wal.read_bytes() if wal.exists() else b""
    assert canary.encode() not in stored


async def test_tasks_are_listed_the_newest_first(bureau: Bureau) -> None:
    async with bureau.idle() as app:
        ids = [await asked(app, f"q{n}") for n in range(3)]
        await app.research.stop(ids[0])
        lines = await app.research.tasks()
        assert [one.task_id for one in lines] == ids[::-1]
        assert [one.status for one in lines] == ["running", "running", "paused"]
        (second,) = await app.research.tasks(limit=1, before=ids[2])
        assert second.task_id == ids[1]


async def test_tasks_are_those_of_their_tenant(bureau: Bureau) -> None:
    async with bureau.running() as app:
        task = await asked(app, "water wheels", tenant="kim")
        view = await finished(app, task, tenant="kim")
        document = view.results[0].document
        assert document is not None
        assert await app.research.tasks() == []
        for refused in (
            app.research.status(task, wait=60.0),
            app.research.queue_searches(task, ["more"]),
            app.research.stop(task),
            app.research.resume(task),
            app.research.export(task),
        ):
            with pytest.raises(TaskNotFound):
                await asyncio.wait_for(refused, SOON)
        with pytest.raises(DocumentNotFound):
            await app.research.page(document)
        assert (await app.research.page(document, tenant="kim")).text


async def test_what_cannot_be_right_is_refused_with_a_sentence(bureau: Bureau) -> None:
    async with bureau.idle() as app:
        task = await asked(app)
        research = app.research
        for refused, said in (
            (research.create("  "), "a question must be 1 to"),
            (research.create("x", budget_pages=-1), "budget_pages"),
            (research.create("x", budget_seconds=0.0), "budget_seconds"),
            (research.queue_searches(task, []), "1 to 100 queries"),
            (research.queue_searches(task, ["x"] * 101), "1 to 100 queries"),
            (research.queue_searches(task, [" "]), "a query must be 1 to"),
            (research.queue_searches(task, ["x"], max_results=0), "max_results must be 1 to 100"),
            (research.queue_searches(task, ["x"], providers=["altavista"]), "there are: openalex"),
            (research.queue_searches(task, ["x"], providers=[]), "name a provider"),
            (research.status(task, wait=301.0), "wait must be 0 to 300"),
            (research.status(task, cursor="x"), "cursor"),
        ):
            with pytest.raises(ValidationError, match=said):
                await refused
        assert (await research.status(task)).progress == "0/0"


async def test_estimate_follows_the_lanes_and_earlier_searches(bureau: Bureau) -> None:
    bureau.farm.settings["lanes"] |= {
        "searxng": {"min_interval_seconds": 3.0, "max_parallel": 1},
    }
    async with bureau.idle() as app:
        await app.queue.configure(["searxng"])
        task = await asked(app)
        ten = await app.research.queue_searches(
            task, [f"a{n}" for n in range(10)], providers=["searxng"]
        )
        assert ten.estimated_time >= 30.0
    async with bureau.idle() as app:
        quick = await app.research.queue_searches(await asked(app), ["b"], providers=["openalex"])
        # The ten are before it, two at a time.
        assert quick.estimated_time >= 5 * 5.0


async def test_engine_that_blocks_is_reported_and_the_search_goes_on_without_it(
    bureau: Bureau, results: ResultServer, chromium: None
) -> None:
    """Beside one that answers: both in a real browser, the one after the other."""
    results.titles = ["Mill race", "Mill pond"]
    results.faults["/offset"] = Answer(headers=HTML, body=b"<main id=captcha>Are you?</main>")
    bureau.add_engines(results, "page", "offset")
    async with bureau.running(provider_seconds=60.0) as app:
        task = await asked(app, "mills", providers=["browser.page", "browser.offset"])
        view = await finished(app, task)
        assert view.status == "completed"
        assert sorted(titles(view)) == ["Mill pond", "Mill race"]
        blocked = [one for one in view.errors if one.provider is not None]
        assert [one.provider for one in blocked] == ["browser.offset"]
        assert "has blocked us" in blocked[0].reason
        lanes = {lane.name: lane for lane in await app.lane_infos()}
        assert lanes["browser.offset"].blocked_until is not None
        assert lanes["browser.page"].blocked_until is None
