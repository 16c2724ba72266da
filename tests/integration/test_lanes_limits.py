"""Limits of lanes as a server sees them that counts, whatever number of processes asks."""

import asyncio
import time

import pytest

from penstock import JobContext, JobState
from tests.support.processes import Farm
from tests.support.server import Answer, CountingServer
from tests.support.waiting import look_on, until
from tests.support.windows import least_gap, most_at_once, most_in_window

pytestmark = pytest.mark.alone

ENOUGH = 0.5
"""The share of a limit that must be used; the benchmark asks for 0.97."""
JITTER = 0.04
"""What two busy cores may add between a permit and the server; `make bench` judges strictly."""
SOON = 5.0


class Measured:
    """What the server saw of each path during some seconds of steady work."""

    def __init__(self, server: CountingServer, start: float, end: float) -> None:
        self._server, self._start, self.end = server, start, end

    def arrivals(self, path: str) -> list[float]:
        return [at for at in self._server.arrivals(path) if self._start <= at < self.end]

    def per_second(self, path: str) -> float:
        return len(self.arrivals(path)) / (self.end - self._start)


async def measure(server: CountingServer, seconds: float, *paths: str) -> Measured:
    """Once every path is busy, look at it for some seconds."""
    await until(lambda: all(len(server.arrivals(path)) > 10 for path in paths), "steady work")
    start = time.monotonic()
    await look_on(seconds)
    return Measured(server, start, time.monotonic())


async def test_four_processes_keep_every_limit_of_several_lanes_and_use_them(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {
        "fifty": {
            "requests_per_interval": 50,
            "interval_seconds": 1.0,
            "min_interval_seconds": 0.02,
            "max_parallel": 8,
        },
        "twenty": {"requests_per_interval": 20, "interval_seconds": 0.5, "max_parallel": 8},
        "three": {"min_interval_seconds": 0.0, "max_parallel": 3},
    }
    server.answers["/three"] = Answer(delay=0.1)
    async with farm.app("laned") as app:
        for lane in ("fifty", "twenty", "three"):
            payload = {"lane": lane, "url": server.url(f"/{lane}")}
            await app.enqueue_many("call", [payload] * 500)
        await asyncio.gather(*(farm.start("laned") for _ in range(4)))
        seen = await measure(server, 4.0, "/fifty", "/twenty", "/three")
        jobs = await app.jobs(states=["failed"])

    assert jobs == []
    assert most_in_window(server.arrivals("/fifty"), 1.0 - JITTER) <= 50
    assert most_in_window(server.arrivals("/twenty"), 0.5 - JITTER) <= 20
    assert most_at_once(server.spans("/three")) <= 3
    assert seen.per_second("/fifty") >= ENOUGH * 50
    assert seen.per_second("/twenty") >= ENOUGH * 40
    assert seen.per_second("/three") >= ENOUGH * 3 / 0.1


async def test_slots_are_used_also_where_nothing_else_keeps_the_processes_awake(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"three": {"min_interval_seconds": 0.0, "max_parallel": 3}}
    server.answers["/three"] = Answer(delay=0.1)
    async with farm.app("laned") as app:
        payload = {"lane": "three", "url": server.url("/three")}
        await app.enqueue_many("call", [payload] * 300)
        await asyncio.gather(*(farm.start("laned") for _ in range(4)))
        seen = await measure(server, 3.0, "/three")

    assert most_at_once(server.spans("/three")) <= 3
    assert seen.per_second("/three") >= ENOUGH * 3 / 0.1


async def test_requests_that_fan_out_of_a_job_each_count_in_its_own_lane(
    farm: Farm, server: CountingServer
) -> None:
    rate = {"requests_per_interval": 20, "interval_seconds": 0.5, "max_parallel": 4}
    farm.settings["lanes"] = {"fan": rate, "pages": rate}
    async with farm.app("laned") as app:
        fan = {"lane": "fan", "url": server.url("/fan"), "times": 10}
        await app.enqueue_many("fan", [fan] * 40)
        pages = {"lane": "pages", "url": server.url("/pages"), "times": 5}
        await app.enqueue_many("call", [pages] * 80)
        await asyncio.gather(*(farm.start("laned") for _ in range(4)))
        seen = await measure(server, 3.0, "/fan", "/pages")

    for path in ("/fan", "/pages"):
        assert most_in_window(server.arrivals(path), 0.5 - JITTER) <= 20
        assert seen.per_second(path) >= ENOUGH * 40


async def test_permits_taken_inside_jobs_of_four_processes_keep_the_rate(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {
        "api": {"requests_per_interval": 20, "interval_seconds": 0.5, "max_parallel": 8}
    }
    async with farm.app("laned") as app:
        payload = {"lane": "api", "url": server.url("/api"), "times": 5}
        await app.enqueue_many("visit", [payload] * 80)
        await asyncio.gather(*(farm.start("laned") for _ in range(4)))
        seen = await measure(server, 3.0, "/api")
        failed = await app.jobs(states=["failed"])

    assert failed == []
    assert most_in_window(server.arrivals("/api"), 0.5 - JITTER) <= 20
    assert seen.per_second("/api") >= ENOUGH * 40


async def test_slots_wanted_by_permits_of_four_processes_are_kept_and_used(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"three": {"min_interval_seconds": 0.0, "max_parallel": 3}}
    server.answers["/three"] = Answer(delay=0.1)
    async with farm.app("laned") as app:
        payload = {"lane": "three", "url": server.url("/three"), "times": 5}
        await app.enqueue_many("visit", [payload] * 60)
        await asyncio.gather(*(farm.start("laned") for _ in range(4)))
        seen = await measure(server, 3.0, "/three")

    assert most_at_once(server.spans("/three")) <= 3
    assert seen.per_second("/three") >= ENOUGH * 3 / 0.1


async def test_permit_that_comes_too_late_is_taken_again(farm: Farm) -> None:
    """A handler blocks the event loop while others wait for their start times."""
    app = farm.bare(max_workers=8, lanes={"api": {"min_interval_seconds": 0.1, "max_parallel": 8}})
    starts: list[float] = []
    first = asyncio.Event()

    @app.job("ask")
    async def ask(ctx: JobContext) -> None:
        async with ctx.lanes.permit("api"):
            starts.append(time.monotonic())
            first.set()

    @app.job("block")
    async def block(ctx: JobContext) -> None:
        await first.wait()
        time.sleep(0.5)  # noqa: ASYNC251 (the mistake under test)

    async with app, app.running():
        await app.enqueue_many("ask", [None] * 6)
        await app.enqueue("block")
        await app.drain(timeout=10)
    assert len(starts) == 6
    assert least_gap(starts) >= 0.1 - JITTER


async def test_request_made_long_after_the_start_of_its_job_takes_a_permit_of_its_own(
    farm: Farm, server: CountingServer
) -> None:
    """Jobs prepare something first, and end up making their requests together."""
    app = farm.bare(max_workers=5, lanes={"api": {"min_interval_seconds": 0.2, "max_parallel": 5}})
    ready = asyncio.Barrier(4)

    @app.job("prepare", lane="api")
    async def prepare(ctx: JobContext) -> None:
        async with ready:
            pass
        await ctx.http.get(server.url("/api"))

    async with app, app.running():
        await app.enqueue_many("prepare", [None] * 4)
        await app.drain(timeout=10)
    assert len(server.arrivals("/api")) == 4
    assert least_gap(server.arrivals("/api")) >= 0.2 - JITTER


async def test_job_of_several_requests_is_done_in_a_slow_lane_of_a_quicker_parent(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {
        "all": {"min_interval_seconds": 0.02, "max_parallel": 10},
        "child": {"min_interval_seconds": 0.3, "max_parallel": 2, "parent": "all"},
    }
    payload = {"lane": "child", "url": server.url("/child"), "times": 3}
    async with farm.app("laned") as app, app.running():
        job = await app.enqueue("call", payload)
        done = await app.wait(job.id, timeout=SOON)
    assert (done.state, done.attempts) == (JobState.COMPLETED, 1)
    assert least_gap(server.arrivals("/child")) >= 0.3 - JITTER


async def test_lane_is_used_while_jobs_without_one_keep_the_process_busy(farm: Farm) -> None:
    app = farm.bare(
        lanes={"api": {"requests_per_interval": 20, "interval_seconds": 0.5, "max_parallel": 4}}
    )
    starts: list[float] = []
    ends: list[float] = []

    @app.job("quick")
    async def quick(ctx: JobContext) -> None:
        ends.append(time.monotonic())

    @app.job("rated", lane="api")
    async def rated(ctx: JobContext) -> None:
        starts.append(time.monotonic())

    async with app:
        await app.enqueue_many("quick", [None] * 20_000)
        await app.enqueue_many("rated", [None] * 400)
        async with app.running():
            await until(lambda: len(starts) >= 40, "the lane to be used")
            busy = [at for at in ends if starts[0] <= at <= starts[-1]]
    assert len(busy) > 1000, "there was other work all the time"
    assert 39 / (starts[39] - starts[0]) >= 0.8 * 40


async def test_limits_changed_by_hand_hold_for_every_process_and_those_that_start_later(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"pages": {"min_interval_seconds": 0.01, "max_parallel": 8}}
    server.answers["/pages"] = Answer(delay=0.1)
    async with farm.app("laned") as app:
        payload = {"lane": "pages", "url": server.url("/pages")}
        await app.enqueue_many("call", [payload] * 1000)
        await asyncio.gather(*(farm.start("laned") for _ in range(2)))
        await until(lambda: len(server.arrivals("/pages")) > 30, "steady work")
        assert most_at_once(server.spans("/pages")) > 2

        limits = {"requests_per_interval": 10, "interval_seconds": 0.5, "max_parallel": 2}
        await app.limit_lane("pages", limits)
        changed = time.monotonic()
        await farm.start("laned")  # which configures the lane
        await look_on(2.5)
        (lane,) = [one for one in await app.lane_infos() if one.name == "pages"]

    # What had started, or was about to, is from before.
    settled = changed + 0.1 + JITTER + 0.05
    after = [span for span in server.spans("/pages") if span[0] > settled]
    assert lane.overridden
    assert most_at_once(after) <= 2
    assert most_in_window([start for start, _ in after], 0.5 - JITTER) <= 10
    assert len(after) >= ENOUGH * 20 * 1.5, "and work goes on"
