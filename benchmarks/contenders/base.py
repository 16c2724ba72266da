"""What a queue must offer to be measured. A new peer is one more module beside this one.

Every contender knows three jobs: `noop` (n) returns n, `stamp` () returns the time at which its
handler started, `nap` (seconds) notes that it runs, sleeps and returns its process id.

This module imports nothing but the standard library: peers run under a Python of their own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class Client(Protocol):
    """The enqueuing side. Methods of a peer without asyncio block, as they do in its users."""

    async def send(self, job: str, payload: dict[str, Any]) -> str:
        """Enqueue one job and return its id."""
        ...

    async def send_all(self, job: str, payloads: Sequence[dict[str, Any]]) -> None:
        """Enqueue many, in the fastest way there is."""
        ...

    async def results(self, ids: Iterable[str]) -> list[Any]:
        """The results of jobs, waiting for them."""
        ...


class Session(Client, Protocol):
    """The enqueuing side of a contender on a server, and a look at what its queue has stored."""

    async def work_left(self) -> bool:
        """Whether anything that was sent is not finished; cheap, it is asked every few ms."""
        ...

    async def finished(self) -> int:
        """How many of the jobs that were sent have finished."""
        ...

    async def record(self, job_id: str) -> dict[str, Any]:
        """What is stored about a job: `ended`, and whatever would show a second ending."""
        ...


class Ledger(Protocol):
    """A look at the stored queue from outside, cheap enough to be repeated every few ms."""

    def work_left(self) -> bool: ...

    def finished(self) -> int:
        """Jobs whose result is stored."""
        ...

    def close(self) -> None: ...


class Contender(Protocol):
    """One queue with one set of settings; `folder` is where a run of it may keep things."""

    @property
    def name(self) -> str: ...

    def client(self, folder: Path) -> AbstractAsyncContextManager[Client]: ...

    def worker(self, folder: Path) -> list[str]:
        """The command of a worker process; see `benchmarks.contenders.worker`."""
        ...

    def in_process_worker(self, folder: Path) -> AbstractAsyncContextManager[Client]:
        """A worker in this process, and a client that shares its queue object."""
        ...

    def ledger(self, folder: Path) -> AbstractContextManager[Ledger]: ...


RUNS = "runs.txt"
STAMPS = "stamps.txt"
LOOK_SECONDS = 0.02


def note_run(folder: Path) -> None:
    """Write down that a job runs, in a way that SIGKILL cannot undo."""
    _append(folder / RUNS, f"{os.getpid()}\n")


def note_stamp(folder: Path, job_id: object, stamp: float) -> None:
    """For queues that store no results."""
    _append(folder / STAMPS, f"{job_id} {stamp!r}\n")


async def noted_stamps(folder: Path, ids: Iterable[str]) -> list[float]:
    """The stamps of jobs, waiting for them."""
    wanted = list(ids)
    while True:
        path = folder / STAMPS
        lines = path.read_text().splitlines() if path.exists() else []
        stamps = dict(line.split() for line in lines)
        if stamps.keys() >= set(wanted):
            return [float(stamps[job_id]) for job_id in wanted]
        await asyncio.sleep(LOOK_SECONDS)


async def once_ended(
    look: Callable[[str], Awaitable[dict[str, Any]]], job_id: str
) -> dict[str, Any]:
    """The record of a job that has ended, waiting for it."""
    while True:
        record = await look(job_id)
        if record["ended"]:
            return record
        await asyncio.sleep(LOOK_SECONDS)


async def at_once(calls: Iterable[Callable[[], Awaitable[object]]], limit: int) -> None:
    """Make calls, so many at a time: the fastest way to enqueue where there is no bulk call."""
    waiting = iter(calls)

    async def caller() -> None:
        for call in waiting:
            await call()

    async with asyncio.TaskGroup() as group:
        for _ in range(limit):
            group.create_task(caller())


def _append(path: Path, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


def runs(folder: Path) -> list[int]:
    """The process ids noted, one per run."""
    path = folder / RUNS
    return [int(line) for line in path.read_text().split()] if path.exists() else []
