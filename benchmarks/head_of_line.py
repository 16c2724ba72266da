"""Jobs of a blocked lane in front of others: what the others notice of it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median

from benchmarks.contenders import penstock_lanes
from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh
from penstock import Penstock

LANES = {
    "blocked": {"max_parallel": 4},
    "open": {"min_interval_seconds": 0.0, "max_parallel": 8},
}


def run(sizes: Sizes, folder: Path) -> list[Result]:
    alone, behind = [], []
    for _ in range(sizes.rounds):
        alone.append(asyncio.run(_seconds(fresh(folder), 0, sizes.others)))
        behind.append(asyncio.run(_seconds(fresh(folder), sizes.blocked_jobs, sizes.others)))
    return [
        Result(
            "head of line",
            f"{sizes.others:,} jobs behind {sizes.blocked_jobs:,} of a blocked lane",
            "x",
            Figure.of("penstock", [median(behind) / median(alone)]),
            None,
            Better.LESS,
            AtMost(1.1, "x"),
            f"Half without a lane, half in a free one: {median(alone):.2f} s alone, "
            f"{median(behind):.2f} s behind them.",
        )
    ]


def _build(folder: Path) -> Penstock:
    app = penstock_lanes.build(folder, {"lanes": LANES})

    @app.job("blocked", lane="blocked")
    async def blocked(ctx: object) -> None:
        raise AssertionError("the lane is paused")

    @app.job("open", lane="open")
    async def in_open(ctx: object) -> None:
        await asyncio.sleep(0.001)

    return app


async def _seconds(folder: Path, in_front: int, others: int) -> float:
    """From the start of the workers until the last of the other jobs is completed."""
    app = _build(folder)
    async with app:
        if in_front:
            await app.enqueue_many("blocked", [None] * in_front)
            await app.steer_lane("blocked", "pause")
        await app.enqueue_many("free", [None] * (others // 2))
        await app.enqueue_many("open", [None] * (others // 2))
        start = time.perf_counter()
        async with app.running():
            while await app.queue.work_left(["free", "open"]):  # noqa: ASYNC110 (looks from outside)
                await asyncio.sleep(0.002)
            return time.perf_counter() - start
