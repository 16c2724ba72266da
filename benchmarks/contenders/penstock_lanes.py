"""Penstock workers whose jobs call a service on loopback, each in its lane."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.contenders.worker import until_told, wait_for_go, worker_command
from penstock import JobContext, Penstock

FILE = "lanes.db"


def build(folder: Path, settings: Mapping[str, Any]) -> Penstock:
    """`settings` are Penstock's, plus `calls`: kind -> [lane, URL], and `url` of the queue, unless
    it is to be a file in the folder."""
    settings = dict(settings)
    calls: dict[str, tuple[str, str]] = settings.pop("calls", {})
    app = Penstock(settings.pop("url", f"sqlite:///{folder / FILE}"), **settings)

    def register(kind: str, lane: str, url: str) -> None:
        @app.job(kind, lane=lane)
        async def call(ctx: JobContext) -> None:
            await ctx.http.post(url)

    for kind, (lane, url) in calls.items():
        register(kind, lane, url)

    @app.job("free")
    async def free(ctx: JobContext) -> None:
        await asyncio.sleep(0.001)

    return app


def command(folder: Path, settings: Mapping[str, Any]) -> list[str]:
    return worker_command(__name__, folder, settings)


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    app = build(folder, settings)
    wait_for_go()
    asyncio.run(_work(app))


async def _work(app: Penstock) -> None:
    async with app.running():
        await asyncio.to_thread(until_told)
