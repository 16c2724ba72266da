"""One fault at a time, and what it came to."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.chaos import Cell
from penstock import Job, JobState, Penstock
from penstock.errors import QueueUnavailable, WaitTimeout
from penstock.model.payload import UNREADABLE
from penstock.ports.queue import JobFilter
from tests.chaos.small import SmallGround
from tests.support.waiting import until
from tests.support.worker_processes import Farm, WorkerProcess

T = TypeVar("T")

PROCESSES = 2
WORKERS = 4
KIND = "long"
PATIENCE = 60.0
AWAY_SECONDS = 2.0
SPOILT = 5
SPOIL_DELAY = 8.0
"""Seconds until spoilt jobs are due: time to spoil them."""
MARK = "999000999"


@dataclass(slots=True)
class Field:
    """A queue with worker processes on it."""

    ground: SmallGround
    farm: Farm
    app: Penstock
    jump: Path
    """When this file is there, the clocks of the worker processes are an hour ahead."""
    workers: list[WorkerProcess] = field(default_factory=list)
    accepted: set[str] = field(default_factory=set)
    """The jobs that have to be done, by their ids."""

    @classmethod
    def on(cls, ground: SmallGround, folder: Path, settings: dict[str, Any]) -> Field:
        farm = Farm(folder, url=ground.url)
        farm.settings = settings
        return cls(ground, farm, farm.app("chaos"), folder / "jump")

    async def start(self) -> WorkerProcess:
        environment = {"JUMP": str(self.jump)}
        return await self.farm.start("chaos", environment=environment, max_workers=WORKERS)

    def begun(self, pid: int | None = None) -> set[str]:
        """Of those that have to be done, what has begun; by one process, if it is given."""
        notes = self.farm.side.notes()
        return {note.job for note in notes if pid in (None, note.pid)} & self.accepted


Strike = Callable[[Field], Awaitable[float]]
"""Returns when its recovery begins, on the monotonic clock."""


async def kill(field: Field) -> float:
    since = time.monotonic()
    await field.workers[0].kill()
    field.workers[0] = await field.start()
    return since


async def freeze(field: Field) -> float:
    since = time.monotonic()
    await field.farm.freeze(field.workers[0])
    return since


async def thaw(field: Field) -> None:
    """It wakes up with jobs that others have done since, and has to find out."""
    frozen = field.workers[0]

    async def given_up() -> bool:
        return frozen.pid not in {process.pid for process in await field.app.processes()}

    await until(given_up, "its lease to pass", PATIENCE)
    frozen.send(signal.SIGCONT)
    await until(lambda: "rejoining" in frozen.log, "the thawed process to notice", PATIENCE)


async def restart_server(field: Field) -> float:
    await asyncio.to_thread(field.ground.server.stop)
    await asyncio.to_thread(field.ground.server.start)
    return time.monotonic()


async def kill_server(field: Field) -> float:
    await asyncio.to_thread(field.ground.server.kill)
    await asyncio.to_thread(field.ground.server.start)
    return time.monotonic()


async def cut(field: Field) -> float:
    field.ground.proxy.drop()
    return time.monotonic()


async def leave(field: Field) -> float:
    field.ground.proxy.leave()
    await asyncio.sleep(AWAY_SECONDS)  # how long it is away is the fault
    field.ground.proxy.come_back()
    return time.monotonic()


async def fill(field: Field) -> float:
    """One by one until a job is refused: those accepted meanwhile have to be done as well."""
    await field.ground.fill()
    try:
        while True:
            job = await field.app.enqueue("short", {"n": len(field.accepted)})
            field.accepted.add(job.id)
    except QueueUnavailable:
        await asyncio.sleep(AWAY_SECONDS)  # now the workers meet it, too
        await field.ground.free()
    return time.monotonic()


async def jump(field: Field) -> float:
    since = time.monotonic()
    field.jump.touch()
    later = await field.app.enqueue_many(KIND, [{"n": n} for n in range(WORKERS)])
    field.accepted |= {job.id for job in later}  # though all others may have begun by now

    def jumped() -> bool:
        return any(note.at > time.time() + 3000 for note in field.farm.side.notes())

    await until(jumped, "a job to run by the new time", PATIENCE)
    return since


async def spoil(field: Field) -> float:
    payloads = [{"n": int(f"{MARK}{n}")} for n in range(SPOILT)]
    since = time.monotonic() + SPOIL_DELAY
    await field.app.enqueue_many("short", payloads, delay=SPOIL_DELAY, priority="high")
    await field.ground.spoil(MARK)

    async def buried() -> bool:
        counts = {kind.kind: kind.states for kind in await field.app.counts()}
        return counts["short"].get(JobState.FAILED, 0) == SPOILT

    await until(buried, "the spoilt jobs to fail, each by itself", PATIENCE)
    seen = await field.app.queue.find(JobFilter(kind="short", states=[JobState.FAILED]), SPOILT)
    assert [list(job.payload) for job in seen] == [[UNREADABLE]] * SPOILT
    return since


@dataclass(slots=True, frozen=True)
class Fault:
    name: str
    counted_from: str
    """What the seconds of its recovery begin with."""
    strike: Strike
    heal: Callable[[Field], Awaitable[None]] | None = None
    """Done when what it interrupted has been done by others."""
    of_servers: bool = False


FAULTS = (
    Fault("worker process killed (SIGKILL)", "the kill", kill),
    Fault("worker process frozen past its lease (SIGSTOP)", "the freeze", freeze, thaw),
    Fault("server restarted", "its return", restart_server, of_servers=True),
    Fault("server killed (SIGKILL)", "its return", kill_server, of_servers=True),
    Fault("every connection cut", "the cut", cut, of_servers=True),
    Fault(f"network gone for {AWAY_SECONDS:g} s", "its return", leave, of_servers=True),
    Fault("disk or memory full", "room again", fill),
    Fault("garbage in the queue", "the garbage being due", spoil),
    Fault("clocks of the worker processes an hour ahead", "the jump", jump),
)
"""The jump is last: it is not taken back."""


async def suffer(field: Field, fault: Fault, jobs: int) -> Cell:
    """Strike in the middle of `jobs` jobs; then the counting."""
    if fault.of_servers and not hasattr(field.ground, "server"):
        return Cell(fault.name, fault.counted_from, why_not="no server")
    if fault.strike is fill and not field.ground.fillable:
        return Cell(fault.name, fault.counted_from, why_not="no small disk permitted here")
    some = await field.app.enqueue_many(KIND, [{"n": n} for n in range(jobs)])
    field.accepted = {job.id for job in some}
    running = PROCESSES * WORKERS // 2
    victim = field.workers[0].pid
    await until(
        lambda: len(field.begun()) >= running and field.begun(victim), "jobs to run", PATIENCE
    )
    interrupted = field.begun()
    since = await fault.strike(field)
    interrupted |= field.begun(victim)  # it may have begun another until it was struck
    await asyncio.gather(*(_ended(field.app, job) for job in interrupted))
    seconds = time.monotonic() - since
    if fault.heal:
        await fault.heal(field)
    every = await asyncio.gather(*(_ended(field.app, job) for job in field.accepted))
    newest: dict[str, int] = {}
    for note in field.farm.side.notes():
        newest[note.job] = max(note.token, newest.get(note.job, 0))
    done = {job.id: job.result for job in every if job.state is JobState.COMPLETED}
    return Cell(
        fault.name,
        fault.counted_from,
        jobs=len(every),
        lost=len(every) - len(done),
        stale=sum(result["token"] != newest[job] for job, result in done.items()),
        seconds=seconds,
    )


async def _ended(app: Penstock, job: str) -> Job:
    """A job when it has ended, or as it is when it does not."""
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            return await app.wait(job, timeout=max(0.1, give_up - time.monotonic()))
        except WaitTimeout:
            return await app.get(job)
        except QueueUnavailable:
            assert time.monotonic() < give_up, "the queue did not come back"
            await asyncio.sleep(0.1)
