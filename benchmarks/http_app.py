"""The app behind the benchmarks of the server."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from penstock import Penstock

app = Penstock()


@app.job("add")
async def add(ctx: object, a: int = 1, b: int = 2) -> int:
    return a + b


@app.job("gated")
async def gated(ctx: object, gate: str) -> float:
    """When the file `gate` was there."""
    while not Path(gate).exists():  # noqa: ASYNC110, ASYNC240 (the harness is another process)
        await asyncio.sleep(0.005)
    return time.time()
