"""An outage and its recovery, moment by moment: for a plot, and what another lane lost by it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from benchmarks.contenders import penstock_lanes
from benchmarks.counting_server import CountingServer
from benchmarks.outage import free_port
from benchmarks.processes import WorkerProcess, wait_until
from benchmarks.report import AtLeast, AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh

NAME = "an outage and its recovery"
PER_SECOND = 20
STEP = 0.5
"""Seconds of a point of the plot."""
UP_SECONDS = 4.0
SHARE = 90.0
"""Percent of its work that a lane does while another is away; the rest is for the edges of time."""


def run(sizes: Sizes, folder: Path) -> list[Result]:
    away = min(sizes.outage_seconds, 20.0)
    place = fresh(folder)
    ports = {"frail": free_port(), "sound": free_port()}
    lane = {"requests_per_interval": PER_SECOND, "interval_seconds": 1.0, "max_parallel": 4}
    settings: dict[str, Any] = {
        "lanes": dict.fromkeys(ports, lane),
        "calls": {name: [name, f"http://127.0.0.1:{port}/"] for name, port in ports.items()},
    }
    most = int(PER_SECOND * (away + 4 * UP_SECONDS + 10))
    asyncio.run(_fill(place, settings, most))
    with ExitStack() as stack:
        stack.enter_context(CountingServer(ports["sound"]))
        worker = stack.enter_context(WorkerProcess(penstock_lanes.command(place, settings), place))
        with CountingServer(ports["frail"]):
            worker.ready().go()
            wait_until(lambda: len(_done(place, "frail")) > 2, "the first jobs", worker)
            start = time.time()
            time.sleep(UP_SECONDS)
        gone = time.time()
        time.sleep(away)
        with CountingServer(ports["frail"]):
            back = time.time()
            wait_until(lambda: _done(place, "frail")[-1] > back, "the return", worker)
            time.sleep(UP_SECONDS)
            end = time.time()
            worker.kill()  # there is work left, which is not worth waiting for
    done = {name: _done(place, name) for name in ports}
    return _results(done, start, gone, back, end)


def _results(
    done: dict[str, list[float]], start: float, gone: float, back: float, end: float
) -> list[Result]:
    during = sum(gone <= at < back for at in done["sound"])
    share = 100 * during / ((back - gone) * PER_SECOND)
    first = next(at for at in done["frail"] if at > back) - back
    series = {
        "jobs a second, the lane that is away": _course(done["frail"], start, end),
        "jobs a second, another lane": _course(done["sound"], start, end),
        "away": [(gone - start, 1.0), (back - start, 0.0)],
    }
    setting = f"{back - gone:.0f} s away, {PER_SECOND} jobs a second in each of two lanes"
    return [
        Result(NAME, f"another lane meanwhile, {setting}", "%", Figure.of("penstock", [share]),
               None, Better.MORE, AtLeast(SHARE, "%"),
               "Of the jobs its own limit allows in that time.", series=series),
        Result(NAME, "from its return to the first job done", "s",
               Figure.of("penstock", [first]), None, Better.LESS, AtMost(5.0, "s")),
    ]  # fmt: skip


def _course(times: Sequence[float], start: float, end: float) -> list[tuple[float, float]]:
    """(seconds, jobs a second) of each step."""
    steps = int((end - start) / STEP)
    points = []
    for step in range(steps):
        begin = start + step * STEP
        count = sum(begin <= at < begin + STEP for at in times)
        points.append((step * STEP, count / STEP))
    return points


async def _fill(place: Path, settings: dict[str, Any], count: int) -> None:
    async with penstock_lanes.build(place, settings) as app:
        for name in settings["calls"]:
            await app.enqueue_many(name, [None] * count)


def _done(place: Path, kind: str) -> list[float]:
    """When each job of a kind was done, in order."""
    statement = (
        "SELECT finished_at FROM jobs WHERE kind = ? AND state = 'completed' ORDER BY finished_at"
    )
    with closing(sqlite3.connect(place / penstock_lanes.FILE, timeout=10)) as connection:
        return [at for (at,) in connection.execute(statement, (kind,))]
