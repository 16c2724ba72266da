"""How well four processes use a lane, judged at the service: never above, hardly below."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.contenders import penstock_lanes
from benchmarks.counting_server import CountingServer, most_in_window
from benchmarks.processes import WorkerProcess
from benchmarks.report import AtLeast, AtMost, Better, Figure, Result
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
        with ExitStack() as stack:
            workers = [
                stack.enter_context(WorkerProcess(penstock_lanes.command(place, settings), place))
                for _ in range(PROCESSES)
            ]
            for worker in workers:
                worker.ready().go()
            time.sleep(WARM_UP)
            start = time.monotonic()
            time.sleep(sizes.lane_seconds)
            end = time.monotonic()
        seen = {
            name: [at for at in server.arrivals[f"/{name}"] if start <= at < end] for name in LANES
        }
        return [*_rates(seen, end - start), _slots(seen["three"], server, end - start)]


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
            )
        )
    return results


def _slots(seen: list[float], server: CountingServer, elapsed: float) -> Result:
    parallel, most = LANES["three"]["max_parallel"], server.most_open["/three"]
    assert most <= parallel, f"{most} requests were open at once in a lane of {parallel}"
    use = 100 * len(seen) * LATENCY / (elapsed * parallel)
    return Result(
        f"lane use, {PROCESSES} processes",
        f"{parallel} at a time, {LATENCY * 1000:.0f} ms each",
        "%",
        Figure.of("penstock", [use]),
        None,
        Better.MORE,
        AtLeast(97, "%"),
        f"Of {parallel} slots over the service's latency; never more than {most} at once.",
    )
