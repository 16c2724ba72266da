"""Has four processes spend the tokens of one provider, on any queue."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests.conformance.support import BACKENDS
from tests.support.apps.spending import LANE
from tests.support.token_provider import TokenProvider
from tests.support.waiting import PATIENCE
from tests.support.worker_processes import Farm

PROCESSES = 4
SIZES = (10, 60, 300, 1_500, 6_000, 20_000)
LIMITS = {
    "together": {"tokens": 60_000},
    "apart": {"input": 45_000, "output": 30_000},
}
PARALLEL = 12


def requests_of(
    provider: TokenProvider, tokens: int, seed: int, real: tuple[float, float]
) -> list[dict[str, Any]]:
    """Requests of mixed sizes, of so many tokens in all; what each really uses of its bound."""
    chance, found, there = random.Random(seed), list[dict[str, Any]](), 0
    while there < tokens:
        size = chance.choice(SIZES)
        sent = chance.randint(size // 4, 3 * size // 4)
        share = chance.uniform(*real)
        bound = {"tokens": size, "input": sent, "output": size - sent}
        used = {"input": int(sent * share), "output": int((size - sent) * share)}
        used["tokens"] = sum(used.values())
        request = {"url": provider.url, "bound": bound, "real": used}
        found.append({**request, "seconds": chance.uniform(0.01, 0.1)})
        there += used["tokens"]
    return found


async def spend(
    folder: Path,
    queue: str,
    provider: TokenProvider,
    *,
    windows: float,
    real: tuple[float, float] = (1 / 3, 1.0),
    seed: int = 7,
) -> int:
    """Let processes make requests of as many tokens as so many windows allow, half of them as jobs
    in the lane, half with permits inside of jobs; how many requests those are."""
    keys = {
        "tokens": "tokens_per_interval",
        "input": "input_tokens_per_interval",
        "output": "output_tokens_per_interval",
    }
    lane = {
        **{keys[meter]: limit for meter, limit in provider.limits.items()},
        "interval_seconds": provider.window,
        "window": "bucket" if provider.refills else "sliding",
        "max_parallel": PARALLEL,
    }
    farm = Farm(folder, url=BACKENDS[queue].url(folder), lanes={LANE: lane}, lease_seconds=120.0)
    farm.settings["retry_base_seconds"] = 0.2
    tokens = windows * sum(provider.limits.values())
    requests = requests_of(provider, int(tokens), seed, real)
    try:
        async with farm.app("spending") as app:
            half = len(requests) // 2
            await app.enqueue_many("spend", requests[:half])
            some = [{"requests": requests[half + n :: PROCESSES]} for n in range(PROCESSES)]
            await app.enqueue_many("spend_many", some)
            for _ in range(PROCESSES):
                await farm.start("spending", max_workers=4)
            await app.drain(timeout=10 * PATIENCE)
    finally:
        await farm.close()
    return len(requests)
