"""`python -m tests.simulation FIRST END`: simulate the engine under these seeds, on all cores."""

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
        text = str(failure).rpartition("\n")[0]
        return 0, 0, 0, 0, f"{text}\nreplay it: make simulate SEEDS={failure.seed}"
    return report.seeds, report.faults, report.jobs, report.steps, ""


def main(first: int, end: int) -> int:
    begun = time.monotonic()
    parts = [(at, min(at + TOGETHER, end)) for at in range(first, end, TOGETHER)]
    seeds = faults = jobs = steps = 0
    failures: list[str] = []
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(parts))) as pool:
        for counts in pool.map(run, *zip(*parts, strict=True)):
            seeds, faults, jobs, steps = (
                one + more for one, more in zip((seeds, faults, jobs, steps), counts, strict=False)
            )
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
    given = sys.argv[1] if len(sys.argv) > 1 else "2000"
    low, _, high = given.partition(":")
    if high:
        sys.exit(main(int(low), int(high)))
    sys.exit(main(int(low), int(low) + 1) if "--one" in sys.argv else main(0, int(low)))
