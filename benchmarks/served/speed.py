"""How fast: jobs done, jobs enqueued, and the time until an idle worker starts one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from benchmarks.contenders.served import Served
from benchmarks.processes import wait_until
from benchmarks.report import Better, Cell, Figure, Result, TimesThePeer
from benchmarks.served.arena import Arena
from benchmarks.turns import percentile

TRIAL_JOBS = 3_000
AIM_SECONDS = 4.0
"""A run of a slow peer has as many jobs as it does in this time."""
NOOP = {"n": 1}
LOOK_SECONDS = 0.02
"""A look is a query that the server answers beside its work; at 5 ms they took 6 % of it."""

Settings = Mapping[str, Any]


def jobs(arena: Arena, factor: float) -> Result:
    """No-op jobs per second: enqueued before, one worker process, each contender at its best."""
    plans: dict[str, tuple[Settings, int]] = {}

    def plan(contender: Served) -> tuple[Settings, int]:
        choice = contender.fastest
        trial = max(_rate(arena, contender, settings, _trial(arena)) for settings in choice)
        most = arena.sizes.jobs
        count = most if contender is arena.ours else _count(trial, most)
        if len(choice) == 1:
            return choice[0], count
        # What is best for few jobs is not for many.
        return max(choice, key=lambda settings: _rate(arena, contender, settings, count)), count

    def rate(contender: Served) -> float:
        if contender.name not in plans:
            plans[contender.name] = plan(contender)
        return _rate(arena, contender, *plans[contender.name])

    cells = arena.figures(rate, arena.sizes.rounds)
    used = "; ".join(
        f"{name} {_words(settings)}" for name, (settings, _) in plans.items() if settings
    )
    counts = ", ".join(f"{name} {count:,}" for name, (_, count) in plans.items())
    note = (
        "Enqueued before; one worker process, which has imported everything when the clock "
        f"starts. It stops when the queue has recorded the last job as done. Jobs: {counts}. "
        f"Each with the best of a few settings: {used or 'none measured'}."
    )
    target = TimesThePeer(factor)
    return arena.result("no-op jobs", "jobs/s", cells, Better.MORE, target, note)


def enqueue(arena: Arena, factor: float) -> Result:
    def rate(contender: Served) -> float:
        with arena.run(contender, {}) as run:
            trial = _trial(arena) / run.sender.fill("noop", NOOP, _trial(arena))
            count = _count(trial, arena.sizes.batch_jobs)
            return count / run.sender.fill("noop", NOOP, count)

    cells = arena.figures(rate, arena.sizes.rounds)
    note = "One process, in the fastest way each of them offers: a bulk call, or many at a time."
    target = TimesThePeer(factor)
    return arena.result("enqueue, batch", "jobs/s", cells, Better.MORE, target, note)


def latency(arena: Arena) -> list[Result]:
    samples: dict[str, list[list[float]]] = {}

    def measure(contender: Served) -> float:
        settings = contender.prompt or contender.base
        with arena.run(contender, settings) as run, run.worker() as worker:
            worker.ready().go()
            found = run.sender.latencies(arena.sizes.latency_jobs)
        samples.setdefault(contender.name, []).append(found)
        return percentile(found, 50)

    medians = arena.figures(measure, arena.sizes.rounds)

    def tail(name: str, cell: Cell) -> Cell:
        if isinstance(cell, str):
            return cell
        every = [value for some in samples[name] for value in some]
        each = [percentile(some, 99) for some in samples[name]]
        return Figure(name, percentile(every, 99), min(each), max(each), len(each))

    tails = {name: tail(name, cell) for name, cell in medians.items()}
    what = "enqueue to handler start, idle"
    target = TimesThePeer(1.0)
    note = "The worker is another process. Peers that poll look every 10 ms here."
    return [
        arena.result(f"{what}, p50", "ms", medians, Better.LESS, target, note),
        arena.result(f"{what}, p99", "ms", tails, Better.LESS),
    ]


def _rate(arena: Arena, contender: Served, settings: Settings, count: int) -> float:
    with arena.run(contender, settings) as run:
        run.sender.fill("noop", NOOP, count)
        with run.worker() as worker:
            worker.ready()
            start = time.perf_counter()
            worker.go()
            left = run.sender.work_left
            what = f"{contender.name} did all jobs"
            wait_until(lambda: not left(), what, worker, look_seconds=LOOK_SECONDS)
            seconds = time.perf_counter() - start
        if (finished := run.sender.finished()) != count:
            raise RuntimeError(f"{finished} of {count} jobs are recorded as done")
    return count / seconds


def _trial(arena: Arena) -> int:
    return min(TRIAL_JOBS, arena.sizes.peer_jobs)


def _count(rate: float, most: int) -> int:
    return max(min(most, int(rate * AIM_SECONDS)), 1)


def _words(settings: Settings) -> str:
    flat = {key: value for key, value in settings.items() if key != "worker"}
    flat |= settings.get("worker", {})
    return ", ".join(f"{key} {value}" for key, value in flat.items())
