"""Limits of providers as their servers see them, whatever number of processes searches."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from penstock.model.lane import BUILT_IN, LaneConfig
from tests.support.provider_server import PATHS, ProviderServer
from tests.support.rate_windows import most_at_once, most_in_window
from tests.support.waiting import look_on, until
from tests.support.worker_processes import Farm

pytestmark = pytest.mark.alone

JITTER = 0.1
"""What two busy cores may add between a permit and the server: the pages of this test are large.
Over the whole time it counts once."""
ENOUGH = 0.25
"""The share of a rate that must be used, as in the tests of lanes."""


KEYS = ("requests_per_interval", "interval_seconds", "min_interval_seconds", "max_parallel")


def scaled(name: str, quicker: float) -> LaneConfig:
    """A built-in lane in a world that runs so much quicker."""
    lane = BUILT_IN[name]
    assert lane.interval_seconds
    assert lane.min_interval_seconds
    return replace(
        lane,
        interval_seconds=lane.interval_seconds / quicker,
        min_interval_seconds=lane.min_interval_seconds / quicker,
    )


def _between(arrivals: list[float], began: float, ended: float) -> float:
    """How many came in a second."""
    return sum(began <= at < ended for at in arrivals) / (ended - began)


async def test_two_processes_keep_the_limits_of_semantic_scholar_and_openalex(farm: Farm) -> None:
    """Semantic Scholar's 100 in 5 minutes, 3 s apart, one at a time, run a hundredfold quicker;
    OpenAlex's 10 a second, two at a time, as they are. Each search is of two pages."""
    lanes = {"semantic_scholar": scaled("semantic_scholar", 100), "openalex": BUILT_IN["openalex"]}
    farm.settings["lanes"] = {
        name: {key: getattr(lane, key) for key in KEYS} for name, lane in lanes.items()
    }
    farm.settings["lease_seconds"] = 60.0  # a pause of the machine is no death
    with ProviderServer(250) as server:
        server.delays["openalex"] = 0.15  # so that two would often be there at once
        bases = {"semantic_scholar": server.url("/scholar"), "openalex": server.url("/openalex")}
        async with farm.app("searching") as app:
            for name, base in bases.items():
                payload = {"provider": name, "base_url": base, "query": "wheels", "limit": 200}
                await app.enqueue_many("search", [payload] * 500)
            await asyncio.gather(farm.start("searching"), farm.start("searching"))
            await until(lambda: all(len(server.asked(name)) > 5 for name in bases), "searches")
            seen: dict[str, float] = {}
            for _ in range(5):  # the machine may pause, and then less is used
                began = time.monotonic()
                await look_on(5.0)
                ended = time.monotonic()
                seen = {
                    name: _between(server.arrivals(PATHS[name]), began, ended) for name in lanes
                }
                if all(rate >= ENOUGH / lanes[name].spacing for name, rate in seen.items()):
                    break
            failed = await app.jobs(states=["failed"])
            done = await app.jobs(states=["completed"], limit=500)

        assert failed == []
        assert {job.result for job in done} == {200}
        assert {job.attempts for job in done} == {1}
        assert {hit.status for hit in server.hits if hit.status is not None} == {200}
        for name, lane in lanes.items():
            arrivals = server.arrivals(PATHS[name])
            assert lane.interval_seconds
            assert lane.requests_per_interval
            window = lane.interval_seconds - JITTER
            # Who has a permit may be held up on the way: at most as many as may be there at once.
            late = lane.parallel
            assert most_in_window(arrivals, window) <= lane.requests_per_interval + late
            assert most_at_once(server.spans(PATHS[name])) <= lane.parallel
            took = arrivals[-1] - arrivals[0]
            assert (len(arrivals) - 1 - late) * lane.spacing <= took + JITTER
            assert seen[name] >= ENOUGH / lane.spacing
