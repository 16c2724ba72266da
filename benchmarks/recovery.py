"""A worker process is killed with SIGKILL in the middle of its work: until when is all done?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contenders.base import Contender, Ledger, runs
from benchmarks.contenders.huey_sqlite import HueySqlite
from benchmarks.contenders.penstock_sqlite import PenstockSqlite
from benchmarks.processes import LOOK_SECONDS, WorkerProcess, wait_until
from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh

JOB_SECONDS = 0.02
CONCURRENCY = 10
KILLED_AFTER = 0.2
"""The share of the jobs done when the worker is killed."""


@dataclass(slots=True, frozen=True)
class Recovery:
    """What one kill came to."""

    seconds: float
    """From the kill to the last job finished, a restart's start-up included."""
    ideal: float
    """The time the work left at the kill takes by itself."""
    lost: int
    repeated: int
    """Jobs that ran more than once."""


def run(sizes: Sizes, folder: Path) -> list[Result]:
    ours = PenstockSqlite(settings={"max_workers": CONCURRENCY})
    huey = HueySqlite(threads=CONCURRENCY)
    results: list[Result] = []
    cases = [("restarted at once", _restart), ("a sibling lives on", _sibling)]
    for what, scenario in cases:
        seen: dict[str, list[Recovery]] = {ours.name: [], huey.name: []}
        for _ in range(sizes.rounds):
            for contender in (ours, huey):
                seen[contender.name].append(scenario(contender, fresh(folder), sizes))
        results += _results(what, seen[ours.name], seen[huey.name], sizes)
    return results


def _results(what: str, ours: list[Recovery], huey: list[Recovery], sizes: Sizes) -> list[Result]:
    name = "recovery after SIGKILL, same host, SQLite"
    ideal = max(recovery.ideal for recovery in ours)
    note = (
        f"{sizes.recovery_jobs} jobs of {JOB_SECONDS * 1000:g} ms, {CONCURRENCY} at a time, killed "
        f"when {KILLED_AFTER:.0%} were done. Not subtracted: the work left at the kill (up to "
        f"{ideal:.2g} s without any interruption), and the start of Python. "
        f"{sum(recovery.repeated for recovery in ours)} jobs ran a second time."
    )
    lost = (
        "All rounds together. huey takes a task out of the queue before it runs; a task counts as "
        f"lost when nothing moved for {sizes.lost_after:g} s."
    )
    done = Figure.of("penstock", [recovery.seconds for recovery in ours])
    return [
        Result(name, f"{what}: all done", "s", done, None, Better.LESS, AtMost(2, "s"), note),
        Result(
            name,
            f"{what}: lost",
            "jobs",
            _total("penstock", ours),
            _total("huey", huey),
            Better.LESS,
            AtMost(0, "jobs"),
            lost,
        ),
    ]


def _total(who: str, recoveries: list[Recovery]) -> Figure:
    return Figure.of(who, [float(sum(recovery.lost for recovery in recoveries))])


def _restart(contender: Contender, folder: Path, sizes: Sizes) -> Recovery:
    asyncio.run(_fill(contender, folder, sizes.recovery_jobs))
    with ExitStack() as stack:
        ledger = stack.enter_context(contender.ledger(folder))
        victim = stack.enter_context(WorkerProcess(contender.worker(folder), folder)).ready().go()

        def restart() -> None:
            stack.enter_context(WorkerProcess(contender.worker(folder), folder)).ready().go()

        return _kill(victim, ledger, folder, sizes, after=restart)


def _sibling(contender: Contender, folder: Path, sizes: Sizes) -> Recovery:
    asyncio.run(_fill(contender, folder, sizes.recovery_jobs))
    with ExitStack() as stack:
        ledger = stack.enter_context(contender.ledger(folder))
        victim = stack.enter_context(WorkerProcess(contender.worker(folder), folder)).ready()
        sibling = stack.enter_context(WorkerProcess(contender.worker(folder), folder)).ready()
        victim.go()
        sibling.go()
        return _kill(victim, ledger, folder, sizes, after=lambda: None)


async def _fill(contender: Contender, folder: Path, count: int) -> None:
    async with contender.client(folder) as client:
        await client.send_all("nap", [{"seconds": JOB_SECONDS} for _ in range(count)])


def _kill(
    victim: WorkerProcess,
    ledger: Ledger,
    folder: Path,
    sizes: Sizes,
    *,
    after: Callable[[], None],
) -> Recovery:
    count = sizes.recovery_jobs
    # With two at work, both must be running: the victim may have been the slower to start.
    wait_until(
        lambda: ledger.finished() >= KILLED_AFTER * count and victim.pid in runs(folder),
        "the first jobs were done",
        victim,
    )
    start = time.monotonic()
    victim.kill()
    left = count - ledger.finished()
    after()
    finished, moved = _until_still(ledger, count, sizes.lost_after)
    return Recovery(
        seconds=moved - start,
        ideal=left * JOB_SECONDS / CONCURRENCY,
        lost=count - finished,
        repeated=len(runs(folder)) - count if finished == count else 0,
    )


def _until_still(ledger: Ledger, count: int, patience: float) -> tuple[int, float]:
    """How many finished, and when the last of them did: all, or all that ever will."""
    finished, moved = ledger.finished(), time.monotonic()
    while finished < count and time.monotonic() < moved + patience:
        time.sleep(LOOK_SECONDS)
        if (now := ledger.finished()) != finished:
            finished, moved = now, time.monotonic()
    return finished, moved
