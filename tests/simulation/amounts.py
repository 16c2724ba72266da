"""The workload of a lane that counts tokens: no window at the receiver has more than it allows.

An app of its own beside the workload, so that the seeds of that stay what they are.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any
from unittest.mock import patch

import httpx2

from penstock import Job, JobContext, Penstock
from penstock.testing import FaultKind, simulate, simulation

TOKENS = 1000
INTERVAL = 10.0
FAULTS = frozenset(FaultKind) - {
    # A request whose process stands still between permit and start arrives when it likes, and where
    # a clock is set, a window is not what the receiver takes it for.
    FaultKind.FREEZE,
    FaultKind.CLOCK_JUMP,
    FaultKind.CLOCK_SET_BACK,
    FaultKind.FAILOVER,
}


arrived = ContextVar("arrived", default=0.0)
"""When the request that is answered came: an outage may answer it late."""
answer = simulation.Simulation.answer


async def noted(self: simulation.Simulation, request: httpx2.Request) -> httpx2.Response:
    arrived.set(asyncio.get_running_loop().time())
    return await answer(self, request)


class Receiver:
    """A model server that counts what it is sent."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, int]] = []

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        used = int(request.url.path.removeprefix("/"))
        self.seen.append((arrived.get(), used))
        return httpx2.Response(200, json={"usage": {"prompt_tokens": used}})

    def check(self, _: list[Job]) -> None:
        seen = sorted(self.seen)
        for first, (begin, _tokens) in enumerate(seen):
            end = begin + INTERVAL
            tokens = sum(tokens for at, tokens in seen[first:] if at < end)
            assert tokens <= TOKENS, f"{tokens} tokens in a window of {TOKENS}"


receiver = Receiver()
LANE: dict[str, Any] = {
    "tokens_per_interval": TOKENS,
    "interval_seconds": INTERVAL,
    "min_interval_seconds": 0.0,
    "max_parallel": 4,
}
app = Penstock(
    "sqlite:///simulated.db", lanes={"model": LANE}, lease_seconds=3.0, retry_base_seconds=0.1
)


@app.job("ask", max_retries=20, timeout=600.0)
async def ask(ctx: JobContext, reserved: int, used: int) -> None:
    await ctx.http.get(f"http://model.example/{used}", lane="model", amount=reserved)


async def scenario(app: Penstock) -> None:
    """Questions that use less than they reserve, a few at a time for five windows."""
    chance = random.Random(app.queue.now())
    for _ in range(10):
        sizes = [chance.randrange(100, 500) for _ in range(4)]
        payloads = [{"reserved": size, "used": math.ceil(size / 3)} for size in sizes]
        await app.enqueue_many("ask", payloads)
        await asyncio.sleep(chance.uniform(1.0, 8.0))


def run(seeds: int | Sequence[int], *, server: bool = False, shrink: bool = True) -> int:
    with patch.object(simulation.Simulation, "answer", noted):
        return simulate(
            app,
            scenario,
            seeds=seeds,
            check=receiver.check,
            reset=receiver.seen.clear,
            respond=receiver.respond,
            faults=FAULTS,
            server=server,
            shrink=shrink,
        ).jobs
