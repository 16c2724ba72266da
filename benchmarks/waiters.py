"""How soon many tasks that wait for one job hear that it has finished."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.contenders.penstock_sqlite import PenstockClient, PenstockSqlite
from benchmarks.processes import WorkerProcess
from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh, percentile
from penstock import Penstock

JOB_DELAY = 1.0
"""Long enough for every waiter to be waiting when the job starts."""
PATIENCE = 30.0
POLL_DELAY = 1e-3
"""For each poll, to be waiting before anything changes: each looks at the task first."""


def run(sizes: Sizes, folder: Path) -> list[Result]:
    within: list[float] = []
    across: list[float] = []
    polls: list[float] = []
    for _ in range(sizes.rounds):
        within.append(_within(fresh(folder), sizes.waiters))
        across.append(_across(fresh(folder), sizes.waiters))
        polls.append(asyncio.run(_polls(fresh(folder), sizes.waiters)))
    return [
        _result("the same process", within, sizes.waiters),
        _result("another process", across, sizes.waiters),
        Result(
            "waiters woken by one change of a research task",
            f"p99 of {sizes.waiters:,} calls of get_status",
            "ms",
            Figure.of("penstock", polls),
            None,
            Better.LESS,
            AtMost(100, "ms"),
            "From the call that changes the task to the answer: storing the change, reading the "
            "task and telling what it found are part of it. A search was queued before: the first "
            "of a process also loads the providers.",
        ),
    ]


def _result(where: str, values: list[float], waiters: int) -> Result:
    return Result(
        "waiters woken by one job's completion",
        f"p99 of {waiters:,}, job run in {where}",
        "ms",
        Figure.of("penstock", values),
        None,
        Better.LESS,
        AtMost(100, "ms"),
        "From the handler's return to the waiter's: storing the outcome is part of it.",
    )


def _within(folder: Path, waiters: int) -> float:
    async def measure() -> float:
        async with PenstockSqlite().in_process_worker(folder) as client:
            return await _wake(client, waiters)

    return asyncio.run(measure())


def _across(folder: Path, waiters: int) -> float:
    async def measure() -> float:
        async with PenstockSqlite().client(folder) as client:
            return await _wake(client, waiters)

    with ExitStack() as stack:
        command = PenstockSqlite().worker(folder)
        stack.enter_context(WorkerProcess(command, folder)).ready().go()
        return asyncio.run(measure())


async def _wake(client: PenstockClient, waiters: int) -> float:
    """The p99 in ms."""
    job = await client.app.enqueue("stamp", {}, delay=JOB_DELAY)

    async def wait() -> tuple[float, float]:
        done = await client.app.wait(job.id, timeout=PATIENCE)
        return time.time(), float(done.result)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(wait()) for _ in range(waiters)]
    return percentile(
        [(woken - returned) * 1000 for woken, returned in (t.result() for t in tasks)], 99
    )


async def _polls(folder: Path, waiters: int) -> float:
    """The p99 in ms of polls of a task in the same process."""
    app = Penstock(f"sqlite:///{folder}/jobs.db")
    research = app.use("research").research
    async with app:
        task = await research.create("How do water wheels turn?")
        await research.queue_searches(task.id, ["mills"])
        since = (await research.status(task.id)).version

        async def poll() -> float:
            await research.status(task.id, wait=PATIENCE, since=since)
            return time.perf_counter()

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(poll()) for _ in range(waiters)]
            await asyncio.sleep(POLL_DELAY * waiters)
            begun = time.perf_counter()
            await research.queue_searches(task.id, ["water wheels"])
        return percentile([(one.result() - begun) * 1000 for one in tasks], 99)
