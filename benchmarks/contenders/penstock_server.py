"""Penstock on the queue that a URL names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.contenders.penstock_sqlite import PenstockClient, build
from benchmarks.contenders.worker import until_told, wait_for_go
from penstock import JobState, Penstock


class PenstockSession(PenstockClient):
    async def work_left(self) -> bool:
        return await self.app.queue.work_left(None)

    async def finished(self) -> int:
        return sum(kind.states.get(JobState.COMPLETED, 0) for kind in await self.app.counts())

    async def record(self, job_id: str) -> dict[str, Any]:
        job = await self.app.get(job_id)
        return {
            "ended": job.finished_at is not None,
            "state": str(job.state),
            "result": job.result,
            "finished": job.finished_at,
            "attempts": job.attempts,
        }


@asynccontextmanager
async def connect(folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[PenstockSession]:
    async with _app(folder, settings) as app:
        yield PenstockSession(app)


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    app = _app(folder, settings)
    wait_for_go()

    async def run() -> None:
        async with app.running():
            await asyncio.to_thread(until_told)

    asyncio.run(run())


def _app(folder: Path, settings: Mapping[str, Any]) -> Penstock:
    app = build(folder, settings.get("worker", {}), settings["url"])

    @app.job("limited", lane="limited")
    async def limited(ctx: object, per_second: float) -> None:
        """Its lane has the rate, so that there is nothing to wait for in here."""

    return app
