"""Jobs with steps under chaos, judged from outside: by what the called functions noted, and by what
the queue tells of its records meanwhile and in the end."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.step_chaos import Course
from penstock import Job, JobState, Penstock
from penstock.errors import JobEnded
from penstock.model.step import Step
from tests.chaos.grounds import Ground
from tests.chaos.monkey import LEASE_SECONDS, Monkey, in_the_end
from tests.support.apps.stepping import SIGNALS, STEPS
from tests.support.side_effects import Note
from tests.support.worker_processes import Farm

CLOCK_SECONDS = 0.5
"""The queue's clock, which records have, and that of the notes may differ by less."""
PATIENCE = 120.0

Named = tuple[str, str, int]
"""A step of a job: its name, the hash of its arguments, its occurrence."""


class Seen(NamedTuple):
    """A record as the queue told it, and when."""

    result: Any
    at: float


@dataclass(slots=True)
class Witness:
    """Looks at the records of one job after another, as long as it is let."""

    app: Penstock
    seen: dict[tuple[str, Named], Seen] = field(default_factory=dict)
    changed: int = 0

    async def look(self, job: str) -> list[Step]:
        steps = await in_the_end(partial(self.app.steps, job), PATIENCE)
        now = time.time()
        for step in steps:
            if step.recorded:
                key = (job, _named(step))
                first = self.seen.setdefault(key, Seen(step.result, now))
                self.changed += first.result != step.result
        return steps

    async def watch(self, jobs: list[str], chance: random.Random) -> None:
        while True:
            await self.look(chance.choice(jobs))
            await asyncio.sleep(0.01)  # chaos has no condition


def _named(step: Step) -> Named:
    return (step.name, step.arguments, step.occurrence)


async def course(
    ground: Ground, folder: Path, *, jobs: int, faults: int, longest: float, seed: int
) -> Course:
    """So many jobs, while `Monkey` does so many things to their processes and their server. Sleeps
    and the shorter waits take up to `longest` seconds."""
    farm = Farm(folder, url=ground.url, lease_seconds=LEASE_SECONDS)
    monkey = Monkey(farm, ground, seed, app="stepping")
    app = farm.app("stepping")
    chance = random.Random(seed)
    try:
        async with app:
            await monkey.start()
            payloads = [{"n": n, "longest": longest} for n in range(jobs)]
            keys = [str(n) for n in range(jobs)]
            enqueue = partial(app.enqueue_many, "way", payloads, keys=keys)
            ids = [job.id for job in await in_the_end(enqueue, PATIENCE)]
            witness = Witness(app)
            watching = asyncio.create_task(witness.watch(ids, chance))
            async with asyncio.TaskGroup() as group:
                group.create_task(monkey.run(faults))
                sending = group.create_task(_send_all(app, ids, longest, chance))
            await in_the_end(app.drain, PATIENCE + jobs)
            watching.cancel()
            await asyncio.wait([watching])
            rows = [await in_the_end(partial(app.get, job), PATIENCE) for job in ids]
            steps = {job: await witness.look(job) for job in ids}
    finally:
        await farm.close()
    return _judge(monkey, seed, witness, rows, steps, farm.side.notes(), sending.result())


async def _send_all(
    app: Penstock, jobs: list[str], longest: float, chance: random.Random
) -> set[str]:
    """Every signal, each twice, at times drawn from the chance. The jobs whose "late" one was
    accepted."""
    accepted: set[str] = set()

    async def send(job: str, name: str, times: list[float]) -> None:
        """One after the other, so that they come in their order."""
        for number, pause in enumerate(times, 1):
            await asyncio.sleep(pause)
            for _ in range(2):
                tell = partial(app.signal, job, name, {"number": number}, key=f"{name} {number}")
                try:
                    await in_the_end(tell, PATIENCE)
                except JobEnded:
                    assert name == "late", "a job has ended without its signal"
                    return
                if name == "late":
                    accepted.add(job)

    async with asyncio.TaskGroup() as group:
        for job in jobs:
            times = [chance.uniform(0.0, longest) for _ in range(SIGNALS)]
            group.create_task(send(job, "go", times))
            group.create_task(send(job, "late", [chance.uniform(0.0, 5 * longest)]))
    return accepted


def _judge(
    monkey: Monkey,
    seed: int,
    witness: Witness,
    rows: list[Job],
    steps: dict[str, list[Step]],
    notes: list[Note],
    late: set[str],
) -> Course:
    of_job: dict[str, list[Note]] = defaultdict(list)
    for note in notes:
        of_job[note.job].append(note)
    judged = [_Judged(job, steps[job.id], of_job[job.id], witness) for job in rows]
    return Course(
        seed=seed,
        faults=dict(sorted(monkey.done.items())),
        jobs=len(rows),
        runs=sum("run" in note.data for note in notes),
        records=sum(len(one.records) for one in judged),
        signals=SIGNALS * len(rows) + len(late),
        calls=sum("call" in note.data for note in notes),
        late_calls=sum(one.late for one in judged),
        lost=sum(one.lost for one in judged),
        again=sum(one.again for one in judged),
        stale=sum(one.stale for one in judged),
        changed=witness.changed,
        unseen=sum(one.unseen(one.job.id in late) for one in judged),
    )


class _Judged:
    """One job."""

    def __init__(self, job: Job, steps: list[Step], notes: list[Note], witness: Witness) -> None:
        self.job = job
        self.notes = notes
        self.records = [
            step for step in steps if isinstance(step.result, dict) and "call" in step.result
        ]
        self.waits = {
            (step.name.partition(":")[2], step.occurrence): step.result
            for step in steps
            if step.name in ("wait_for:go", "wait_for:late") and step.recorded
        }
        self.again = self.stale = self.late = 0
        for step in self.records:
            # As it was seen first: what is done again replaces it.
            seen = witness.seen[job.id, _named(step)]
            stored = min(seen.at, (step.finished_at or 0.0) + CLOCK_SECONDS)
            self._judge(step, seen.result, stored)

    @property
    def lost(self) -> bool:
        """Whether it did not end with what its records say, each step having one."""
        recorded = sorted(step.result["call"] for step in self.records)
        return (
            self.job.state is not JobState.COMPLETED
            or len(recorded) != STEPS
            or sorted(self.job.result["calls"]) != recorded
        )

    def _judge(self, step: Step, result: Any, stored: float) -> None:
        """`stored`: it was not later."""
        which, token = result["step"], result["token"]
        calls = [note for note in self.notes if note.data.get("step") == which]
        made = [place for place, note in enumerate(calls) if note.data == result]
        if len(made) != 1:
            self.stale += 1  # it is nobody's
            return
        for place, note in enumerate(calls):
            if note.token > token:
                # The job was given to that holder later. Either it did not get the record, or the
                # record was taken from one that had the job no more.
                self.again += note.at > stored
                self.stale += note.at <= stored
            elif note.token == token:
                self.again += place > made[0]
            else:
                self.late += note.at > stored
        newer = [note.at for note in self.notes if note.token > token]
        self.stale += any(at < (step.finished_at or 0.0) - CLOCK_SECONDS for at in newer)

    def unseen(self, late: bool) -> int:
        """Signals that were not taken once, and waits that were not always the same."""
        went = [self.waits.get(("go", number)) for number in range(1, SIGNALS + 1)]
        was_late = self.waits.get(("late", 1), "missing")
        right = was_late is None or (was_late == {"number": 1} and late)
        bad: int = sum(got != {"number": number} for number, got in enumerate(went, 1))
        bad += not right
        told: dict[str, list[Any]] = {"go": went, "late": [was_late]}
        for run in self._by_run():
            for name, payloads in run.items():
                bad += payloads != told[name][: len(payloads)]
        return bad

    def _by_run(self) -> list[dict[str, list[Any]]]:
        """What each run's waits returned, in order, by the signal's name."""
        runs: dict[int, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for note in self.notes:
            if "saw" in note.data:
                runs[note.token][note.data["saw"]].append(note.data["payload"])
        return list(runs.values())
