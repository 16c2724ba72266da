"""PgQueuer on PostgreSQL, by asyncpg. It deletes a job when it is done and stores no results."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from benchmarks.contenders.base import note_run, note_stamp, noted_stamps
from benchmarks.contenders.worker import run_until_told, wait_for_go


class PgQueuerSession:
    def __init__(self, folder: Path, connection: Any, queries: Any) -> None:
        self._folder = folder
        self._connection = connection
        self._queries = queries
        self._sent = 0

    async def send(self, job: str, payload: dict[str, Any]) -> str:
        self._sent += 1
        ids = await self._queries.enqueue(job, json.dumps(payload).encode())
        return str(ids[0])

    async def send_all(self, job: str, payloads: Sequence[dict[str, Any]]) -> None:
        count = len(payloads)
        data = [json.dumps(payload).encode() for payload in payloads]
        await self._queries.enqueue([job] * count, data, [0] * count)
        self._sent += count

    async def results(self, ids: Iterable[str]) -> list[Any]:
        return list(await noted_stamps(self._folder, ids))

    async def work_left(self) -> bool:
        return bool(await self._connection.fetchval("SELECT EXISTS (SELECT 1 FROM pgqueuer)"))

    async def finished(self) -> int:
        left = await self._connection.fetchval("SELECT count(*) FROM pgqueuer")
        return self._sent - int(left)

    async def record(self, job_id: str) -> dict[str, Any]:
        number = int(job_id)
        row = await self._connection.fetchval("SELECT true FROM pgqueuer WHERE id = $1", number)
        log = await self._connection.fetch(
            "SELECT status::text FROM pgqueuer_log WHERE job_id = $1 ORDER BY id", number
        )
        return {"ended": not row, "log": [entry["status"] for entry in log]}


@asynccontextmanager
async def connect(folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[PgQueuerSession]:
    connection = await asyncpg.connect(settings["url"])
    try:
        queries = Queries(AsyncpgDriver(connection))
        if not await queries.schema_is_installed():
            await queries.install()
        yield PgQueuerSession(folder, connection, queries)
    finally:
        await connection.close()


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    wait_for_go()
    uvloop.run(_work(folder, settings))  # as its own command does


async def _work(folder: Path, settings: Mapping[str, Any]) -> None:
    async def noop(job: Any) -> None:
        json.loads(job.payload)

    async def stamp(job: Any) -> None:
        note_stamp(folder, job.id, time.time())

    async def nap(job: Any) -> None:
        note_run(folder)
        await asyncio.sleep(json.loads(job.payload)["seconds"])

    connection = await asyncpg.connect(settings["url"])
    manager = QueueManager(Queries(AsyncpgDriver(connection)))
    for handler in (noop, stamp, nap):
        manager.entrypoint(handler.__name__)(handler)
    options = dict(settings.get("worker", {}))
    for name in ("heartbeat_timeout", "dequeue_timeout"):
        if name in options:
            options[name] = timedelta(seconds=options[name])
    await run_until_told(manager.run(**options))
