"""What is measured on the enqueuing side, wherever that runs. Standard library only."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from benchmarks.contenders.base import Client

SETTLE_SECONDS = 0.5
SHORTEST_GAP, LONGEST_GAP = 0.02, 0.08
"""Between two enqueues, at random, so that no poller is met in step."""
WARM_UP = 3


async def latencies(client: Client, count: int) -> list[float]:
    """Milliseconds from the call of enqueue to the start of the handler, of an idle worker."""
    await asyncio.sleep(SETTLE_SECONDS)
    sent: dict[str, float] = {}
    for _ in range(WARM_UP + count):
        await asyncio.sleep(random.uniform(SHORTEST_GAP, LONGEST_GAP))
        start = time.time()
        sent[await client.send("stamp", {})] = start
    stamps = await client.results(sent)
    pairs = zip(stamps, sent.values(), strict=True)
    return [(stamp - start) * 1000 for stamp, start in pairs][WARM_UP:]


async def fill_seconds(client: Client, job: str, payload: dict[str, Any], count: int) -> float:
    """Enqueue many of the same, in the fastest way there is; how long it took."""
    payloads = [payload] * count
    start = time.perf_counter()
    await client.send_all(job, payloads)
    return time.perf_counter() - start
