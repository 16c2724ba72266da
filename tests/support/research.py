"""Research on loopback: providers, the pages they name, and who works on tasks."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from penstock import Penstock
from penstock.research.job_ids import log_of
from penstock.wire.tasks import TaskView
from tests.support.counting_server import Answer, Hit
from tests.support.document_app import Shelf
from tests.support.embedder import PATH as EMBEDDINGS
from tests.support.embedder import embedded
from tests.support.provider_server import PATHS, ProviderServer, Work
from tests.support.result_server import ResultServer
from tests.support.web_documents import HOSTS

SOON = 60.0
"""Seconds a task may take; five times what it should."""
QUICK: dict[str, Any] = {**HOSTS, "probe_seconds": 0.3}
HTML = {"content-type": "text/html; charset=utf-8"}
QUERY_NAMES = ("search", "query", "search_query", "q")
FREE = ("openalex", "searxng")
"""Whom the tests ask: one whose findings have an address of a file besides, one of plain pages."""


class ResearchSite(ProviderServer):
    """Providers whose works are pages of this same server, and an embedder. `shelves` has the
    numbers of the works of a query; other queries find those of ""."""

    def __init__(self) -> None:
        super().__init__()
        self.shelves: dict[str, Sequence[int]] = {"": range(3)}
        self.answers["/robots.txt"] = Answer(404)
        self.page_delay = 0.0
        self.pages_held: threading.Event | None = None
        """No page is there before it is set."""

    def page_url(self, number: int) -> str:
        return self.url(f"/page/{number}")

    def pages_hit(self) -> list[str]:
        return [hit.path for hit in list(self.hits) if hit.path.startswith("/page/")]

    def answer(self, path: str) -> Answer:
        if path == EMBEDDINGS:
            return embedded(self.at(path)[-1])
        if path in PATHS.values():
            found = self.shelves.get(_query(self.at(path)[-1]), self.shelves[""])
            self.works = [Work(number) for number in found]
            answer = super().answer(path)
            body = answer.body
            for public in ("https://site.example/", "https://journal.example/"):
                body = body.replace(public.encode(), self.url("/page/").encode())
            # The free file of a work is its page, too.
            body = body.replace(b"https://free.example/", self.url("/page/").encode())
            body = body.replace(b".pdf", b"").replace(b"?utm_source=x", b"")
            return replace(answer, body=body)
        if path.startswith("/page/") and not any(
            path.startswith(known) for known in self.answers if known != "/"
        ):
            text = page(path.rpartition("/")[2])
            held = self.pages_held.is_set if self.pages_held else None
            return Answer(headers=HTML, body=text, delay=self.page_delay, until=held)
        return super().answer(path)


def _query(hit: Hit) -> str:
    values = parse_qs(hit.query)
    found = next((values[name][0] for name in QUERY_NAMES if name in values), "")
    return found.removeprefix("all:")


def page(number: str) -> bytes:
    """Long enough to be taken for the main text of a page."""
    body = " ".join(
        f"Sentence {n} of page {number} tells how the water wheel of mill {number} turns."
        for n in range(12)
    )
    return (
        f"<html><head><title>Mill {number}</title></head><body><nav><a href='/'>Home</a></nav>"
        f"<article><h1>Mill {number}</h1><p>{body}</p></article><footer>Imprint</footer>"
        "</body></html>"
    ).encode()


class Bureau:
    """Tasks, who works on them, and the site they are about."""

    def __init__(self, shelf: Shelf, site: ResearchSite) -> None:
        self.shelf, self.farm, self.site = shelf, shelf.farm, site
        lanes = dict.fromkeys([*PATHS, "host:*", "embedder"], QUICK)
        shelf.farm.settings |= {
            "config_file": config(shelf.farm.folder, site, shelf.farm.settings["config_file"]),
            "fetch_allow": [f"127.0.0.1:{site.port}"],
            "lanes": lanes,
            "max_retries": 1,
            "search_providers": list(FREE),
            "provider_seconds": SOON,
            "page_seconds": SOON,
        }

    def add_engines(self, results: ResultServer, *ways: str) -> None:
        """Search engines that are asked in a browser, `browser.page` and so on."""
        engines = {way: results.settings(way) for way in ways}
        file, settings = Path(self.farm.settings["config_file"]), self.farm.settings
        section = json.dumps({"browser": {"engines": engines}})[1:-1]
        file.write_text(f"{file.read_text()}{section}\n")
        settings["fetch_allow"] += [f"127.0.0.1:{results.port}"]
        settings["lanes"] |= {"browser": QUICK, "browser.*": {**QUICK, "parent": "browser"}}

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator[Penstock]:
        """An app that works on tasks in the test's own process."""
        app = self.farm.app("researching", **settings)
        async with app.running():
            yield app

    @asynccontextmanager
    async def idle(self, **settings: Any) -> AsyncIterator[Penstock]:
        """An app that accepts, and does not work."""
        async with self.farm.app("researching", **settings) as app:
            yield app


def config(folder: Path, site: ResearchSite, base: str) -> str:
    """A configuration file with all providers on loopback."""
    lines = [Path(base).read_text(), "providers:"]
    for name, path in PATHS.items():
        lines.append(f"  {name}: {{base_url: '{site.url('/' + path.split('/')[1])}'}}")
    file = folder / "research.yaml"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


async def asked(app: Penstock, *queries: str, **options: Any) -> str:
    """A new task with these searches; its id."""
    budget = {name: options.pop(name) for name in list(options) if name.startswith("budget_")}
    tenant = {"tenant": options["tenant"]} if "tenant" in options else {}
    task = await app.research.create("How do water wheels turn?", **budget, **tenant)
    if queries:
        await app.research.queue_searches(task.id, queries, **options)
    return task.id


async def finished(app: Penstock, task_id: str, **options: Any) -> TaskView:
    """The task once nothing of it is left to do."""
    since = None
    while True:
        view = await app.research.status(task_id, wait=SOON, since=since, limit=1000, **options)
        if view.status in ("completed", "failed"):
            return view
        assert view.version != since, view
        since = view.version


def titles(view: TaskView) -> list[str]:
    return [work.title for work in view.results]


async def live(app: Penstock, task: str) -> list[str]:
    """The kinds of the task's jobs that are queued or running."""
    jobs = await app.jobs(log=log_of(task), states=["queued", "running"])
    return [job.kind for job in jobs]


async def at_rest(app: Penstock, task: str) -> None:
    """Nothing of the task is queued or running any more."""
    since = 0
    async with asyncio.timeout(SOON):
        while await live(app, task):
            changes = await app.changes(log_of(task), since=since, wait=1.0)
            since = changes[-1].version if changes else since


async def busy_with(app: Penstock, task: str, kind: str) -> None:
    """There are jobs of this kind at work on the task."""
    since = 0
    async with asyncio.timeout(SOON):
        while not await app.jobs(log=log_of(task), kind=kind, states=["running"]):
            changes = await app.changes(log_of(task), since=since, wait=0.1)
            since = changes[-1].version if changes else since
