"""arq on Redis. It has no bulk call."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from arq import Worker, create_pool, func
from arq.connections import RedisSettings
from arq.constants import default_queue_name
from arq.jobs import Job

from benchmarks.contenders.base import at_once, note_run
from benchmarks.contenders.worker import run_until_told, wait_for_go

CALLERS = 32
PATIENCE = 60
POLL_SECONDS = 0.02


class ArqSession:
    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._sent = 0

    async def send(self, job: str, payload: dict[str, Any]) -> str:
        self._sent += 1
        return str((await self._pool.enqueue_job(job, **payload)).job_id)

    async def send_all(self, job: str, payloads: Sequence[dict[str, Any]]) -> None:
        await at_once((partial(self.send, job, payload) for payload in payloads), CALLERS)

    async def results(self, ids: Iterable[str]) -> list[Any]:
        jobs = [Job(job_id, self._pool) for job_id in ids]
        return [await job.result(timeout=PATIENCE, poll_delay=POLL_SECONDS) for job in jobs]

    async def work_left(self) -> bool:
        return bool(await self._pool.zcard(default_queue_name))

    async def finished(self) -> int:
        return self._sent - int(await self._pool.zcard(default_queue_name))

    async def record(self, job_id: str) -> dict[str, Any]:
        info = await Job(job_id, self._pool).result_info()
        if info is None:
            return {"ended": False}
        return {"ended": True, "result": info.result if info.success else repr(info.result)}


@asynccontextmanager
async def connect(folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[ArqSession]:
    pool = await create_pool(RedisSettings.from_dsn(settings["url"]))
    try:
        yield ArqSession(pool)
    finally:
        await pool.aclose()


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    wait_for_go()
    asyncio.run(_work(folder, settings))


async def _work(folder: Path, settings: Mapping[str, Any]) -> None:
    async def noop(ctx: object, n: int) -> int:
        return n

    async def stamp(ctx: object) -> float:
        return time.time()

    async def nap(ctx: object, seconds: float) -> int:
        note_run(folder)
        await asyncio.sleep(seconds)
        return os.getpid()

    worker = Worker(
        [func(job, name=job.__name__) for job in (noop, stamp, nap)],
        redis_settings=RedisSettings.from_dsn(settings["url"]),
        handle_signals=False,
        **settings.get("worker", {}),
    )
    await run_until_told(worker.async_run())
    await worker.close()
