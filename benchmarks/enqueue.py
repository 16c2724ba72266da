"""Enqueued jobs per second, by one process: in batches, one after the other, and many at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.contenders.base import Client, Contender
from benchmarks.contenders.huey_sqlite import HueySqlite
from benchmarks.contenders.penstock_sqlite import PenstockSqlite
from benchmarks.report import Result, TimesThePeer
from benchmarks.sizes import Sizes
from benchmarks.turns import best, fresh, in_turn

CALLERS = 100

Load = Callable[[Client, int], Awaitable[None]]


def run(sizes: Sizes, folder: Path) -> list[Result]:
    ours = PenstockSqlite()
    synced = HueySqlite(True, name="huey, fsync")
    loose = HueySqlite(False, name="huey, no fsync")

    def batch_rate(contender: Contender) -> float:
        count = sizes.batch_jobs if contender is ours else sizes.peer_jobs
        return asyncio.run(_rate(contender, fresh(folder), _batch, count))

    def single_rate(contender: Contender) -> float:
        return asyncio.run(_rate(contender, fresh(folder), _one_by_one, sizes.single_jobs))

    def at_once_rate(contender: Contender) -> float:
        return asyncio.run(_rate(contender, fresh(folder), _at_once, sizes.single_jobs))

    batch = in_turn([ours, synced, loose], batch_rate, sizes.rounds)
    single = in_turn([ours, synced], single_rate, sizes.rounds)
    at_once = in_turn([ours], at_once_rate, sizes.rounds)[ours.name]
    fastest = best([batch[synced.name], batch[loose.name]])
    name = "enqueue/s, SQLite"
    note = (
        f"enqueue_many with {sizes.batch_jobs:,} jobs. huey ({sizes.peer_jobs:,} jobs) has no bulk "
        "call, its `map` enqueues one by one; the faster of it with and without fsync is shown, "
        "penstock has fsync on."
    )
    callers = f"{CALLERS} tasks in one process share commits; huey enqueues one after the other."
    return [
        Result(
            name,
            "batch",
            "jobs/s",
            batch[ours.name],
            fastest,
            target=TimesThePeer(1.5),
            note=note,
        ),
        Result(name, "one by one", "jobs/s", single[ours.name], single[synced.name]),
        Result(
            name,
            f"one by one, {CALLERS} at a time",
            "jobs/s",
            at_once,
            single[synced.name],
            note=callers,
        ),
    ]


async def _rate(contender: Contender, folder: Path, load: Load, count: int) -> float:
    async with contender.client(folder) as client:
        await client.send("noop", {"n": 0})  # opens connections
        start = time.perf_counter()
        await load(client, count)
        return count / (time.perf_counter() - start)


async def _batch(client: Client, count: int) -> None:
    await client.send_all("noop", [{"n": n} for n in range(count)])


async def _one_by_one(client: Client, count: int) -> None:
    for n in range(count):
        await client.send("noop", {"n": n})


async def _at_once(client: Client, count: int) -> None:
    numbers = iter(range(count))

    async def caller() -> None:
        for n in numbers:
            await client.send("noop", {"n": n})

    async with asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(caller())
