"""Jobs with steps in one process, measured in there.

It is told what to measure, and tells its figures, as a line of JSON. Also no-op jobs, for which it
runs with older code, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from penstock import Penstock

PATIENCE = 600.0
SETTLE_SECONDS = 5.0
SLEEP_SECONDS = 3600.0
IN_TURN = 5
LINE = json.dumps("x" * 100)
"""About what a step's row has besides its result."""


async def noop(n: int) -> int:
    return n


async def together(url: str, jobs: int, steps: int) -> list[float]:
    """Steps a second of so many jobs at a time, their start and end included."""
    app = Penstock(url, max_workers=jobs)

    @app.job("way")
    async def way(ctx: Any, count: int) -> int:
        for n in range(count):
            await ctx.step("noop", noop, n)
        return count

    async with app.running():
        begun = time.perf_counter()
        made = await app.enqueue_many("way", [{"count": steps}] * jobs)
        for job in made:
            await app.result(job.id, timeout=PATIENCE)
        return [jobs * steps / (time.perf_counter() - begun)]


async def alone(url: str, steps: int) -> list[list[float]]:
    """Milliseconds of each step of one job that does one after another; and of each durable commit
    of one row to the same store without anything around it, in turns with them."""
    app = Penstock(url)
    commit = await _commits(url)

    @app.job("way")
    async def way(ctx: Any, count: int) -> list[list[float]]:
        await commit(-1)  # its table is made
        ours: list[float] = []
        bare: list[float] = []
        for start in range(0, count, IN_TURN):
            turn = range(start, start + IN_TURN)
            ours += [await _timed(partial(ctx.step, "noop", noop, n)) for n in turn]
            bare += [await _timed(partial(commit, n)) for n in turn]
        return [ours, bare]

    async with app.running():
        job = await app.enqueue("way", {"count": steps})
        return list(await app.result(job.id, timeout=PATIENCE))


async def _timed(call: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await call()
    return (time.perf_counter() - begun) * 1000


async def _commits(url: str) -> Callable[[int], Awaitable[object]]:
    """Commits a row with this number. SQLite blocks the loop meanwhile, without any thread."""
    if url.startswith("sqlite"):
        return _commits_to_file(url.removeprefix("sqlite:///"))
    if url.startswith("postgres"):
        import asyncpg

        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TABLE bare (n int PRIMARY KEY, line text)")
        insert = await connection.prepare("INSERT INTO bare VALUES ($1, $2)")
        return lambda n: insert.fetch(n, LINE)
    import redis.asyncio

    client = redis.asyncio.Redis.from_url(url)
    return lambda n: client.hset("bare", str(n), LINE)


def _commits_to_file(path: str) -> Callable[[int], Awaitable[object]]:
    file = sqlite3.connect(path, isolation_level=None, timeout=60)

    async def commit(n: int) -> None:
        if n < 0:  # the file is there now, with its journal
            file.execute("PRAGMA synchronous = FULL")
            file.execute("CREATE TABLE bare (n INTEGER PRIMARY KEY, line TEXT)")
        file.execute("BEGIN IMMEDIATE")
        file.execute("INSERT INTO bare VALUES (?, ?)", (n, LINE))
        file.execute("COMMIT")

    return commit


async def resume(url: str, records: int) -> list[float]:
    """Seconds from a run's first line until it has all records of the run before."""
    app = Penstock(url, retry_base_seconds=0.01, max_steps=max(records, 1))

    @app.job("way", timeout=PATIENCE)
    async def way(ctx: Any, count: int) -> float:
        begun = time.perf_counter()
        if ctx.attempt == 1:
            await asyncio.gather(*(ctx.step("noop", noop, n) for n in range(count)))
            raise ConnectionError("again")
        for n in range(count):
            await ctx.step("noop", noop, n)
        return time.perf_counter() - begun

    async with app.running():
        job = await app.enqueue("way", {"count": records})
        return [await app.result(job.id, timeout=PATIENCE)]


async def asleep(url: str, jobs: int, woken: int, seconds: float) -> list[float]:
    """CPU in % of a core while so many jobs sleep; then how late each of a few others wakes up."""
    app = Penstock(url, max_workers=100)

    @app.job("sleeper")
    async def sleeper(ctx: Any, at: float | None) -> float:
        await ctx.sleep(SLEEP_SECONDS if at is None else at - time.time())
        return 0.0 if at is None else time.time() - at

    async with app.running():
        for start in range(0, jobs, 10_000):
            await app.enqueue_many("sleeper", [{"at": None}] * min(10_000, jobs - start))
        while not await _all_asleep(app):  # noqa: ASYNC110 (a look from outside)
            await asyncio.sleep(0.5)
        await asyncio.sleep(SETTLE_SECONDS)
        begun, before = time.monotonic(), _cpu()
        await asyncio.sleep(seconds)
        share = 100 * (_cpu() - before) / (time.monotonic() - begun)
        first = time.time() + 5.0
        times = [{"at": first + n * 5.0 / woken} for n in range(woken)]
        some = await app.enqueue_many("sleeper", times, priority="high")
        return [share, *[await app.result(job.id, timeout=PATIENCE) for job in some]]


async def _all_asleep(app: Penstock) -> bool:
    """Whether all have suspended: they are run in order, so the newest is the last. One that waits
    for a worker says so, too."""
    running = await app.jobs(states=["running"], limit=1)
    newest = await app.jobs(limit=1)
    return not running and all("sleeps" in (job.waiting_for or "") for job in newest)


def _cpu() -> float:
    times = os.times()
    return times.user + times.system


async def noops(url: str, jobs: int) -> list[float]:
    """No-op jobs a second, enqueued before, in a process that has run one: what is imported with
    the first differs between versions."""
    app = Penstock(url)

    @app.job("noop")
    async def one(ctx: Any, n: int) -> int:
        return n

    async with app.running():
        await app.result((await app.enqueue("noop", {"n": 0})).id, timeout=PATIENCE)
    async with app:
        for start in range(0, jobs, 10_000):
            count = min(10_000, jobs - start)
            await app.enqueue_many("noop", [{"n": n} for n in range(count)])
    begun = time.perf_counter()
    async with app.running():
        await app.drain()
        return [jobs / (time.perf_counter() - begun)]


MEASURES: dict[str, Callable[..., Coroutine[Any, Any, Any]]] = {
    measure.__name__: measure for measure in (together, alone, resume, asleep, noops)
}

if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(asyncio.run(MEASURES[asked.pop("measure")](**asked))))
