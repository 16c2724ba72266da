"""taskiq on Redis: its list broker, or its stream broker, which acknowledges.

Results go to a logical database of their own, whose size is the number of finished jobs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvloop
from redis.asyncio import Redis
from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend, RedisStreamBroker

from benchmarks.contenders.base import at_once, note_run, once_ended
from benchmarks.contenders.worker import run_until_told, wait_for_go

BROKERS = {"list": ListQueueBroker, "stream": RedisStreamBroker}
CALLERS = 32


def build(folder: Path, settings: Mapping[str, Any]) -> Any:
    options = {"consumer_id": "0"} if settings["broker"] == "stream" else {}
    options |= settings.get("options", {})
    broker = BROKERS[settings["broker"]](settings["url"], **options)
    broker = broker.with_result_backend(RedisAsyncResultBackend(_results_url(settings["url"])))

    async def noop(n: int) -> int:
        return n

    async def stamp() -> float:
        return time.time()

    async def nap(seconds: float) -> int:
        note_run(folder)
        await asyncio.sleep(seconds)
        return os.getpid()

    for job in (noop, stamp, nap):
        broker.register_task(job, task_name=job.__name__)
    return broker


class TaskiqSession:
    def __init__(self, broker: Any, results: Redis) -> None:
        self._broker = broker
        self._results = results
        self._sent = 0

    async def send(self, job: str, payload: dict[str, Any]) -> str:
        self._sent += 1
        return str((await self._broker.find_task(job).kiq(**payload)).task_id)

    async def send_all(self, job: str, payloads: Sequence[dict[str, Any]]) -> None:
        await at_once((partial(self.send, job, payload) for payload in payloads), CALLERS)

    async def results(self, ids: Iterable[str]) -> list[Any]:
        return [(await once_ended(self.record, job_id))["result"] for job_id in ids]

    async def work_left(self) -> bool:
        return await self.finished() < self._sent

    async def finished(self) -> int:
        return int(await self._results.dbsize())

    async def record(self, job_id: str) -> dict[str, Any]:
        backend = self._broker.result_backend
        if not await backend.is_result_ready(job_id):
            return {"ended": False}
        result = await backend.get_result(job_id)
        return {"ended": True, "result": result.return_value, "failed": result.is_err}


@asynccontextmanager
async def connect(folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[TaskiqSession]:
    broker = build(folder, settings)
    await broker.startup()
    results = Redis.from_url(_results_url(settings["url"]))
    try:
        yield TaskiqSession(broker, results)
    finally:
        await results.aclose()
        await broker.shutdown()


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    broker = build(folder, settings)
    wait_for_go()
    uvloop.run(_work(broker, settings))  # as its own command does


async def _work(broker: Any, settings: Mapping[str, Any]) -> None:
    broker.is_worker_process = True
    await broker.startup()
    await run_until_told(run_receiver_task(broker, **settings.get("worker", {})))
    await broker.shutdown()


def _results_url(url: str) -> str:
    return url.removesuffix("/0") + "/1"
