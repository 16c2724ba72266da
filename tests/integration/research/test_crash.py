"""Research while processes die: what was asked is done, once, with the same results."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock import JobState
from penstock.research.job_ids import FIND, PAGE, log_of
from tests.support.counting_server import Answer
from tests.support.document_app import Shelf
from tests.support.embedder import EmbedderServer
from tests.support.research import FREE, SOON, Bureau, ResearchSite, asked, busy_with, finished
from tests.support.waiting import until
from tests.support.worker_processes import Farm

QUERIES = tuple(f"q{n}" for n in range(4))


def told(view: object) -> list[tuple[object, ...]]:
    return [
        (work.title, work.url, work.providers, work.queries, work.page, work.document)
        for work in view.results  # type: ignore[attr-defined]
    ]


@pytest.fixture(autouse=True)
def shelves(bureau: Bureau) -> None:
    bureau.site.shelves = {"": []} | {q: range(n, n + 3) for n, q in enumerate(QUERIES)}


@pytest.mark.parametrize("strikes", [1, 3])
async def test_killed_in_the_middle_a_task_goes_on_and_ends_with_the_same_results(
    bureau: Bureau, tmp_path: Path, embedder: EmbedderServer, strikes: int
) -> None:
    async with bureau.running() as app:
        undisturbed = await finished(app, await asked(app, *QUERIES))
        await app.drain(SOON)
    site = bureau.site
    folder = tmp_path / "again"
    folder.mkdir()
    again = Bureau(Shelf(Farm(folder), embedder), site)
    patient: dict[str, Any] = {"provider_seconds": 600.0, "page_seconds": 600.0}
    try:
        async with again.idle() as app:
            task = await asked(app, *QUERIES)
            for strike in range(strikes):
                # One provider, or in the end one page, keeps it at work until it is killed.
                last = strike == strikes - 1
                site.faults = {} if last else {"searxng": Answer(hang=True)}
                site.answers["/page/2"] = Answer(hang=True)
                site.hits.clear()
                worker = await again.farm.start("researching", max_retries=strikes, **patient)
                await until(lambda: site.asked("searxng"), "it is at work")
                if last:
                    await until(lambda: "/page/2" in site.pages_hit(), "it reads a page")
                    await busy_with(app, task, PAGE)
                await worker.kill()
            del site.answers["/page/2"]
            await again.farm.start("researching")
            view = await finished(app, task)
            await app.drain(SOON)
            jobs = await app.jobs(log=log_of(task), limit=1000)
            receipts = [(job.kind, await app.steps(job.id)) for job in jobs]
    finally:
        await again.farm.close()
    places = {FIND: {"findings"}, PAGE: {"document"}}
    for kind, steps in receipts:
        assert {one.receipt.kept for one in steps if one.receipt} == places.get(kind, set())
    assert (view.status, view.progress, view.errors) == ("completed", "4/4", ())
    assert told(view) == told(undisturbed)
    assert {job.state for job in jobs} == {"completed"}
    assert len({(job.kind, str(job.payload)) for job in jobs}) == len(jobs)


async def test_search_stored_by_a_process_that_died_before_its_job_is_done_all_the_same(
    bureau: Bureau, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bureau.idle() as app:
        task = await asked(app)

        async def died(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(app.research, "_enqueue", died)
        with pytest.raises(KeyboardInterrupt):
            await app.research.queue_searches(task, ["q0", "q1"])
        assert await app.jobs() == []
    async with bureau.running() as app:
        view = await finished(app, task)
        assert (view.status, view.progress) == ("completed", "2/2")


async def test_worker_that_is_stopped_hands_searches_on(bureau: Bureau) -> None:
    """Searches wait for jobs that may run elsewhere: a stop does not wait for them."""
    site: ResearchSite = bureau.site
    site.page_delay = 0.3
    async with bureau.idle() as app:
        task = await asked(app, *QUERIES)
        first = await bureau.farm.start("researching", grace_seconds=600.0)
        await until(lambda: bool(site.pages_hit()), "pages are being read")
        first.send(signal.SIGTERM)
        assert await first.exit() == 0
        await bureau.farm.start("researching")
        view = await finished(app, task)
        assert (view.status, view.progress, view.errors) == ("completed", "4/4", ())
        jobs = await app.jobs(log=log_of(task), limit=1000)
        assert max(job.attempts for job in jobs) == 1


async def test_killed_while_pages_are_embedded_no_provider_and_no_page_is_asked_again(
    bureau: Bureau, embedder: EmbedderServer
) -> None:
    site, held = bureau.site, threading.Event()
    embedder.gate = held
    async with bureau.idle() as app:
        task = await asked(app, "q0")
        worker = await bureau.farm.start("researching")

        async def all_read() -> bool:
            """All that is asked of the web has been, and is stored."""
            finds = await app.jobs(log=log_of(task), kind=FIND, limit=1000)
            ended = [one for one in finds if one.state is JobState.COMPLETED]
            there = await bureau.shelf.count("documents")
            return len(ended) == len(FREE) and there == len(site.shelves["q0"])

        await until(all_read, "all pages are there, none is searchable", SOON)
        await worker.kill()
        before = [(hit.path, hit.query) for hit in list(site.hits) if hit.path != "/robots.txt"]
        pages = site.pages_hit()
        embedder.gate = None
        held.set()
        await bureau.farm.start("researching")
        view = await finished(app, task)
        await app.drain(SOON)
    assert (view.status, view.progress, view.errors) == ("completed", "1/1", ())
    after = [(hit.path, hit.query) for hit in list(site.hits) if hit.path != "/robots.txt"]
    assert pages
    assert after[: len(before)] == before
    assert len(set(after)) == len(after)
