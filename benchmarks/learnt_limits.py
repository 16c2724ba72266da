"""How well `max_parallel: auto` follows a limit that is unknown, and moves: four processes, judged
at the service, beside the same lane whose limit is always set to what the service takes."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.contenders import penstock_lanes
from benchmarks.counting_server import CountingServer
from benchmarks.processes import WorkerProcess
from benchmarks.report import AtMost, Better, Figure, Result, TimesThePeer
from benchmarks.served.servers import Postgres, Valkey
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh

PROCESSES = 4
WORKERS = 20
LIMITS = (39, 12, 60)
LATENCY = 0.25
LANE = "model"
PATH = f"/{LANE}"


class Course(NamedTuple):
    """What came of a lane in one run through the limits."""

    rate: float
    """Requests answered per second."""
    errors: float
    """The share of requests that was refused, in percent."""


def run(sizes: Sizes, folder: Path) -> list[Result]:
    results = _on("SQLite", None, sizes, folder)
    with Valkey() as valkey:
        results += _on("Valkey", valkey.fresh(), sizes, folder)
    with Postgres() as postgres:
        results += _on("PostgreSQL", postgres.fresh(), sizes, folder)
    return results


def _on(queue: str, url: str | None, sizes: Sizes, folder: Path) -> list[Result]:
    known, learnt = (_course(auto, url, sizes, fresh(folder)) for auto in (False, True))
    title = f"learnt limits, {PROCESSES} processes"
    seconds = f"{sizes.limit_seconds:g} s each"
    limits = ", ".join(map(str, LIMITS))
    return [
        Result(
            title,
            f"{queue}: a limit of {limits} at a time, {seconds}",
            "requests/s",
            Figure.of("auto", [learnt.rate]),
            Figure.of("the limit known", [known.rate]),
            Better.MORE,
            TimesThePeer(0.85),
            "The peer is the same lane, which an operator limits to what the service takes at the "
            f"moment it changes. An answer takes {LATENCY * 1000:.0f} ms.",
        ),
        Result(
            title,
            f"{queue}: requests refused",
            "%",
            Figure.of("auto", [learnt.errors]),
            Figure.of("the limit known", [known.errors]),
            Better.LESS,
            AtMost(1, "%"),
        ),
    ]


def _course(auto: bool, url: str | None, sizes: Sizes, place: Path) -> Course:
    name = f"{LANE}-{auto}"
    path = f"/{name}"
    with CountingServer() as server:
        lane = {"min_interval_seconds": 0.0, "max_parallel": "auto" if auto else LIMITS[0]}
        calls = {name: [name, f"http://127.0.0.1:{server.port}{path}?latency={LATENCY}"]}
        settings: dict[str, Any] = {"lanes": {name: lane}, "calls": calls, "max_workers": WORKERS}
        if url is not None:
            settings["url"] = url
        server.limits[path] = LIMITS[0]
        asyncio.run(_fill(place, settings, name, sizes))
        command = penstock_lanes.command(place, settings)
        with ExitStack() as stack:
            workers = [stack.enter_context(WorkerProcess(command, place)) for _ in range(PROCESSES)]
            for worker in workers:
                worker.ready().go()
            start = time.monotonic()
            asyncio.run(_move(server, path, None if auto else name, place, settings, sizes))
            elapsed = time.monotonic() - start
            served, refused = len(server.arrivals[path]), server.refused[path]
    return Course(served / elapsed, 100 * refused / max(1, served + refused))


async def _fill(place: Path, settings: dict[str, Any], name: str, sizes: Sizes) -> None:
    async with penstock_lanes.build(place, settings) as app:
        most = sum(LIMITS) / LATENCY * sizes.limit_seconds * 1.2 + 500
        await app.enqueue_many(name, [None] * int(most))


async def _move(
    server: CountingServer,
    path: str,
    known: str | None,
    place: Path,
    settings: dict[str, Any],
    sizes: Sizes,
) -> None:
    async with penstock_lanes.build(place, settings) as app:
        for limit in LIMITS:
            if known is not None:
                await app.limit_lane(known, {"max_parallel": limit})
            server.limits[path] = limit
            await asyncio.sleep(sizes.limit_seconds)
