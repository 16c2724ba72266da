"""From the call of enqueue to the start of the handler, while the worker has nothing else to do."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.contenders.base import Contender
from benchmarks.contenders.huey_sqlite import ON_DEMAND, HueySqlite
from benchmarks.contenders.penstock_sqlite import PenstockSqlite
from benchmarks.contenders.send import latencies
from benchmarks.processes import WorkerProcess
from benchmarks.report import Better, Figure, Result, TimesThePeer
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh, percentile


def run(sizes: Sizes, folder: Path) -> list[Result]:
    ours = PenstockSqlite()
    eager = HueySqlite(polling=ON_DEMAND, name="huey, polling every ms")
    default = HueySqlite(name="huey, default polling")
    contenders: list[Contender] = [ours, eager, default]
    across = {contender.name: _Sample(contender.name) for contender in contenders}
    within = {contender.name: _Sample(contender.name) for contender in (ours, eager)}
    for _ in range(sizes.rounds):
        for contender in contenders:
            across[contender.name].add(_across(contender, fresh(folder), sizes.latency_jobs))
        for contender in (ours, eager):
            within[contender.name].add(_within(contender, fresh(folder), sizes.latency_jobs))
    return [
        *_results("another process", across[ours.name], across[eager.name]),
        *_results("another process", across[ours.name], across[default.name]),
        *_results("the same process", within[ours.name], within[eager.name]),
    ]


class _Sample:
    """Latencies in ms of one contender, by round."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rounds: list[list[float]] = []

    def add(self, latencies: list[float]) -> None:
        self._rounds.append(latencies)

    def figure(self, percent: float) -> Figure:
        """The percentile over all rounds, and the spread of the rounds' own."""
        every = [latency for some in self._rounds for latency in some]
        each = [percentile(some, percent) for some in self._rounds]
        return Figure(self._name, percentile(every, percent), min(each), max(each), len(each))


def _results(where: str, ours: _Sample, peer: _Sample) -> list[Result]:
    name = "enqueue to handler start, idle, SQLite"
    note = (
        "All with fsync; the commit of the enqueue is part of it. What polling every ms costs is "
        "told under idle CPU."
    )
    return [
        Result(
            name,
            f"p50, worker in {where}",
            "ms",
            ours.figure(50),
            peer.figure(50),
            Better.LESS,
            TimesThePeer(1.0),
            note,
        ),
        Result(
            name,
            f"p99, worker in {where}",
            "ms",
            ours.figure(99),
            peer.figure(99),
            Better.LESS,
        ),
    ]


def _across(contender: Contender, folder: Path, count: int) -> list[float]:
    async def measure() -> list[float]:
        async with contender.client(folder) as client:
            return await latencies(client, count)

    with WorkerProcess(contender.worker(folder), folder) as worker:
        worker.ready().go()
        return asyncio.run(measure())


def _within(contender: Contender, folder: Path, count: int) -> list[float]:
    async def measure() -> list[float]:
        async with contender.in_process_worker(folder) as client:
            return await latencies(client, count)

    return asyncio.run(measure())
