"""SAQ on Redis. Jobs may be retried, else what a killed worker held would be given up."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from saq import Queue, Worker

from benchmarks.contenders.base import at_once, note_run, once_ended
from benchmarks.contenders.worker import run_until_told, wait_for_go

CALLERS = 20
"""SAQ's own limit of operations under way."""
SWEEP_SECONDS = 60
"""Its default."""
ENDED = ("complete", "failed", "aborted")


class SaqSession:
    def __init__(self, queue: Any, options: Mapping[str, Any]) -> None:
        self._queue = queue
        self._options = options
        self._sent = 0

    async def send(self, job: str, payload: dict[str, Any]) -> str:
        self._sent += 1
        return str((await self._queue.enqueue(job, **self._options, **payload)).key)

    async def send_all(self, job: str, payloads: Sequence[dict[str, Any]]) -> None:
        await at_once((partial(self.send, job, payload) for payload in payloads), CALLERS)

    async def results(self, ids: Iterable[str]) -> list[Any]:
        return [(await once_ended(self.record, job_id))["result"] for job_id in ids]

    async def work_left(self) -> bool:
        return bool(await self._queue.count("incomplete"))

    async def finished(self) -> int:
        return self._sent - int(await self._queue.count("incomplete"))

    async def record(self, job_id: str) -> dict[str, Any]:
        job = await self._queue.job(job_id)
        return {"ended": job.status in ENDED, "status": job.status, "result": job.result}


@asynccontextmanager
async def connect(folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[SaqSession]:
    queue = Queue.from_url(settings["url"])
    await queue.connect()
    try:
        yield SaqSession(queue, settings.get("job", {}))
    finally:
        await queue.disconnect()


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    wait_for_go()
    asyncio.run(_work(folder, settings))


async def _work(folder: Path, settings: Mapping[str, Any]) -> None:
    starts = time.monotonic()

    async def noop(ctx: object, n: int) -> int:
        return n

    async def stamp(ctx: object) -> float:
        return time.time()

    async def nap(ctx: object, seconds: float) -> int:
        note_run(folder)
        await asyncio.sleep(seconds)
        return os.getpid()

    async def limited(ctx: object, per_second: float) -> None:
        """The usual limiter: a job waits for its turn while it holds a worker."""
        nonlocal starts
        starts = max(starts, time.monotonic()) + 1 / per_second
        await asyncio.sleep(starts - time.monotonic())

    jobs = {job.__name__: job for job in (noop, stamp, nap, limited)}
    queue = Queue.from_url(settings["url"])
    await queue.connect()
    options = settings.get("worker", {})
    worker = Worker(queue, list(jobs.items()), **options)
    if not await queue.count("active"):
        # A worker sweeps when it starts. Beside a backlog it then meets the jobs that it has just
        # taken, thinks that they are lost, and waits 5 s for each. Nothing can be lost yet, so the
        # sweep is done (its lock taken) before: the figures are those of a worker that runs.
        await queue.sweep(options.get("timers", {}).get("sweep", SWEEP_SECONDS))
    await run_until_told(worker.start())
    await queue.disconnect()
