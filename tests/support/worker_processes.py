"""Real worker processes, started, watched and ended by a test."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from penstock import Penstock
from penstock.adapters.life_file import print_of, started_jobs
from tests.support.apps import (
    answering,
    browsing,
    chaos,
    deadly,
    documents,
    endings,
    family,
    laned,
    raising,
    researching,
    searching,
    spending,
    stepping,
    ticking,
    work,
)
from tests.support.forks import WARNINGS, Started, start
from tests.support.side_effects import Side
from tests.support.sqlite_files import make_file
from tests.support.waiting import PATIENCE, PAUSE, until

ROOT = Path(__file__).parents[2]
APPS = {
    "answering": answering.build,
    "browsing": browsing.build,
    "chaos": chaos.build,
    "work": work.build,
    "deadly": deadly.build,
    "family": family.build,
    "laned": laned.build,
    "documents": documents.build,
    "endings": endings.build,
    "raising": raising.build,
    "researching": researching.build,
    "searching": searching.build,
    "spending": spending.build,
    "stepping": stepping.build,
    "ticking": ticking.build,
}
FAST: Mapping[str, Any] = {
    "max_workers": 4,
    "lease_seconds": 30.0,  # a machine that stands still ends none; a death is seen without it
    "upkeep_seconds": 0.1,
    "retry_base_seconds": 0.05,
    "grace_seconds": 10.0,
    "durable": False,  # none of these tests is about a power loss
}


class WorkerProcess:
    """A worker process running one of `tests/support/apps`."""

    def __init__(self, process: Started, output: Path, log: Path) -> None:
        self._process = process
        self._output = output
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    @property
    def log(self) -> str:
        """What it has written to stderr."""
        return self._log.read_text()

    async def ready(self) -> None:
        await until(
            lambda: self._output.read_text() == "ready\n" or self.returncode is not None, "ready"
        )
        assert self._output.read_text() == "ready\n", f"the process did not start: {self.log}"

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def freeze(self) -> None:
        """SIGSTOP; returns once it is stopped."""
        self.send(signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        await until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "SIGSTOP")

    async def kill(self) -> None:
        """SIGKILL; returns once it is gone."""
        self.send(signal.SIGKILL)
        await self.exit(PATIENCE)

    async def exit(self, timeout: float = PATIENCE) -> int:
        """Its exit code, once it has ended. If it does not, the test fails with its stacks."""
        give_up = time.monotonic() + timeout
        while (code := self.returncode) is None:
            if time.monotonic() > give_up:
                self.send(signal.SIGUSR1)
                await asyncio.sleep(1)
                raise AssertionError(f"did not end: {self.log[-20_000:]}")
            await asyncio.sleep(PAUSE)
        return code


class Held(NamedTuple):
    """What a worker process held, by job id."""

    started: set[str]
    """Its handler had been started."""
    waiting: set[str]
    """Claimed ahead and not started."""


class Farm:
    """One queue, its side file and its worker processes."""

    def __init__(self, folder: Path, *, url: str | None = None, **settings: Any) -> None:
        self.folder = folder
        self.path = folder / "jobs.db"
        self.url = url or f"sqlite:///{self.path}"
        if url is None and not self.path.exists():
            make_file(self.path)
        self.side = Side(folder / "side.jsonl")
        self.gate = folder / "gate"
        """What the gated jobs of a test wait for, by custom."""
        self.settings: dict[str, Any] = {**FAST, **settings}
        self.workers: list[WorkerProcess] = []
        self._numbers = itertools.count()

    def app(self, name: str = "work", **settings: Any) -> Penstock:
        """The same app in the test's own process."""
        return APPS[name](self.url, self.side, **{**self.settings, **settings})

    def bare(self, **settings: Any) -> Penstock:
        """An app without handlers, for a test that brings its own."""
        return Penstock(self.url, **{**self.settings, **settings})

    async def start(
        self,
        app: str = "work",
        *,
        kinds: Sequence[str] | None = None,
        wrapper: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> WorkerProcess:
        """Start a worker process and wait until it takes jobs."""
        options = {
            "app": app,
            "url": self.url,
            "side": str(self.side.path),
            "kinds": kinds,
            "settings": {**self.settings, **settings},
        }
        return await self.run("tests.support.worker", options, wrapper, environment)

    async def run(
        self,
        module: str,
        options: Mapping[str, Any],
        wrapper: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> WorkerProcess:
        """Run a module in a process of its own and wait until it prints "ready"."""
        # Files, not pipes: a child of the process may keep its end open.
        log = self.folder / f"process-{next(self._numbers)}.log"
        output = log.with_suffix(".out")
        with log.open("wb") as stderr, output.open("wb") as stdout:
            process = start(
                module,
                [json.dumps(options)],
                folder=ROOT,
                environment={**os.environ, **WARNINGS, **(environment or {})},
                stdout=stdout.fileno(),
                stderr=stderr.fileno(),
                wrapper=wrapper,
            )
        worker = WorkerProcess(process, output, log)
        self.workers.append(worker)
        await worker.ready()
        return worker

    async def close(self) -> None:
        """End what the test has left running."""
        for worker in self.workers:
            if worker.returncode is None:
                worker.send(signal.SIGKILL)
        for worker in self.workers:
            await worker.exit(PATIENCE)

    async def freeze(self, worker: WorkerProcess) -> None:
        """SIGSTOP, but not in the middle of a write to the file: nobody could write then."""

        async def between_writes() -> bool:
            await worker.freeze()
            if not self.url.startswith("sqlite"):
                return True  # a server ends the transaction of who stands still
            path = self.url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
                try:
                    connection.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    worker.send(signal.SIGCONT)
                    return False
                return True

        await until(between_writes, "the process to be between two writes")

    def query(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Look into the file itself, past every layer under test."""
        with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as connection:
            return connection.execute(statement, parameters).fetchall()

    def execute(self, statement: str, *parameters: Any) -> None:
        """Change the file itself, as time or a fault would."""
        with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as connection, connection:
            connection.execute(statement, parameters)

    def held(self, worker: WorkerProcess) -> Held:
        """What `worker`, frozen or dead, holds according to the queue and its life file."""
        started: set[str] = set()
        waiting: set[str] = set()
        for number, life in self.query(
            "SELECT number, life FROM processes WHERE pid = ?", worker.pid
        ):
            marked = started_jobs(self.folder / "jobs.db-run" / life)
            assert marked is not None
            for job, seq, token in self.query(
                "SELECT id, seq, token FROM jobs WHERE holder = ? AND state = 'running'", number
            ):
                mark = (token, print_of(job))
                (started if marked.get(seq) == mark else waiting).add(job)
        return Held(started, waiting)
