"""Penstock ingests a steady stream of small documents, until it is told to stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.contenders.worker import run_until_told, wait_for_go
from benchmarks.documents.texts import PAGE_TOKENS, writers
from penstock import Penstock


def work(folder: Path, settings: Mapping[str, Any]) -> None:
    asyncio.run(_work(settings["url"], settings["per_second"]))


async def _work(url: str, per_second: float) -> None:
    app = Penstock(url)
    app.use("documents")
    async with app.running():
        await app.documents.add("The first loads what the others need.", id="first")
        await app.documents.wait("first", timeout=60)
        wait_for_go()
        await run_until_told(_add(app, per_second))


async def _add(app: Penstock, per_second: float) -> None:
    start = time.monotonic()
    for number, writer in enumerate(writers(11)):
        await asyncio.sleep(start + number / per_second - time.monotonic())
        await app.documents.add(writer.prose(PAGE_TOKENS), id=f"added-{number}")
