"""Jobs of a blocked lane in front of others: what the others notice of it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median

from benchmarks.contenders import penstock_lanes
from benchmarks.contenders.served import Served
from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.served import peers
from benchmarks.served.arena import Arena
from benchmarks.served.servers import Valkey
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh
from penstock import Penstock

LANES = {
    "blocked": {"max_parallel": 4},
    "open": {"min_interval_seconds": 0.0, "max_parallel": 8},
}
PER_SECOND = 20
LIMITED = {
    "worker": {"lanes": {"limited": {"requests_per_interval": PER_SECOND, "interval_seconds": 1.0}}}
}
"""For Penstock: the same limit that the peer has inside its jobs."""
OTHERS = 100


def run(sizes: Sizes, folder: Path) -> list[Result]:
    return [_blocked(sizes, folder), _limited(sizes, folder)]


def _blocked(sizes: Sizes, folder: Path) -> Result:
    alone, behind = [], []
    for _ in range(sizes.rounds):
        alone.append(asyncio.run(_seconds(fresh(folder), 0, sizes.others)))
        behind.append(asyncio.run(_seconds(fresh(folder), sizes.blocked_jobs, sizes.others)))
    return Result(
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


def _limited(sizes: Sizes, folder: Path) -> Result:
    """The same on a smaller scale, with a lane that is slow and not blocked: so that a queue
    whose jobs wait for their turn while they hold a worker comes to an end."""
    ours = peers.penstock()
    saq = next(peer for peer in peers.on_redis() if peer.name == "SAQ")
    seen: list[str] = []
    with Valkey() as server:
        arena = Arena(server, ours, [saq], sizes, folder)

        def ratio(contender: Served) -> Figure:
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(sizes.rounds):
                for in_front, some in zip((0, sizes.limited_jobs), times, strict=True):
                    some.append(_last_start(arena, contender, in_front))
            alone, behind = map(median, times)
            seen.append(f"{contender.name} {alone:.2f} s alone, {behind:.2f} s behind them")
            return Figure.of(contender.name, [behind / alone])

        cells = arena.cells(ratio)
    return Result.beside(
        "head of line",
        f"{OTHERS} jobs behind {sizes.limited_jobs} of a lane of {PER_SECOND} a second",
        "x",
        cells[ours.name],
        {saq.name: cells[saq.name]},
        Better.LESS,
        None,
        "Until the last of the others starts, both on one Valkey, 10 at a time. SAQ has the usual "
        "limiter inside the job, which holds a worker while it waits for its turn: "
        f"{'; '.join(seen)}.",
    )


def _last_start(arena: Arena, contender: Served, in_front: int) -> float:
    """Seconds from the start of the worker to that of the last of the other jobs."""
    with arena.run(contender, LIMITED if contender is arena.ours else {}) as run:
        run.sender.fill("limited", {"per_second": PER_SECOND}, in_front)
        others = [run.sender.send("stamp", {}) for _ in range(OTHERS)]
        with run.worker() as worker:
            worker.ready()
            start = time.time()
            worker.go()
            return float(max(run.sender.results(others)) - start)


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
            await app.control_lane("blocked", "pause")
        await app.enqueue_many("free", [None] * (others // 2))
        await app.enqueue_many("open", [None] * (others // 2))
        start = time.perf_counter()
        async with app.running():
            while await app.queue.work_left(["free", "open"]):  # noqa: ASYNC110 (looks from outside)
                await asyncio.sleep(0.002)
            return time.perf_counter() - start
