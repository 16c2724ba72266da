"""How well four processes use a lane, judged at the service: never above, hardly below."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.contenders import bare_client, penstock_lanes
from benchmarks.counting_server import CountingServer, most_in_window
from benchmarks.processes import WorkerProcess
from benchmarks.report import AtLeast, AtMost, Better, Figure, Result, TimesThePeer
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh

PROCESSES = 4
WARM_UP = 2.0
LATENCY = 0.1
LANES: dict[str, dict[str, Any]] = {
    "fifty": {"requests_per_interval": 50, "interval_seconds": 1.0, "max_parallel": 8},
    "twenty": {"requests_per_interval": 10, "interval_seconds": 0.5, "max_parallel": 4},
    "three": {"min_interval_seconds": 0.0, "max_parallel": 3},
}


def run(sizes: Sizes, folder: Path) -> list[Result]:
    place = fresh(folder)
    with CountingServer() as server:
        base = f"http://127.0.0.1:{server.port}"
        calls = {name: [name, f"{base}/{name}"] for name in LANES}
        calls["three"][1] += f"?latency={LATENCY}"
        settings = {"lanes": LANES, "calls": calls}
        asyncio.run(_fill(place, settings, sizes))
        slots = LANES["three"]["max_parallel"]
        bare = bare_client.command(place, f"{base}/bare?latency={LATENCY}", slots)
        commands = [penstock_lanes.command(place, settings)] * PROCESSES
        with ExitStack() as stack:
            # The bare client works in the same seconds, so that it meets the same machine.
            workers = [
                stack.enter_context(WorkerProcess(command, place)) for command in [*commands, bare]
            ]
            for worker in workers:
                worker.ready().go()
            time.sleep(WARM_UP)
            start = time.monotonic()
            time.sleep(sizes.lane_seconds)
            end = time.monotonic()
        seen = {
            name: [at for at in server.arrivals[f"/{name}"] if start <= at < end]
            for name in (*LANES, "bare")
        }
        return [*_rates(seen, end - start), _slots(seen, server, end - start)]


async def _fill(place: Path, settings: dict[str, Any], sizes: Sizes) -> None:
    async with penstock_lanes.build(place, settings) as app:
        for name in LANES:
            most = 70 * (sizes.lane_seconds + WARM_UP + 10)
            await app.enqueue_many(name, [None] * int(most))


def _rates(seen: dict[str, list[float]], elapsed: float) -> list[Result]:
    results = []
    for name in ("fifty", "twenty"):
        number = LANES[name]["requests_per_interval"]
        interval = LANES[name]["interval_seconds"]
        most = most_in_window(seen[name], interval)
        use = 100 * len(seen[name]) / (elapsed * number / interval)
        note = f"Judged at the service over {elapsed:.0f} s; at most {most} in a window."
        title = f"lane use, {PROCESSES} processes"
        what = f"{number} per {interval:g} s"
        figure = Figure.of("penstock", [use])
        results.append(Result(title, what, "%", figure, None, Better.MORE, AtLeast(97, "%"), note))
        results.append(
            Result(
                title,
                f"{what}: most in any window",
                "requests",
                Figure.of("penstock", [float(most)]),
                None,
                Better.LESS,
                AtMost(number, "requests"),
                series={what: _windows(seen[name], interval, elapsed)},
            )
        )
    return results


def _windows(times: list[float], interval: float, elapsed: float) -> list[tuple[float, float]]:
    """(its start, the requests in it) of a window of `interval` at each request, for a plot."""
    first = times[0]
    whole = [at for at in times if at - first <= elapsed - interval]
    return [(at - first, bisect_left(times, at + interval) - n) for n, at in enumerate(whole)]


def _slots(seen: dict[str, list[float]], server: CountingServer, elapsed: float) -> Result:
    """What binds is slots over the latency that a caller sees, which a bare client tells."""
    parallel, most = LANES["three"]["max_parallel"], server.most_open["/three"]
    assert most <= parallel, f"{most} requests were open at once in a lane of {parallel}"
    ours, bare = len(seen["three"]) / elapsed, len(seen["bare"]) / elapsed
    nominal = 100 * LATENCY / parallel
    return Result(
        f"lane use, {PROCESSES} processes",
        f"{parallel} at a time, {LATENCY * 1000:.0f} ms each",
        "requests/s",
        Figure.of("penstock", [ours]),
        Figure.of("a bare client", [bare]),
        Better.MORE,
        TimesThePeer(0.97),
        f"The peer is {parallel} coroutines in a process of their own that post to the same "
        f"service back to back, without a queue, in the same seconds. Of {parallel} slots over the "
        f"service's own {LATENCY * 1000:.0f} ms, penstock used {ours * nominal:.1f} % and the bare "
        f"client {bare * nominal:.1f} %. Never more than {most} at once.",
    )
