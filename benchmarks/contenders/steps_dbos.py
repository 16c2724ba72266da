"""The same of DBOS, which calls jobs workflows: in its own process, and under a Python of its own.

On SQLite it leaves the journal as it is in the file; `wal` makes it what Penstock's is. It syncs at
each commit either way.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from contextlib import closing
from typing import Any

from dbos import DBOS


def do_nothing(n: int) -> int:
    return n


async def do_nothing_async(n: int) -> int:
    return n


noop: Any = DBOS.step()(do_nothing)
noop_async: Any = DBOS.step()(do_nothing_async)


def go(count: int) -> list[float]:
    told = []
    for n in range(count):
        begun = time.perf_counter()
        noop(n)
        told.append((time.perf_counter() - begun) * 1000)
    return [*told, time.perf_counter()]


async def go_async(count: int) -> list[float]:
    told = []
    for n in range(count):
        begun = time.perf_counter()
        await noop_async(n)
        told.append((time.perf_counter() - begun) * 1000)
    return [*told, time.perf_counter()]


way: Any = DBOS.workflow()(go)
way_async: Any = DBOS.workflow()(go_async)


async def together(jobs: int, steps: int, threads: bool) -> list[float]:
    """Until the last step has returned; what follows is not counted."""
    begun = time.perf_counter()
    if threads:
        started = [DBOS.start_workflow(way, steps) for _ in range(jobs)]
        ends = [await asyncio.to_thread(one.get_result) for one in started]
    else:
        handles = await asyncio.gather(
            *(DBOS.start_workflow_async(way_async, steps) for _ in range(jobs))
        )
        ends = await asyncio.gather(*(one.get_result() for one in handles))
    return [jobs * steps / (max(end[-1] for end in ends) - begun)]


async def alone(steps: int, threads: bool) -> list[float]:
    """Milliseconds of each step."""
    if threads:
        return list(await asyncio.to_thread(way, steps))[:-1]
    return list(await way_async(steps))[:-1]


async def main(measure: str, url: str, pool: int, wal: bool = False, **asked: Any) -> None:
    if wal:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.execute("PRAGMA journal_mode = WAL")
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url,
            "sys_db_pool_size": pool,
            "max_executor_threads": max(pool, 100),
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    told = await (together(**asked) if measure == "together" else alone(**asked))
    print(json.dumps(told), flush=True)
    DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
