"""Connections of a worker process, and what its SIGKILL comes to."""

from __future__ import annotations

import time

from benchmarks.contenders.base import runs
from benchmarks.contenders.served import Served
from benchmarks.processes import LOOK_SECONDS, wait_until
from benchmarks.recovery import CONCURRENCY, JOB_SECONDS, KILLED_AFTER
from benchmarks.report import AtMost, Better, Cell, Figure, Result
from benchmarks.served.arena import Arena

HELD_JOBS = 40
HELD_SECONDS = 0.1


def connections(arena: Arena, most: int) -> Result:
    def measure(contender: Served) -> Cell:
        with arena.run(contender, {}) as run:
            run.sender.fill("nap", {"seconds": HELD_SECONDS}, HELD_JOBS)
            run.sender.work_left()  # its own connections are open now
            before, peak = arena.server.connections(), 0
            with run.worker() as worker:
                worker.ready().go()

                def all_done() -> bool:
                    nonlocal peak
                    peak = max(peak, arena.server.connections() - before)
                    return not run.sender.work_left()

                wait_until(all_done, "the jobs were done", worker)
        return Figure.of(contender.name, [float(peak)])

    note = f"Counted by the server, most seen while {CONCURRENCY} jobs ran at a time."
    target = AtMost(most, "connections")
    cells = arena.cells(measure)
    return arena.result("connections of a worker process", "", cells, Better.LESS, target, note)


def recovery(arena: Arena) -> list[Result]:
    """All work done after SIGKILL and a restart at once."""
    bound, count = arena.sizes.recovery_bound, arena.sizes.recovery_jobs
    undone: dict[str, Cell] = {}

    def measure(contender: Served) -> Cell:
        seconds, left = _restart(arena, contender)
        undone[contender.name] = Figure.of(contender.name, [float(left)])
        if left:
            return f"not within {bound:g} s"
        return Figure.of(contender.name, [seconds])

    cells = arena.cells(measure)
    undone = {name: undone.get(name, cell) for name, cell in cells.items()}
    defaults = "; ".join(f"{peer.name} {peer.remark}" for peer in arena.peers)
    note = (
        f"{count} jobs of {JOB_SECONDS * 1000:g} ms, {CONCURRENCY} at a time, killed when "
        f"{KILLED_AFTER:.0%} were done and restarted at once; nothing is subtracted. Leases as "
        f"they are by default: {defaults}."
    )
    what = "after SIGKILL and a restart"
    target, none = AtMost(2, "s"), AtMost(0, "jobs")
    return [
        arena.result(f"{what}: all done", "s", cells, Better.LESS, target, note),
        arena.result(f"{what}: not done in {bound:g} s", "jobs", undone, Better.LESS, none),
    ]


def elsewhere(arena: Arena) -> Result:
    """The same where the heir is on another host, so that only the lease tells of the death."""
    seconds, left = _restart(arena, arena.ours, ("one", "other"))
    note = (
        "The heir cannot see the lock of the dead process, as if it were another machine: the "
        f"default lease has to run out. {left} jobs were not done."
    )
    return Result(
        arena.server.title(),
        "after SIGKILL, taken over by another host: all done",
        "s",
        None if left else Figure.of("penstock", [seconds]),
        better=Better.LESS,
        target=AtMost(20, "s"),
        note=note,
    )


def _restart(
    arena: Arena, contender: Served, hosts: tuple[str, str] = ("", "")
) -> tuple[float, int]:
    """The seconds until the last job was done, and how many were not."""
    count, bound = arena.sizes.recovery_jobs, arena.sizes.recovery_bound
    with arena.run(contender, {}) as run:
        finished = run.sender.finished
        run.sender.fill("nap", {"seconds": JOB_SECONDS}, count)
        with run.worker(hosts[0]) as victim:
            victim.ready().go()
            first = KILLED_AFTER * count
            # In the middle of some jobs: they start in step, and between two steps none runs.
            wait_until(
                lambda: first <= finished() <= len(runs(run.folder)) - CONCURRENCY // 2,
                "the first jobs were done and others ran",
                victim,
            )
            start = time.monotonic()
            victim.kill()
        with run.worker(hosts[1]) as heir:
            heir.ready().go()
            while (left := count - finished()) and time.monotonic() < start + bound:
                if heir.dead:
                    raise RuntimeError(f"the restarted worker died: {heir.errors()[-500:]}")
                time.sleep(LOOK_SECONDS)
            return time.monotonic() - start, left
