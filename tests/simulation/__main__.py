"""`python -m tests.simulation [FIRST:]END`: simulate the engine under these seeds, on all cores.

`--keep` counts the seeds that pass in benchmarks/simulation.json. `--resume` leaves out those that
were counted there, so that a long run can be stopped and continued. `--queue` tries one kind only.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from benchmarks import simulation as kept
from penstock.testing import SimulationFailed, simulate
from tests.simulation.workload import app, check, receiver, scenario

TOGETHER = 50
QUEUES = {"file": False, "server": True}


class Counts(NamedTuple):
    """What came of some seeds."""

    seeds: int = 0
    faults: int = 0
    jobs: int = 0
    steps: int = 0
    failure: str = ""
    """What the first of them says that fails, and how to replay it."""

    def plus(self, more: Counts) -> Counts:
        return Counts(
            self.seeds + more.seeds,
            self.faults + more.faults,
            self.jobs + more.jobs,
            self.steps + more.steps,
        )


def run(queue: str, first: int, end: int) -> Counts:
    try:
        report = simulate(
            app,
            scenario,
            seeds=range(first, end),
            check=check,
            reset=receiver.clear,
            server=QUEUES[queue],
        )
    except SimulationFailed as failure:
        text, one = str(failure).rpartition("\n")[0], failure.seed
        again = f"make simulate SEEDS={one}:{one + 1} QUEUE={queue}"
        return Counts(failure=f"{queue}: {text}\nreplay it: {again}")
    return Counts(report.seeds, report.faults, report.jobs, report.steps)


def parts(queue: str, first: int, end: int) -> Iterator[tuple[str, int, int]]:
    for at in range(first, end, TOGETHER):
        yield queue, at, min(at + TOGETHER, end)


def main(queues: list[str], first: int, end: int, *, keep: bool, resume: bool) -> int:
    begun, cpu = time.monotonic(), sum(os.times()[:4])
    todo: list[tuple[str, int, int]] = []
    for queue in queues:
        todo += parts(queue, max(first, kept.passed(queue)) if resume else first, end)
    total = Counts()
    failures: list[str] = []
    with ProcessPoolExecutor(max(1, min(os.cpu_count() or 1, len(todo)))) as pool:
        for part, counts in zip(todo, pool.map(run, *zip(*todo, strict=True)), strict=True):
            total = total.plus(counts)
            if counts.failure:
                failures.append(counts.failure)
                print(counts.failure, end="\n\n", flush=True)
            elif keep and not failures:  # up to the first that fails
                kept.count(part[0], part[2])
            if sys.stderr.isatty():
                print(f"\r{total.seeds:,} seeds", end="", file=sys.stderr)
    seconds, spent = time.monotonic() - begun, sum(os.times()[:4]) - cpu
    print(
        f"{total.seeds:,} seeds: {total.faults:,} faults, {total.jobs:,} jobs, {total.steps:,} "
        f"callbacks in {seconds:.1f} s ({total.seeds / seconds:.0f} seeds a second, "
        f"{1000 * spent / max(1, total.seeds):.0f} ms of CPU each); {len(failures)} failed"
    )
    return bool(failures)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seeds", metavar="[FIRST:]END")
    parser.add_argument("--queue", choices=(*QUEUES, "all"), default="all")
    parser.add_argument("--keep", action="store_true", help="count those that pass")
    parser.add_argument("--resume", action="store_true", help="leave out those counted before")
    return parser.parse_args()


if __name__ == "__main__":
    options = _options()
    first, _, end = options.seeds.rpartition(":")
    queues = list(QUEUES) if options.queue == "all" else [options.queue]
    sys.exit(main(queues, int(first or 0), int(end), keep=options.keep, resume=options.resume))
