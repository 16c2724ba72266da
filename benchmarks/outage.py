"""A dependency that is away: tries made, CPU used, attempts spent, and how soon work resumes."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.contenders import penstock_lanes, poller
from benchmarks.counting_server import CountingServer
from benchmarks.processes import WorkerProcess, wait_until
from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh

JOBS = 100
POLL_SECONDS = 0.1
"""How often a worker of the plain poller tries again."""


def run(sizes: Sizes, folder: Path) -> list[Result]:
    place = fresh(folder)
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    settings: dict[str, Any] = {
        "lanes": {"service": {"min_interval_seconds": 0.0, "max_parallel": 4}},
        "calls": {"call": ["service", f"{base}/call"]},
    }
    asyncio.run(_fill(place, settings))
    plain = poller.command(place, f"{base}/poll", JOBS, POLL_SECONDS)
    with (
        WorkerProcess(penstock_lanes.command(place, settings), place) as worker,
        WorkerProcess(plain, place) as polling,
    ):
        worker.ready().go()
        polling.ready()
        wait_until(lambda: _lane(place)[0] > 0, "the breaker to open", worker)
        polling.go()
        watched, start = (worker, polling), time.monotonic()
        before = [process.cpu_seconds() for process in watched]
        time.sleep(sizes.outage_seconds)
        elapsed = time.monotonic() - start
        cpu = [
            100 * (process.cpu_seconds() - earlier) / elapsed
            for process, earlier in zip(watched, before, strict=True)
        ]
        tries = _lane(place)[0]
        with CountingServer(port) as server:
            back = time.monotonic()
            wait_until(lambda: _completed(place) == JOBS, "the last job", worker)
            last = time.monotonic() - back
            wait_until((place / poller.TRIES).exists, "the poller's last item", polling)
            first = [server.arrivals[path][0] - back for path in ("/call", "/poll")]
    return _results(
        sizes.outage_seconds,
        tries=(tries, poller.failed_tries(place)),
        cpu=cpu,
        first=first,
        last=last,
        attempts=_most_attempts(place),
    )


def _results(
    away: float,
    *,
    tries: Sequence[float],
    cpu: Sequence[float],
    first: Sequence[float],
    last: float,
    attempts: int,
) -> list[Result]:
    """Of each pair, ours is the first and the poller's the second."""
    title = "outage of a dependency"
    setting = f"{away:g} s away, {JOBS} jobs waiting"
    ladder = (
        "The breaker's ladder: 1, 2, 4 ... s. The target is for 5 minutes. The peer is the usual "
        f"hand-written loop, {poller.WORKERS} workers that try again every {POLL_SECONDS:g} s, in "
        "the same seconds against the same service."
    )
    return [
        Result(title, f"tries, {setting}", "tries", *_pair(tries), Better.LESS,
               AtMost(10, "tries"), ladder),
        Result(title, f"CPU, {setting}", "%", *_pair(cpu), Better.LESS, AtMost(1.0, "%")),
        Result(title, "attempts spent on it, most of any job", "attempts",
               Figure.of("penstock", [float(attempts - 1)]), None, Better.LESS,
               AtMost(0, "attempts")),
        Result(title, "from its return to the first request", "s", *_pair(first), Better.LESS,
               AtMost(5.0, "s"),
               f"And {last:.2f} s to the last of {JOBS} jobs. Noticed by the probe; a poller is "
               "sooner by as much as it asks more often."),
    ]  # fmt: skip


def _pair(values: Sequence[float]) -> tuple[Figure, Figure]:
    ours, polls = values
    return Figure.of("penstock", [float(ours)]), Figure.of("a poller", [float(polls)])


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


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
