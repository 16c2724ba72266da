"""A dependency that is away: tries made, CPU used, attempts spent, and how soon work resumes."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.contenders import penstock_lanes
from benchmarks.counting_server import CountingServer
from benchmarks.processes import WorkerProcess, wait_until
from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh

JOBS = 100
POLL_SECONDS = 0.1
"""What a plain poller does: it asks this often."""


def run(sizes: Sizes, folder: Path) -> list[Result]:
    place = fresh(folder)
    port = _free_port()
    settings: dict[str, Any] = {
        "lanes": {"service": {"min_interval_seconds": 0.0, "max_parallel": 4}},
        "calls": {"call": ["service", f"http://127.0.0.1:{port}/call"]},
    }
    asyncio.run(_fill(place, settings))
    with WorkerProcess(penstock_lanes.command(place, settings), place) as worker:
        worker.ready().go()
        wait_until(lambda: _lane(place)[0] > 0, "the breaker to open", worker)
        before, start = worker.cpu_seconds(), time.monotonic()
        time.sleep(sizes.outage_seconds)
        cpu = 100 * (worker.cpu_seconds() - before) / (time.monotonic() - start)
        tries = _lane(place)[0]
        with CountingServer(port) as server:
            back = time.monotonic()
            wait_until(lambda: _completed(place) == JOBS, "the last job", worker)
            first = server.arrivals["/call"][0] - back
            last = time.monotonic() - back
    attempts = _most_attempts(place)
    polls = sizes.outage_seconds / POLL_SECONDS
    title = "outage of a dependency"
    away = f"{sizes.outage_seconds:g} s away, {JOBS} jobs waiting"
    return [
        Result(
            title,
            f"tries, {away}",
            "tries",
            Figure.of("penstock", [float(tries)]),
            Figure.of(f"a poller every {POLL_SECONDS:g} s (computed)", [polls]),
            Better.LESS,
            AtMost(10, "tries"),
            "The breaker's ladder: 1, 2, 4 ... s. The target is for 5 minutes.",
        ),
        Result(title, f"CPU, {away}", "%", Figure.of("penstock", [cpu]), None, Better.LESS,
               AtMost(1.0, "%")),
        Result(title, "attempts spent on it, most of any job", "attempts",
               Figure.of("penstock", [float(attempts - 1)]), None, Better.LESS,
               AtMost(0, "attempts")),
        Result(title, "from its return to the first request", "s",
               Figure.of("penstock", [first]), None, Better.LESS, AtMost(5.0, "s"),
               f"And {last:.2f} s to the last of {JOBS} jobs. Noticed by the probe."),
    ]  # fmt: skip


async def _fill(place: Path, settings: dict[str, Any]) -> None:
    async with penstock_lanes.build(place, settings) as app:
        await app.enqueue_many("call", [None] * JOBS)


def _query(place: Path, statement: str) -> tuple[Any, ...]:
    with closing(sqlite3.connect(place / penstock_lanes.FILE, timeout=10)) as connection:
        row: tuple[Any, ...] = connection.execute(statement).fetchone()
        return row


def _lane(place: Path) -> tuple[Any, ...]:
    """How far up the ladder the breaker is: a step per try that failed."""
    return _query(place, "SELECT coalesce(max(step), 0) FROM lanes WHERE name = 'service'")


def _completed(place: Path) -> int:
    count: int = _query(place, "SELECT count(*) FROM jobs WHERE state = 'completed'")[0]
    return count


def _most_attempts(place: Path) -> int:
    most: int = _query(place, "SELECT max(attempts) FROM jobs")[0]
    return most


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
