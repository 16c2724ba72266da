"""Searches of a `ResultServer` in a browser of this process."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

import psutil

from penstock import Job, JobContext, JobState
from penstock.model.browser import BrowserConfig
from penstock.model.lane import LaneConfig
from penstock.research.providers import Providers, open_providers
from tests.support.handler_app import HandlerApp, Work
from tests.support.result_server import ResultServer
from tests.support.worker_processes import Farm

LANE = "browser.test"
PATIENCE = 60.0
"""Seconds for a whole search; starting Chromium alone takes one on an idle machine."""
QUICK = LaneConfig(min_interval_seconds=0.0, max_parallel=2, requests_per_day=1000)
LANES = {"browser": QUICK, "browser.*": replace(QUICK, parent="browser", credentials=False)}


class Visits:
    """`providers` has the one engine `test`, as `use` has set it up."""

    def __init__(self, farm: Farm, server: ResultServer, **settings: Any) -> None:
        self.server = server
        self.runner = HandlerApp(farm, lanes=LANES, **settings)
        self.allow = [f"127.0.0.1:{server.port}"]
        self.providers = Providers()
        self._work: Work

    def use(self, way: str = "page", *, browser: dict[str, Any] | None = None, **to: Any) -> None:
        """`to` changes the engine, `browser` what is set for all."""
        config = BrowserConfig(engines={"test": self.server.engine(way, **to)}, **(browser or {}))
        self.providers = open_providers({}, browser=config, fetch_allow=self.allow)

    async def search(
        self, limit: int, query: str = "water wheels", start: str | None = None, **options: Any
    ) -> Job:
        """A job in the engine's lane, whose result is its pages."""

        async def work(ctx: JobContext) -> list[Any]:
            found = self.providers[LANE].search(ctx, query, limit, start)
            return [asdict(page) async for page in found]

        return await self.run(work, **options)

    async def run(self, work: Work, **options: Any) -> Job:
        """One job; `options` are those of the first, whose handler is that of all."""
        app, self._work = self.runner.app, work
        if "work" not in app.handlers:
            self.runner.register(lambda ctx: self._work(ctx), LANE, timeout=PATIENCE, **options)
        async with app, app.running():
            job = await app.enqueue("work")
            return await app.wait(job.id, timeout=PATIENCE)

    async def close(self) -> None:
        await self.providers.close()

    @property
    def loads(self) -> int:
        """Permits that were taken."""
        return self.runner.use_of(LANE)


def titles(job: Job) -> list[str]:
    assert job.state is JobState.COMPLETED, job.error
    return [finding["title"] for page in job.result for finding in page["findings"]]


def browsers(pid: int | None = None) -> list[psutil.Process]:
    """The processes of Chromium and its driver that hang on this process, or on another."""
    found = []
    for one in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # gone while we look
            if one.name().startswith(("chrom", "node")):
                found.append(one)
    return found


def wheels(count: int) -> list[str]:
    return [f"Wheel {number}" for number in range(count)]
