"""`python -m tests.simulation [FIRST:]END`: simulate the engine under these seeds, on all cores."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from penstock.testing import SimulationFailed, simulate
from tests.simulation.workload import app, check, receiver, scenario

TOGETHER = 50


def run(first: int, end: int) -> tuple[int, int, int, int, str]:
    """Seeds, faults, jobs and callbacks of these seeds; and what the first one says that fails."""
    try:
        report = simulate(app, scenario, seeds=range(first, end), check=check, reset=receiver.clear)
    except SimulationFailed as failure:
        text, one = str(failure).rpartition("\n")[0], failure.seed
        return 0, 0, 0, 0, f"{text}\nreplay it: make simulate SEEDS={one}:{one + 1}"
    return report.seeds, report.faults, report.jobs, report.steps, ""


def main(first: int, end: int) -> int:
    begun = time.monotonic()
    parts = [(at, min(at + TOGETHER, end)) for at in range(first, end, TOGETHER)]
    seeds = faults = jobs = steps = 0
    failures: list[str] = []
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(parts))) as pool:
        for counts in pool.map(run, *zip(*parts, strict=True)):
            seeds, faults = seeds + counts[0], faults + counts[1]
            jobs, steps = jobs + counts[2], steps + counts[3]
            if counts[4]:
                failures.append(counts[4])
            if sys.stderr.isatty():
                print(f"\r{seeds:,} of {end - first:,} seeds", end="", file=sys.stderr)
    seconds = time.monotonic() - begun
    for failure in failures[:3]:
        print(failure, end="\n\n")
    print(
        f"{seeds:,} seeds: {faults:,} faults, {jobs:,} jobs, {steps:,} callbacks in {seconds:.1f} s"
        f" ({seeds / seconds:.0f} seeds a second); {len(failures)} failed"
    )
    return bool(failures)


if __name__ == "__main__":
    first, _, end = sys.argv[1].rpartition(":")
    sys.exit(main(int(first or 0), int(end)))
