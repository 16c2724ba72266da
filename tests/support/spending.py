"""Has four processes spend the tokens of one provider, on any queue."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from penstock import JobState, Penstock
from tests.conformance.support import BACKENDS
from tests.support.apps.spending import LANE
from tests.support.metered_provider import Limits, MeteredProvider, Seen
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

PROCESSES = 4
LEAST, MOST = 10, 20_000
"""Tokens that a request may use."""
PARALLEL = 12
TOGETHER, APART = ("tokens",), ("input", "output")
KEYS = {
    "tokens": "tokens_per_interval",
    "input": "input_tokens_per_interval",
    "output": "output_tokens_per_interval",
}


def limits_of(tokens: int, meters: tuple[str, ...], seconds: float, window: str) -> Limits:
    """So many tokens of so many seconds, together, or three quarters and a half of them apart."""
    shares = {"tokens": 1.0, "input": 0.75, "output": 0.5}
    counted: dict[str, Any] = {meter: int(shares[meter] * tokens) for meter in meters}
    return Limits(**counted, seconds=seconds, window=window)


def lane_of(limits: Limits) -> dict[str, Any]:
    """The lane of such a provider."""
    counted = {key: getattr(limits, meter) for meter, key in KEYS.items()}
    return {
        **{key: limit for key, limit in counted.items() if limit is not None},
        "interval_seconds": limits.seconds,
        "window": limits.window,
        "max_parallel": PARALLEL,
    }


def requests_of(
    provider: MeteredProvider,
    tokens: float,
    real: tuple[float, float] = (1 / 3, 1.0),
    *,
    forgives: bool = True,
    seed: int = 7,
) -> list[dict[str, Any]]:
    """Requests of mixed sizes that really use so many tokens in all, each a share of its bound."""
    chance, found, there = random.Random(seed), list[dict[str, Any]](), 0
    while there < tokens:
        size = int(LEAST * (MOST / LEAST) ** chance.random())
        sent = chance.randint(size // 4, 3 * size // 4)
        share = chance.uniform(*real)
        bound = {"tokens": size, "input": sent, "output": size - sent}
        used = {"input": int(sent * share), "output": int((size - sent) * share)}
        request = {"url": provider.url, "bound": bound, "real": used, "forgives": forgives}
        found.append({**request, "seconds": chance.uniform(0.01, 0.1)})
        there += sum(used.values())
    return found


@asynccontextmanager
async def spenders(
    folder: Path, queue: str, lane: Mapping[str, Any]
) -> AsyncIterator[tuple[Farm, Penstock]]:
    """A queue, and an app without workers; the processes are started by `start`."""
    lanes = {LANE: dict(lane)}
    farm = Farm(folder, url=BACKENDS[queue].url(folder), lanes=lanes, lease_seconds=120.0)
    farm.settings["retry_base_seconds"] = 0.2
    try:
        async with farm.app("spending") as app:
            yield farm, app
    finally:
        await farm.close()


async def start(farm: Farm, workers: int = 4) -> None:
    for _ in range(PROCESSES):
        await farm.start("spending", max_workers=workers)


async def enqueue_halves(app: Penstock, requests: list[dict[str, Any]]) -> None:
    """Half of them as jobs in the lane, half with permits inside of jobs."""
    half = len(requests) // 2
    await app.enqueue_many("spend", [{"request": one} for one in requests[:half]])
    some = [{"requests": requests[half + n :: PROCESSES]} for n in range(PROCESSES)]
    await app.enqueue_many("spend_many", some)


async def spend(
    folder: Path,
    queue: str,
    provider: MeteredProvider,
    *,
    windows: float,
    real: tuple[float, float] = (1 / 3, 1.0),
) -> int:
    """Make requests of as many tokens as so many windows allow, until all of them are answered; how
    many they are."""
    limits = provider.limits
    allowed = limits.tokens or (limits.input or 0) + (limits.output or 0)
    requests = requests_of(provider, windows * allowed, real)
    async with spenders(folder, queue, lane_of(limits)) as (farm, app):
        await enqueue_halves(app, requests)
        await start(farm)
        await app.drain(timeout=10 * PATIENCE)
        failed = await app.jobs(states=[JobState.FAILED])
    assert not failed, failed
    return len(requests)


async def look_on(provider: MeteredProvider, windows: int) -> list[Seen]:
    """What is answered in so many whole windows, once it has been spent for one."""
    await until(lambda: bool(provider.log), "the first request")
    begin = provider.log[0].at + provider.limits.seconds
    end = begin + windows * provider.limits.seconds
    await asyncio.sleep(end - time.time())
    return [one for one in list(provider.log) if begin <= one.at < end]


def share_used(provider: MeteredProvider, seen: list[Seen], windows: int) -> float:
    """Of the tokens that so many windows allow, those that were really used."""
    meters = [name for name in KEYS if getattr(provider.limits, name) is not None]
    shares: list[float] = [
        sum(one.real[name] for one in seen if not one.over)
        / (windows * getattr(provider.limits, name))
        for name in meters
    ]
    return max(shares)


def error_in_flight(log: list[Seen], lag: float) -> int:
    """The most by which requests under way, and those answered up to `lag` seconds ago, were ever
    larger than they had said."""
    edges: list[tuple[float, int]] = []
    for one in log:
        error = max(0, one.real["tokens"] - one.bound["tokens"])
        # From the moment it was let go: on a busy machine it comes later.
        begun = min(one.at, one.body.get("start", one.at))
        edges += [(begun, error), (one.ended + lag, -error)]
    now = most = 0
    for _, error in sorted(edges):
        now += error
        most = max(most, now)
    return most
