"""CPU time of a worker process that has nothing to do."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.contenders.base import Contender
from benchmarks.contenders.huey_sqlite import ON_DEMAND, HueySqlite
from benchmarks.contenders.penstock_sqlite import PenstockSqlite
from benchmarks.processes import WorkerProcess, wait_until
from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh

SETTLE_SECONDS = 2.0
EARLIER_JOBS = 100


def run(sizes: Sizes, folder: Path) -> list[Result]:
    ours = PenstockSqlite()
    default = HueySqlite(name="huey, default polling")
    eager = HueySqlite(polling=ON_DEMAND, name="huey, polling every ms")
    contenders: list[Contender] = [ours, default, eager]
    with ExitStack() as stack:
        workers: dict[str, WorkerProcess] = {}
        for contender in contenders:
            place = fresh(folder)
            asyncio.run(_some_jobs(contender, place))
            worker = WorkerProcess(contender.worker(place), place)
            workers[contender.name] = stack.enter_context(worker).ready().go()
            _first_jobs_done(contender, place, worker)
        time.sleep(SETTLE_SECONDS)
        # Side by side, in the same seconds: each is asked for its own CPU time.
        start = time.monotonic()
        before = {name: worker.cpu_seconds() for name, worker in workers.items()}
        time.sleep(sizes.idle_seconds)
        elapsed = time.monotonic() - start
        figures = {
            name: Figure.of(name, [100 * (worker.cpu_seconds() - before[name]) / elapsed])
            for name, worker in workers.items()
        }
    step = 100 / os.sysconf("SC_CLK_TCK") / sizes.idle_seconds
    note = (
        f"Of one core, over {sizes.idle_seconds:g} s, after {EARLIER_JOBS} jobs; the kernel counts "
        f"in steps of {step:.2g} %."
    )
    what = "idle worker process"
    target = AtMost(0.5, "%")
    return [
        Result(what, "CPU", "%", figures[ours.name], figures[peer], Better.LESS, target, note)
        for peer in (default.name, eager.name)
    ]


def _first_jobs_done(contender: Contender, folder: Path, worker: WorkerProcess) -> None:
    with contender.ledger(folder) as ledger:
        wait_until(lambda: ledger.finished() == EARLIER_JOBS, "the first jobs were done", worker)


async def _some_jobs(contender: Contender, folder: Path) -> None:
    async with contender.client(folder) as client:
        await client.send_all("noop", [{"n": n} for n in range(EARLIER_JOBS)])
