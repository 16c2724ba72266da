"""What a queue must offer to be measured. A new peer is one more module beside this one.

Every contender knows three jobs: `noop` (n) returns n, `stamp` () returns the time at which its
handler started, `nap` (seconds) notes that it runs, sleeps and returns its process id.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
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


def note_run(folder: Path) -> None:
    """Write down that a job runs, in a way that SIGKILL cannot undo."""
    fd = os.open(folder / RUNS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, f"{os.getpid()}\n".encode())
    finally:
        os.close(fd)


def runs(folder: Path) -> list[int]:
    """The process ids noted, one per run."""
    path = folder / RUNS
    return [int(line) for line in path.read_text().split()] if path.exists() else []
