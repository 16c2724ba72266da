"""dramatiq on Redis, with results. It works in threads and has no bulk call.

Results go to a logical database of their own, whose size is the number of finished jobs.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from benchmarks.contenders.base import note_run, once_ended
from benchmarks.contenders.worker import until_told, wait_for_go

MESSAGES = "dramatiq:default.msgs"


def build(folder: Path, settings: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    broker = RedisBroker(url=settings["url"], **settings.get("options", {}))
    backend = RedisBackend(url=settings["url"].removesuffix("/0") + "/1")
    broker.add_middleware(Results(backend=backend, store_results=True))
    dramatiq.set_broker(broker)

    def noop(n: int) -> int:
        return n

    def stamp() -> float:
        return time.time()

    def nap(seconds: float) -> int:
        note_run(folder)
        time.sleep(seconds)
        return os.getpid()

    actors = {job.__name__: dramatiq.actor(job, broker=broker) for job in (noop, stamp, nap)}
    return broker, backend, actors


class DramatiqSession:
    def __init__(self, broker: Any, backend: Any, actors: Mapping[str, Any]) -> None:
        self._broker = broker
        self._backend = backend
        self._actors = actors
        self._messages: dict[str, Any] = {}

    async def send(self, job: str, payload: dict[str, Any]) -> str:
        message = self._actors[job].send(**payload)
        self._messages[message.message_id] = message
        return str(message.message_id)

    async def send_all(self, job: str, payloads: Sequence[dict[str, Any]]) -> None:
        send = self._actors[job].send
        for payload in payloads:
            send(**payload)

    async def results(self, ids: Iterable[str]) -> list[Any]:
        return [(await once_ended(self.record, job_id))["result"] for job_id in ids]

    async def work_left(self) -> bool:
        return bool(self._broker.client.hlen(MESSAGES))

    async def finished(self) -> int:
        return int(self._backend.client.dbsize())

    async def record(self, job_id: str) -> dict[str, Any]:
        """It stores a result first and acknowledges then; either shows that a write came."""
        message = self._messages[job_id]
        key = self._backend.build_message_key(message)
        stored = self._backend.client.lindex(key, 0)
        kept = self._broker.client.hexists(MESSAGES, message.options["redis_message_id"])
        value = None if stored is None else self._backend.encoder.decode(stored)
        return {
            "ended": stored is not None or not kept,
            "stored": stored is not None,
            "acknowledged": not kept,
            "result": value,
        }


@asynccontextmanager
async def connect(folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[DramatiqSession]:
    broker, backend, actors = build(folder, settings)
    try:
        yield DramatiqSession(broker, backend, actors)
    finally:
        broker.close()


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    broker, _, _ = build(folder, settings)
    worker = dramatiq.Worker(broker, **settings.get("worker", {}))
    wait_for_go()
    worker.start()
    until_told()
    worker.stop()
    broker.close()
