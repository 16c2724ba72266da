"""No-op jobs per second: one worker process, jobs enqueued before, results stored."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from benchmarks.contenders.base import Contender
from benchmarks.contenders.huey_sqlite import HueySqlite, default_synchronous
from benchmarks.contenders.penstock_sqlite import PenstockSqlite
from benchmarks.processes import WorkerProcess, wait_until
from benchmarks.report import Figure, Result, TimesThePeer
from benchmarks.sizes import Sizes
from benchmarks.turns import best, fresh, in_turn

THREADS = (1, 4, 8)
SYNCHRONOUS = ("off", "normal", "full (fsync)", "extra")


def run(sizes: Sizes, folder: Path) -> list[Result]:
    ours = PenstockSqlite()
    synced = [HueySqlite(True, n, name=f"huey, fsync, threads: {n}") for n in THREADS]
    loose = [HueySqlite(False, n, name=f"huey, no fsync, threads: {n}") for n in THREADS]

    def rate(contender: Contender) -> float:
        count = sizes.jobs if contender is ours else sizes.peer_jobs
        return jobs_per_second(contender, fresh(folder), count)

    figures = in_turn([ours, *synced, *loose], rate, sizes.rounds)
    default = SYNCHRONOUS[default_synchronous(fresh(folder))]
    durable = (
        f"{sizes.jobs:,} jobs for penstock, {sizes.peer_jobs:,} for huey; huey's best of "
        f"{', '.join(map(str, THREADS))} threads. The clock stops when the last result is stored. "
        f"With huey's default settings SQLite's `synchronous` is {default} here."
    )
    loosely = "penstock commits durably (fsync) while huey does not."
    return [
        _result(
            "every feature on, fsync for both", figures[ours.name], figures, synced, 6, durable
        ),
        _result("against huey without fsync", figures[ours.name], figures, loose, 2, loosely),
    ]


def _result(
    what: str,
    ours: Figure,
    figures: dict[str, Figure],
    peers: list[HueySqlite],
    factor: float,
    note: str,
) -> Result:
    peer = best([figures[peer.name] for peer in peers])
    target = TimesThePeer(factor)
    return Result("no-op jobs/s, SQLite", what, "jobs/s", ours, peer, target=target, note=note)


def jobs_per_second(contender: Contender, folder: Path, count: int) -> float:
    asyncio.run(_fill(contender, folder, count))
    with (
        contender.ledger(folder) as ledger,
        WorkerProcess(contender.worker(folder), folder) as worker,
    ):
        worker.ready()
        start = time.perf_counter()
        worker.go()
        wait_until(lambda: not ledger.work_left(), f"{contender.name} took all jobs", worker)
        wait_until(lambda: ledger.finished() >= count, f"{contender.name} finished", worker)
        seconds = time.perf_counter() - start
        if ledger.finished() != count:
            raise RuntimeError(f"{contender.name}: {ledger.finished()} results of {count} jobs")
    return count / seconds


async def _fill(contender: Contender, folder: Path, count: int) -> None:
    # Filling is not measured, so huey may do it without fsync.
    filler = HueySqlite(fsync=False) if isinstance(contender, HueySqlite) else contender
    async with filler.client(folder) as client:
        await client.send_all("noop", [{"n": n} for n in range(count)])
