"""Where the time of one job goes, from the call of `enqueue` to the start of its handler.

    python -m benchmarks.where sqlite:///where.db

Looks inside the engine, so it is a tool for whoever works on it, and not part of the report.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from typing import Any

from penstock import JobContext, Penstock
from penstock.ports.queue import Exchange

JOBS = 100
PAUSE = 0.05
PHASES = ("enqueue returns", "worker woken", "trip begins", "trip ends", "handler starts")


async def measure(url: str) -> list[float]:
    """The median of each phase, in ms after the call."""
    worker, sender, seen = Penstock(url), Penstock(url), dict[str, float]()

    @worker.job("noop")
    async def noop(ctx: JobContext) -> None:
        seen["handler starts"] = time.perf_counter()

    rows: list[list[float]] = []
    async with worker, sender:
        orchestrator = worker.orchestrator()
        await orchestrator.start()
        _watch(orchestrator, seen)
        for _ in range(JOBS):
            await asyncio.sleep(PAUSE)  # until it is idle
            seen.clear()
            start = time.perf_counter()
            job = await sender.enqueue("noop")
            seen["enqueue returns"] = time.perf_counter()
            await worker.wait(job.id)
            rows.append([1000 * (seen.get(phase, start) - start) for phase in PHASES])
        await orchestrator.stop()
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def _watch(orchestrator: Any, seen: dict[str, float]) -> None:
    member, claims = orchestrator._engine.membership.member, orchestrator._engine.claims
    exchange, ready = member.exchange, claims.ready

    async def watched(*arguments: Any, **options: Any) -> Exchange:
        begun = time.perf_counter()
        told: Exchange = await exchange(*arguments, **options)
        if told.leases:
            seen["trip begins"], seen["trip ends"] = begun, time.perf_counter()
        return told

    def woken() -> None:
        seen.setdefault("worker woken", time.perf_counter())
        ready()

    member.exchange, claims.ready = watched, woken


def main() -> None:
    for phase, at in zip(PHASES, asyncio.run(measure(sys.argv[1])), strict=True):
        print(f"{at:6.2f} ms  {phase}")


if __name__ == "__main__":
    main()
