"""How well four processes use the tokens of a provider, judged there: never above, hardly below;
and how many permits one lane that counts them grants."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import AtLeast, AtMost, Better, Cell, Figure, Result
from benchmarks.sizes import Sizes
from penstock import JobContext, Penstock
from tests.conformance.support import BACKENDS
from tests.support.metered_provider import Limits, MeteredProvider
from tests.support.spending import (
    MOST,
    PARALLEL,
    PROCESSES,
    TOGETHER,
    enqueue_halves,
    error_in_flight,
    lane_of,
    limits_of,
    look_on,
    requests_of,
    share_used,
    spenders,
    start,
)

QUEUES = ("sqlite", "postgres", "redis")
TITLE = f"tokens used, {PROCESSES} processes"
TOKENS = 200_000
"""Of a minute, at a tenth of the time."""
LAG = 1.0
"""Seconds after which an answer's use has reached the lane."""
REQUESTS = "requests only"
ALONE = "a limiter in each process"


@dataclass(slots=True, frozen=True)
class Seen:
    used: float
    """Of the tokens that were allowed, in percent."""
    refused: int
    asked: int
    worst: float
    """Of the limit, in percent."""


def run(sizes: Sizes, folder: Path) -> list[Result]:
    return asyncio.run(_run(sizes, folder))


async def _run(sizes: Sizes, folder: Path) -> list[Result]:
    results = []
    for window in ("sliding", "bucket"):
        for queue in QUEUES:
            place = _made(folder, f"{queue}-{window}")
            ours = await _spend(sizes, place, queue, window)
            peers = {}
            if (queue, window) == (QUEUES[0], "sliding"):
                for way in (REQUESTS, ALONE):
                    peers[way] = await _spend(sizes, _made(folder, way), queue, window, way)
            results += _judged(f"{queue}, {window}", ours, peers)
    for queue in QUEUES:
        unsaid = await _spend(sizes, _made(folder, f"{queue}-unsaid"), queue, "sliding", "unsaid")
        results += _judged(f"{queue}, sliding, requests that say nothing", unsaid, {})
        results += await _too_low(sizes, _made(folder, f"{queue}-low"), queue)
        results.append(await _hot(sizes, _made(folder, f"{queue}-hot"), queue))
    return results


def _made(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


async def _spend(sizes: Sizes, place: Path, queue: str, window: str, way: str = "") -> Seen:
    limits = limits_of(TOKENS, TOGETHER, sizes.token_seconds, window)
    windows = sizes.token_windows
    with MeteredProvider(limits) as provider:
        requests = requests_of(provider, (windows + 3) * TOKENS, forgives=False)
        async with spenders(place, queue, _lane(limits, requests, way)) as (farm, app):
            payloads: list[dict[str, Any]] = [{"request": one} for one in requests]
            if way == ALONE:
                own = {"tokens": TOKENS // PROCESSES, "window": limits.seconds}
                await app.enqueue_many("spend_alone", [{**one, **own} for one in payloads])
            elif way:
                await app.enqueue_many("spend_unsaid", payloads)
            else:
                await enqueue_halves(app, requests)
            await start(farm)
            seen = await look_on(provider, windows)
        share = share_used(provider, seen, windows)
        worst = max(provider.worst.values())
        return Seen(100 * share, len(provider.refused), len(provider.log), 100 * worst)


def _lane(limits: Limits, requests: Sequence[dict[str, Any]], way: str) -> dict[str, Any]:
    if way != REQUESTS:
        return lane_of(limits)
    usual = sum(sum(one["real"].values()) for one in requests) / len(requests)
    rate = {"requests_per_interval": int(TOKENS / usual), "interval_seconds": limits.seconds}
    return {**rate, "max_parallel": PARALLEL}


def _judged(what: str, ours: Seen, peers: dict[str, Seen]) -> list[Result]:
    others: dict[str, Cell] = {who: Figure.of(who, [one.used]) for who, one in peers.items()}
    told = "".join(
        f" {who}: {one.refused} of {one.asked} requests were answered 429, at most "
        f"{one.worst:.0f} % were used."
        for who, one in peers.items()
    )
    note = (
        f"Requests of 10 to {MOST:,} tokens that use a third to all of that; {TOKENS:,} allowed in "
        f"a window. At most {ours.worst:.1f} % of it were ever used, {ours.asked} requests.{told}"
    )
    figure = Figure.of("penstock", [ours.used])
    refused = Figure.of("penstock", [float(ours.refused)])
    more, less = Better.MORE, Better.LESS
    return [
        Result.beside(TITLE, what, "%", figure, others, more, AtLeast(90, "%"), note),
        Result(TITLE, f"{what}: 429s", "requests", refused, None, less, AtMost(0, "requests")),
    ]


async def _too_low(sizes: Sizes, place: Path, queue: str) -> list[Result]:
    """Bounds that are too low by up to 3x: how far above it came, beside the error in flight."""
    limits = limits_of(TOKENS, TOGETHER, sizes.token_seconds, "sliding")
    with MeteredProvider(limits, refuses=False) as provider:
        tokens = sizes.token_windows * TOKENS
        requests = requests_of(provider, tokens, (1.0, 3.0), forgives=False)
        async with spenders(place, queue, lane_of(limits)) as (farm, app):
            await enqueue_halves(app, requests)
            await start(farm)
            await app.drain(timeout=600)
        over = max(0.0, (provider.worst["tokens"] - 1) * TOKENS)
        most = error_in_flight(provider.log, LAG)
        lost = len(requests) - len(provider.log)
    what = f"{queue}, bounds too low by up to 3x"
    note = f"{most:,} tokens was the most by which requests under way were larger than they said."
    figures = [Figure.of("penstock", [one]) for one in (100 * over / most, float(lost))]
    share, none = AtMost(100, "%"), AtMost(0, "requests")
    less = Better.LESS
    return [
        Result(
            TITLE,
            f"{what}: above, of the error in flight",
            "%",
            figures[0],
            None,
            less,
            share,
            note,
        ),
        Result(TITLE, f"{what}: lost", "requests", figures[1], None, less, none),
    ]


async def _hot(sizes: Sizes, place: Path, queue: str) -> Result:
    """Permits of one lane, with and without amounts, by one job that wants very many."""
    counted = {"tokens_per_interval": 10**9, "interval_seconds": 60.0, "max_parallel": 64}
    plain = {"min_interval_seconds": 0.0, "max_parallel": 64}
    app = Penstock(BACKENDS[queue].url(place), lanes={"counted": counted, "plain": plain})

    @app.job("gather", timeout=600)
    async def gather(ctx: JobContext, lane: str, permits: int) -> float:
        async def one() -> None:
            async with ctx.lanes.permit(lane, tokens=20) as permit:
                permit.used(tokens=7)

        begun = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(permits)))
        return permits / (time.perf_counter() - begun)

    rates: dict[str, list[float]] = {"counted": [], "plain": []}
    async with app, app.running():
        for _ in range(sizes.rounds):
            for lane, found in rates.items():
                job = await app.enqueue("gather", {"lane": lane, "permits": sizes.token_permits})
                found.append(await app.result(job.id, timeout=600))
    return Result(
        "permits of one lane",
        f"{queue}, a lane that counts tokens",
        "permits/s",
        Figure.of("penstock", rates["counted"]),
        Figure.of("a lane that counts none", rates["plain"]),
        Better.MORE,
        AtLeast(2000, "permits/s"),
        "One job in one process asks for all of them at once, and settles each.",
    )
