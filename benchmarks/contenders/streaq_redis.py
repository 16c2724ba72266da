"""streaq on Redis."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from streaq import Worker

from benchmarks.contenders.base import note_run
from benchmarks.contenders.worker import run_until_told, wait_for_go

PATIENCE = 60
BATCH = 1_000
"""Jobs in one pipeline; more at once is no faster."""


def build(folder: Path, settings: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    options = {"handle_signals": False, **settings.get("worker", {})}
    worker = Worker(redis_url=settings["url"], **options)

    async def noop(n: int) -> int:
        return n

    async def stamp() -> float:
        return time.time()

    async def nap(seconds: float) -> int:
        note_run(folder)
        await asyncio.sleep(seconds)
        return os.getpid()

    tasks = {job.__name__: worker.task(job, name=job.__name__) for job in (noop, stamp, nap)}
    return worker, tasks


class StreaqSession:
    def __init__(self, worker: Any, tasks: Mapping[str, Any]) -> None:
        self._worker = worker
        self._tasks = tasks
        self._sent = 0

    async def send(self, job: str, payload: dict[str, Any]) -> str:
        self._sent += 1
        return str((await self._tasks[job].enqueue(**payload)).id)

    async def send_all(self, job: str, payloads: Sequence[dict[str, Any]]) -> None:
        enqueue = self._tasks[job].enqueue
        for first in range(0, len(payloads), BATCH):
            batch = [enqueue(**payload) for payload in payloads[first : first + BATCH]]
            await self._worker.enqueue_many(batch)
        self._sent += len(payloads)

    async def results(self, ids: Iterable[str]) -> list[Any]:
        return [
            (await self._worker.result_by_id(job_id, timeout=PATIENCE)).result for job_id in ids
        ]

    async def work_left(self) -> bool:
        return await self.finished() < self._sent

    async def finished(self) -> int:
        return int(await self._worker.redis.zcard(self._worker._results_set))

    async def record(self, job_id: str) -> dict[str, Any]:
        if not await self._worker.redis.exists([self._worker.results_key + job_id]):
            return {"ended": False}
        result = await self._worker.result_by_id(job_id, timeout=PATIENCE)
        value = result.result if result.success else repr(result.exception)
        return {"ended": True, "result": value}


@asynccontextmanager
async def connect(folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[StreaqSession]:
    worker, tasks = build(folder, settings)
    async with worker:
        yield StreaqSession(worker, tasks)


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    worker, _ = build(folder, settings)
    wait_for_go()
    asyncio.run(run_until_told(worker.run_async()))
