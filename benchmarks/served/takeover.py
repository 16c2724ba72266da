"""A worker process is frozen until another has taken its job, and then thawed: is what it writes
about the job accepted?"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from benchmarks.contenders.base import runs
from benchmarks.contenders.served import Served
from benchmarks.processes import LOOK_SECONDS, WorkerProcess, wait_until
from benchmarks.report import AtMost, Better, Cell, Figure, Result
from benchmarks.served.arena import Arena, Run

NAP_SECONDS = 2.0
OTHER_WORK_SECONDS = 0.5
"""Between two other jobs that go on meanwhile: some queues look for lost jobs only then."""


def late_writes(arena: Arena, *, after_the_end: bool) -> Result:
    seen: dict[str, str] = {}

    def measure(contender: Served) -> Cell:
        with arena.run(contender, contender.leased) as run, ExitStack() as stack:
            zombie = stack.enter_context(run.worker()).ready()
            heir = stack.enter_context(run.worker()).ready()
            zombie.go()
            run.sender.send("noop", {"n": 1})
            wait_until(lambda: not run.sender.work_left(), "the first job", zombie)
            job_id = run.sender.send("nap", {"seconds": NAP_SECONDS})
            wait_until(lambda: zombie.pid in runs(run.folder), "the job started", zombie)
            zombie.signal(signal.SIGSTOP)
            try:
                heir.go()
                if not _taken_over(run, heir, arena.sizes.recovery_bound):
                    return f"no takeover in {arena.sizes.recovery_bound:g} s"
                watch = _after_the_end if after_the_end else _while_it_runs
                before, after = watch(run, job_id, zombie)
            finally:
                zombie.signal(signal.SIGCONT)
            names = {zombie.pid: "the late one", heir.pid: "the new holder"}
        if before == after:
            if contender is arena.ours:
                return Figure.of(contender.name, [0.0])
            return "refused"
        seen[contender.name] = _difference(before, after, names)
        return Figure.of(contender.name, [1.0]) if contender is arena.ours else "accepted"

    cells = arena.cells(measure)
    observed = "; ".join(f"{name}: {difference}" for name, difference in seen.items())
    when = "after another has done its job" if after_the_end else "while another runs its job"
    note = (
        f"SIGSTOP in the middle of a job of {NAP_SECONDS:g} s, short leases, SIGCONT {when}. "
        "Accepted: no fence kept the late one from changing what is stored about the job. "
        f"{observed}"
    )
    what = f"late writes accepted {when}"
    return arena.result(what, "", cells, Better.LESS, AtMost(0, "writes"), note.strip())


def _taken_over(run: Run, heir: WorkerProcess, bound: float) -> bool:
    """Whether the second process has started the job of the frozen one."""
    give_up, next_job = time.monotonic() + bound, 0.0
    while heir.pid not in runs(run.folder):
        now = time.monotonic()
        if now > give_up:
            return False
        if heir.dead:
            raise RuntimeError(f"the second worker process died: {heir.errors()[-500:]}")
        if now > next_job:
            run.sender.send("noop", {"n": 1})
            next_job = now + OTHER_WORK_SECONDS
        time.sleep(LOOK_SECONDS)
    return True


Records = tuple[dict[str, Any], dict[str, Any]]


def _while_it_runs(run: Run, job_id: str, zombie: WorkerProcess) -> Records:
    """The record when the new holder has just started, and when it cannot have finished yet."""
    before = run.sender.record(job_id)
    zombie.signal(signal.SIGCONT)
    half_way = time.monotonic() + NAP_SECONDS / 2
    after = before
    while not after["ended"] and time.monotonic() < half_way:
        time.sleep(LOOK_SECONDS)
        after = run.sender.record(job_id)
    return before, after if after["ended"] else before


def _after_the_end(run: Run, job_id: str, zombie: WorkerProcess) -> Records:
    """The record when the new holder has finished, and when the late one has as well."""
    wait_until(lambda: bool(run.sender.record(job_id)["ended"]), "the job ended")
    before = run.sender.record(job_id)
    zombie.signal(signal.SIGCONT)
    time.sleep(NAP_SECONDS)
    return before, run.sender.record(job_id)


def _difference(
    before: Mapping[str, Any], after: Mapping[str, Any], names: Mapping[Any, str]
) -> str:
    def word(value: Any) -> str:
        return names.get(value, str(value)) if isinstance(value, int) else str(value)

    changes = [
        f"{key} {word(before.get(key))} -> {word(value)}"
        for key, value in after.items()
        if before.get(key) != value
    ]
    return ", ".join(changes)
