"""What a service gives a caller without any queue: coroutines that post back to back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.contenders.worker import run_until_told, wait_for_go, worker_command


def command(folder: Path, url: str, callers: int) -> list[str]:
    return worker_command(__name__, folder, {"url": url, "callers": callers})


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    wait_for_go()
    asyncio.run(_work(settings["url"], settings["callers"]))


async def _work(url: str, callers: int) -> None:
    async with httpx2.AsyncClient() as client:

        async def call() -> None:
            while True:
                (await client.post(url)).raise_for_status()

        async def calls() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(callers):
                    group.create_task(call())

        await run_until_told(calls())
