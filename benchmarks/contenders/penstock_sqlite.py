"""Penstock on SQLite, with its default settings unless told otherwise."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import note_run
from benchmarks.contenders.worker import until_told, wait_for_go, worker_command
from penstock import Penstock

FILE = "penstock.db"
PATIENCE = 60.0


def build(folder: Path, settings: Mapping[str, Any], url: str | None = None) -> Penstock:
    app = Penstock(url or f"sqlite:///{folder / FILE}", **settings)

    @app.job("noop")
    async def noop(ctx: object, n: int) -> int:
        return n

    @app.job("stamp")
    async def stamp(ctx: object) -> float:
        return time.time()

    @app.job("nap")
    async def nap(ctx: object, seconds: float) -> int:
        note_run(folder)
        await asyncio.sleep(seconds)
        return os.getpid()

    return app


class PenstockClient:
    def __init__(self, app: Penstock) -> None:
        self.app = app

    async def send(self, job: str, payload: dict[str, Any]) -> str:
        return (await self.app.enqueue(job, payload)).id

    async def send_all(self, job: str, payloads: Sequence[dict[str, Any]]) -> None:
        await self.app.enqueue_many(job, payloads)

    async def results(self, ids: Iterable[str]) -> list[Any]:
        return [(await self.app.wait(job_id, timeout=PATIENCE)).result for job_id in ids]


class PenstockLedger:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def work_left(self) -> bool:
        row = self._connection.execute(
            "SELECT EXISTS (SELECT 1 FROM jobs WHERE ready > 0)"
            " OR EXISTS (SELECT 1 FROM jobs WHERE holder IS NOT NULL)"
            " OR EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND ready = 0)"
        ).fetchone()
        return bool(row[0])

    def finished(self) -> int:
        row = self._connection.execute("SELECT count(*) FROM jobs WHERE state = 'completed'")
        return int(row.fetchone()[0])

    def close(self) -> None:
        self._connection.close()


@dataclass(slots=True, frozen=True)
class PenstockSqlite:
    """See `Contender`."""

    name: str = "penstock"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @asynccontextmanager
    async def client(self, folder: Path) -> AsyncIterator[PenstockClient]:
        app = build(folder, self.settings)
        async with app:
            yield PenstockClient(app)

    @asynccontextmanager
    async def in_process_worker(self, folder: Path) -> AsyncIterator[PenstockClient]:
        app = build(folder, self.settings)
        async with app.running():
            yield PenstockClient(app)

    def worker(self, folder: Path) -> list[str]:
        return worker_command(__name__, folder, self.settings)

    @contextmanager
    def ledger(self, folder: Path) -> Iterator[PenstockLedger]:
        with closing(PenstockLedger(sqlite3.connect(folder / FILE))) as ledger:
            yield ledger


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    app = build(folder, settings)
    wait_for_go()

    async def run() -> None:
        async with app.running():
            await asyncio.to_thread(until_told)

    asyncio.run(run())
