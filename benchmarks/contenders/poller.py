"""The usual hand-written loop: workers that take an item and try it until the service answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.contenders.worker import until_told, wait_for_go, worker_command

TRIES = "tries.txt"
WORKERS = 10
"""As many as a Penstock process has."""


def command(folder: Path, url: str, items: int, poll_seconds: float) -> list[str]:
    settings = {"url": url, "items": items, "poll_seconds": poll_seconds}
    return worker_command(__name__, folder, settings)


def failed_tries(folder: Path) -> int:
    """Known once all items are done."""
    return int((folder / TRIES).read_text())


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    wait_for_go()
    failed = asyncio.run(_work(**settings))
    (folder / TRIES).write_text(str(failed))
    until_told()


async def _work(url: str, items: int, poll_seconds: float) -> int:
    waiting = iter(range(items))
    failed = 0
    async with httpx2.AsyncClient() as client:

        async def worker() -> None:
            nonlocal failed
            for _ in waiting:
                while True:
                    try:
                        (await client.post(url)).raise_for_status()
                        break
                    except httpx2.HTTPError:
                        failed += 1
                        await asyncio.sleep(poll_seconds)

        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(worker())
    return failed
