"""Limits of lanes as a server sees them that counts, whatever number of processes asks."""

import asyncio
import time
from bisect import bisect_left

import pytest

from penstock import JobContext, JobState
from tests.support.counting_server import Answer, CountingServer
from tests.support.rate_windows import least_gap, most_at_once, most_in_window, usual_in_window
from tests.support.waiting import look_on, until
from tests.support.worker_processes import Farm

pytestmark = pytest.mark.alone

ENOUGH = 0.25
"""The share of a limit that must be used, in the best second there is; where others need the cores
most permits come too late. The benchmark asks for 0.97 all the time."""
JITTER = 0.04
"""What two busy cores may add between a permit and the server; `make bench` judges strictly."""
SOON = 60.0
SETTLED = 3.0
"""Seconds after which nothing is under way any more that was granted before."""


@pytest.fixture
def farm(farm: Farm) -> Farm:
    """Nobody is taken for frozen who only had to wait for a core."""
    farm.settings["lease_seconds"] = 60.0
    return farm


async def use(server: CountingServer, **per_second: float) -> None:
    """Wait until each path has been asked so often in a second, and then some: also what is done
    to the limits takes its time."""

    async def used() -> bool:
        await look_on(0.2)
        most = {path: most_in_window(server.arrivals(f"/{path}"), 1.0) for path in per_second}
        return all(most[path] >= ENOUGH * wanted for path, wanted in per_second.items())

    await until(used, f"enough of {per_second} to be used")
    await look_on(2.0)


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
        await use(server, fifty=50, twenty=40, three=3 / 0.1)
        jobs = await app.jobs(states=["failed"])

    assert jobs == []
    assert usual_in_window(server.arrivals("/fifty"), 1.0 - JITTER) <= 50
    assert usual_in_window(server.arrivals("/twenty"), 0.5 - JITTER) <= 20
    assert most_at_once(server.spans("/three")) <= 3


async def test_slots_are_used_also_where_nothing_else_keeps_the_processes_awake(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"three": {"min_interval_seconds": 0.0, "max_parallel": 3}}
    server.answers["/three"] = Answer(delay=0.1)
    async with farm.app("laned") as app:
        payload = {"lane": "three", "url": server.url("/three")}
        await app.enqueue_many("call", [payload] * 300)
        await asyncio.gather(*(farm.start("laned") for _ in range(4)))
        await use(server, three=3 / 0.1)

    assert most_at_once(server.spans("/three")) <= 3


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
        await use(server, fan=40, pages=40)

    for path in ("/fan", "/pages"):
        assert usual_in_window(server.arrivals(path), 0.5 - JITTER) <= 20


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
        await use(server, api=40)
        failed = await app.jobs(states=["failed"])

    assert failed == []
    assert usual_in_window(server.arrivals("/api"), 0.5 - JITTER) <= 20


async def test_slots_wanted_by_permits_of_four_processes_are_kept_and_used(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"three": {"min_interval_seconds": 0.0, "max_parallel": 3}}
    server.answers["/three"] = Answer(delay=0.1)
    async with farm.app("laned") as app:
        payload = {"lane": "three", "url": server.url("/three"), "times": 5}
        await app.enqueue_many("visit", [payload] * 60)
        await asyncio.gather(*(farm.start("laned") for _ in range(4)))
        await use(server, three=3 / 0.1)

    assert most_at_once(server.spans("/three")) <= 3


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
        await app.drain(timeout=SOON)
    assert len(starts) == 6
    assert least_gap(starts) >= 0.1 - JITTER


async def test_request_made_long_after_the_start_of_its_job_takes_a_permit_of_its_own(
    farm: Farm, server: CountingServer
) -> None:
    """Jobs prepare something first, and end up making their requests together."""
    app = farm.bare(max_workers=5, lanes={"api": {"min_interval_seconds": 1.5, "max_parallel": 5}})
    ready = asyncio.Barrier(3)

    @app.job("prepare", lane="api")
    async def prepare(ctx: JobContext) -> None:
        async with ready:
            pass
        await ctx.http.get(server.url("/api"))

    async with app, app.running():
        await app.enqueue_many("prepare", [None] * 3)
        await app.drain(timeout=SOON)
    assert len(server.arrivals("/api")) == 3
    assert least_gap(server.arrivals("/api")) >= 0.3, "not together, however late they are"


async def test_job_of_several_requests_is_done_in_a_slow_lane_of_a_quicker_parent(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {
        "all": {"min_interval_seconds": 0.02, "max_parallel": 10},
        "child": {"min_interval_seconds": 1.5, "max_parallel": 2, "parent": "all"},
    }
    payload = {"lane": "child", "url": server.url("/child"), "times": 3}
    async with farm.app("laned") as app, app.running():
        job = await app.enqueue("call", payload)
        done = await app.wait(job.id, timeout=SOON)
    assert (done.state, done.attempts) == (JobState.COMPLETED, 1)
    assert least_gap(server.arrivals("/child")) >= 0.3, "not together, however late they are"


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

            def used() -> bool:
                """Enough of what the lane allows, with other work all the time."""
                seconds = 20 / (ENOUGH * 40)
                return any(
                    last - first <= seconds
                    and bisect_left(ends, last) - bisect_left(ends, first) > 200
                    for first, last in zip(starts, starts[20:], strict=False)
                )

            await until(used, "the lane to be used")


async def test_limits_changed_by_hand_hold_for_every_process_and_those_that_start_later(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"pages": {"min_interval_seconds": 0.01, "max_parallel": 8}}
    server.answers["/pages"] = Answer(delay=0.1)
    async with farm.app("laned") as app:
        payload = {"lane": "pages", "url": server.url("/pages")}
        await app.enqueue_many("call", [payload] * 1000)
        await asyncio.gather(*(farm.start("laned") for _ in range(2)))
        await until(lambda: most_at_once(server.spans("/pages")) > 2, "steady work")

        limits = {"requests_per_interval": 10, "interval_seconds": 0.5, "max_parallel": 2}
        await app.limit_lane("pages", limits)
        changed = time.monotonic()
        await farm.start("laned")  # which configures the lane
        await look_on(SETTLED)

        def goes_on() -> bool:
            return sum(at > changed + SETTLED for at in server.arrivals("/pages")) >= 40

        await until(goes_on, "work to go on")
        (lane,) = [one for one in await app.lane_infos() if one.name == "pages"]

    # What had started, or was about to, is from before.
    after = [span for span in server.spans("/pages") if span[0] > changed + SETTLED]
    assert lane.overridden
    assert most_at_once(after) <= 2
    assert usual_in_window([start for start, _ in after], 0.5 - JITTER) <= 10
