"""procrastinate on PostgreSQL. It stores no results.

It does not take jobs back from dead workers by itself: its documentation gives a task to write,
which asks for stalled jobs and retries them. Every worker process here does that each second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import procrastinate

from benchmarks.contenders.base import note_run, note_stamp, noted_stamps
from benchmarks.contenders.worker import run_until_told, wait_for_go

RESCUE_SECONDS = 1.0
LEFT = "SELECT count(*) AS n FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
ANY_LEFT = (
    "SELECT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status = 'todo')"
    " OR EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status = 'doing') AS yes"
)
STATUS = "SELECT status::text, attempts FROM procrastinate_jobs WHERE id = %(id)s"
EVENTS = "SELECT type::text FROM procrastinate_events WHERE job_id = %(id)s ORDER BY id"


def build(folder: Path, url: str) -> tuple[Any, dict[str, Any]]:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))

    async def noop(context: Any, n: int) -> int:
        return n

    async def stamp(context: Any) -> None:
        note_stamp(folder, context.job.id, time.time())

    async def nap(context: Any, seconds: float) -> None:
        note_run(folder)
        await asyncio.sleep(seconds)

    jobs = (noop, stamp, nap)
    tasks = {job.__name__: app.task(name=job.__name__, pass_context=True)(job) for job in jobs}
    return app, tasks


class ProcrastinateSession:
    def __init__(self, folder: Path, app: Any, tasks: Mapping[str, Any]) -> None:
        self._folder = folder
        self._connector = app.connector
        self._tasks = tasks
        self._sent = 0

    async def send(self, job: str, payload: dict[str, Any]) -> str:
        self._sent += 1
        return str(await self._tasks[job].defer_async(**payload))

    async def send_all(self, job: str, payloads: Sequence[dict[str, Any]]) -> None:
        await self._tasks[job].batch_defer_async(*payloads)
        self._sent += len(payloads)

    async def results(self, ids: Iterable[str]) -> list[Any]:
        return list(await noted_stamps(self._folder, ids))

    async def work_left(self) -> bool:
        return bool((await self._connector.execute_query_one_async(ANY_LEFT))["yes"])

    async def finished(self) -> int:
        left = (await self._connector.execute_query_one_async(LEFT))["n"]
        return self._sent - int(left)

    async def record(self, job_id: str) -> dict[str, Any]:
        number = int(job_id)
        row = await self._connector.execute_query_one_async(STATUS, id=number)
        events = await self._connector.execute_query_all_async(EVENTS, id=number)
        return {
            "ended": row["status"] not in ("todo", "doing"),
            **row,
            "events": [event["type"] for event in events],
        }


@asynccontextmanager
async def connect(folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[ProcrastinateSession]:
    app, tasks = build(folder, settings["url"])
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        yield ProcrastinateSession(folder, app, tasks)


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    app, _ = build(folder, settings["url"])
    wait_for_go()
    asyncio.run(run_until_told(_work(app, settings)))


async def _work(app: Any, settings: Mapping[str, Any]) -> None:
    options = {"install_signal_handlers": False, **settings.get("worker", {})}
    async with app.open_async(), asyncio.TaskGroup() as group:
        group.create_task(_rescue(app, options.get("stalled_worker_timeout", 30.0)))
        group.create_task(app.run_worker_async(**options))


async def _rescue(app: Any, stalled_seconds: float) -> None:
    while True:
        manager = app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=stalled_seconds):
            await manager.retry_job(job)
        await asyncio.sleep(RESCUE_SECONDS)
