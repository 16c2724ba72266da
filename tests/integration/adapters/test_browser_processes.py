"""The browser as its processes have it: how many tabs there are, and what is left when one dies."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import yaml

from penstock import JobState
from penstock.errors import ConfigError
from penstock.model.browser import BrowserConfig
from penstock.research.providers import open_providers
from tests.support.browser_searches import Visits, browsers, wheels
from tests.support.counting_server import Answer
from tests.support.handler_app import error_of
from tests.support.rate_windows import most_at_once
from tests.support.result_server import ResultServer
from tests.support.waiting import until
from tests.support.worker_processes import Farm

pytestmark = pytest.mark.usefixtures("chromium")


def configure(farm: Farm, results: ResultServer, tabs: int = 1) -> None:
    """Two engines in a config file that all processes read."""
    engine = results.settings("link")
    listed = {key: list(one) if isinstance(one, tuple) else one for key, one in engine.items()}
    config = {
        "browser": {"tabs": tabs, "engines": {"one": listed, "two": listed}},
        "outbound": {"fetch_allow": [f"127.0.0.1:{results.port}"]},
        "lanes": {"browser": {"min_interval_seconds": 0}, "browser.*": {"min_interval_seconds": 0}},
    }
    path = farm.folder / "penstock.yaml"
    path.write_text(yaml.safe_dump(config))
    farm.settings |= {"config_file": str(path), "lease_seconds": 30.0}


@pytest.mark.parametrize("tabs", [1, 2])
async def test_no_more_pages_are_open_than_there_are_tabs_in_all_processes_together(
    farm: Farm, results: ResultServer, tabs: int
) -> None:
    configure(farm, results, tabs)
    results.titles, results.delay = wheels(20), 0.3
    async with farm.app("browsing") as app:
        for kind in ("browser.one", "browser.two"):
            await app.enqueue_many(kind, [{"query": "wheels", "limit": 20}] * 3)
        await asyncio.gather(
            *(farm.start("browsing", kinds=[kind]) for kind in ("browser.one", "browser.two"))
        )
        await app.drain(timeout=90)
        done = await app.jobs(states=["completed"])
    assert [job.result for job in done] == [wheels(20)] * 6
    assert most_at_once(results.spans("/link")) == tabs
    assert len({note.pid for note in farm.side.notes()}) == 2


async def test_killed_worker_leaves_no_browser_and_its_search_is_done_by_another(
    farm: Farm, results: ResultServer
) -> None:
    configure(farm, results)
    results.titles = wheels(1)
    results.faults["/link"] = Answer(hang=True)
    async with farm.app("browsing") as app:
        job = await app.enqueue("browser.one", {"query": "wheels", "limit": 1})
        worker = await farm.start("browsing")
        await until(lambda: results.hits, "the search")
        left = browsers(worker.pid)
        assert len(left) > 2
        await worker.kill()
        results.faults.clear()
        await until(lambda: not any(map(psutil.Process.is_running, left)), "the browser to end")
        await farm.start("browsing")
        assert (await app.wait(job.id, timeout=60)).state is JobState.COMPLETED


def test_machine_without_chromium_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, results: ResultServer
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    providers = open_providers({}, browser=BrowserConfig(engines={"x": results.engine()}))
    with pytest.raises(ConfigError, match=r"no chromium, .* found: install it \(`apt-get install"):
        providers.check()


def test_program_that_is_named_and_missing_is_told(tmp_path: Path, results: ResultServer) -> None:
    config = BrowserConfig(executable=str(tmp_path / "none"), engines={"x": results.engine()})
    with pytest.raises(ConfigError, match="none' is not a program: install it"):
        open_providers({}, browser=config).check()


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, results: ResultServer) -> None:
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    providers = open_providers({}, browser=BrowserConfig(engines={"x": results.engine()}))
    with pytest.raises(ConfigError, match=r"pip install 'penstock\[browser\]'"):
        providers.check()


async def test_program_that_does_not_start_fails_the_search_and_not_the_worker(
    visits: Visits,
) -> None:
    visits.use(browser={"executable": "/bin/false"})
    kind, message = error_of(await visits.search(1))
    assert (kind, message.partition(":")[0]) == ("BrowserLost", "Chromium does not start")
    await until(lambda: not browsers(), "the driver to end")


async def test_keys_of_other_services_are_not_told_to_the_browser(
    visits: Visits, results: ResultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "s3cret")
    visits.use()
    await visits.search(1)
    told = []
    for one in browsers():
        with suppress(psutil.NoSuchProcess):  # that of a closed tab may go meanwhile
            told += [one.environ()] if one.name().startswith("chrom") else []
    assert told
    assert not any("A_KEY" in one for one in told)
