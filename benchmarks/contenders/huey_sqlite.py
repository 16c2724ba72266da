"""huey on SQLite.

huey stores a result unless it is None, so every job here returns something.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from huey import SqliteHuey

from benchmarks.contenders.base import note_run
from benchmarks.contenders.worker import until_told, wait_for_go, worker_command

FILE = "huey.db"
PATIENCE = 60.0

ON_DEMAND = {"initial_delay": 0.001, "max_delay": 0.001}
"""Looks at the queue every ms, for latency; by default every 0.1 s, growing to 10 s."""


def build(folder: Path, fsync: bool | None) -> tuple[SqliteHuey, dict[str, Any]]:
    options = {} if fsync is None else {"fsync": fsync}
    huey = SqliteHuey("bench", filename=str(folder / FILE), **options)

    def noop(n: int) -> int:
        return n

    def stamp() -> float:
        return time.time()

    def nap(seconds: float) -> int:
        note_run(folder)
        time.sleep(seconds)
        return os.getpid()

    return huey, {job.__name__: huey.task()(job) for job in (noop, stamp, nap)}


def default_synchronous(folder: Path) -> int:
    """What huey's default settings make of `PRAGMA synchronous`: 0 off, 1 normal, 2 full."""
    huey, _ = build(folder, None)
    level: int = huey.storage.conn.execute("PRAGMA synchronous").fetchone()[0]
    huey.storage.close()
    return level


class HueyClient:
    def __init__(self, huey: SqliteHuey, tasks: Mapping[str, Any]) -> None:
        self._huey = huey
        self._tasks = tasks

    async def send(self, job: str, payload: dict[str, Any]) -> str:
        return str(self._tasks[job](**payload).id)

    async def send_all(self, job: str, payloads: Sequence[dict[str, Any]]) -> None:
        # There is no bulk call: its own `map` is this loop.
        task = self._tasks[job]
        for payload in payloads:
            task(**payload)

    async def results(self, ids: Iterable[str]) -> list[Any]:
        return [
            self._huey.result(job_id, blocking=True, timeout=PATIENCE, preserve=True)
            for job_id in ids
        ]


class HueyLedger:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def work_left(self) -> bool:
        """huey forgets a task when it takes it, so what is being run cannot be seen."""
        row = self._connection.execute("SELECT EXISTS (SELECT 1 FROM task)").fetchone()
        return bool(row[0])

    def finished(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM kv").fetchone()[0])

    def close(self) -> None:
        self._connection.close()


@dataclass(slots=True, frozen=True)
class HueySqlite:
    """See `Contender`."""

    fsync: bool | None = None
    threads: int = 1
    polling: Mapping[str, float] = field(default_factory=dict)
    name: str = "huey"

    @asynccontextmanager
    async def client(self, folder: Path) -> AsyncIterator[HueyClient]:
        huey, tasks = build(folder, self.fsync)
        try:
            yield HueyClient(huey, tasks)
        finally:
            huey.storage.close()

    @asynccontextmanager
    async def in_process_worker(self, folder: Path) -> AsyncIterator[HueyClient]:
        huey, tasks = build(folder, self.fsync)
        consumer = huey.create_consumer(workers=self.threads, **self.polling)
        threads: list[Thread] = [thread for _, thread in consumer.worker_threads]
        for thread in threads:  # not consumer.start(): it takes over this process's signals
            thread.start()
        try:
            yield HueyClient(huey, tasks)
        finally:
            consumer.stop_flag.set()
            for thread in threads:
                thread.join()
            huey.storage.close()

    def worker(self, folder: Path) -> list[str]:
        return worker_command(__name__, folder, asdict(self))

    @contextmanager
    def ledger(self, folder: Path) -> Iterator[HueyLedger]:
        with closing(HueyLedger(sqlite3.connect(folder / FILE))) as ledger:
            yield ledger


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    huey, _ = build(folder, settings["fsync"])
    consumer = huey.create_consumer(workers=settings["threads"], **settings["polling"])
    wait_for_go()
    consumer.start()
    until_told()
    consumer.stop(graceful=True)
