"""Handlers that ask a provider which counts tokens: with permits, with the start of a job, and as
people do who have no such lanes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

import httpx2

from penstock import JobContext, Penstock
from penstock.errors import RateLimited
from tests.support.side_effects import Side

LANE = "model"


class Limiter:
    """Tokens of a sliding window, in this process alone: what was too much does not come back."""

    def __init__(self, tokens: int, seconds: float) -> None:
        self._tokens, self._seconds = tokens, seconds
        self._taken: deque[tuple[float, int]] = deque()
        self._lock = asyncio.Lock()

    async def take(self, tokens: int) -> None:
        async with self._lock:
            while True:
                now = time.monotonic()
                while self._taken and self._taken[0][0] <= now - self._seconds:
                    self._taken.popleft()
                if sum(one for _, one in self._taken) + tokens <= self._tokens:
                    self._taken.append((now, tokens))
                    return
                await asyncio.sleep(self._taken[0][0] + self._seconds - now + 0.001)


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)
    client = httpx2.AsyncClient(verify=False, trust_env=False, timeout=60)
    limiters: dict[tuple[int, float], Limiter] = {}

    def amount(payload: dict[str, Any]) -> dict[str, Any]:
        bound = payload["bound"]
        return {"input_tokens": bound["input"], "output_tokens": bound["output"]}

    async def ask(payload: dict[str, Any], start: float) -> dict[str, Any]:
        bound = payload["bound"]
        body = {"input_tokens": bound["input"], "max_tokens": bound["output"]}
        body |= {name: payload[name] for name in ("real", "seconds")}
        if payload["forgives"]:
            body["start"] = start
        answer = await client.post(payload["url"], json=body)
        if answer.status_code == 429:
            raise RateLimited("too many", retry_after=float(answer.headers["retry-after"]))
        usage = answer.raise_for_status().json()["usage"]
        return {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
        }

    @app.job("spend_many")
    async def spend_many(ctx: JobContext, requests: list[dict[str, Any]]) -> int:
        """All at once, as many as there are permits for."""

        async def one(payload: dict[str, Any]) -> None:
            while True:
                try:
                    async with ctx.lanes.permit(LANE, **amount(payload)) as permit:
                        try:
                            permit.used(**await ask(payload, permit.start_at))
                        except RateLimited:
                            permit.used(tokens=0)
                            raise
                    return
                except RateLimited:
                    continue

        await asyncio.gather(*map(one, requests))
        return len(requests)

    @app.job("spend", lane=LANE, amount=lambda payload: amount(payload["request"]))
    async def spend(ctx: JobContext, request: dict[str, Any]) -> None:
        try:
            ctx.lanes.used(**await ask(request, ctx._run.lease.start_at))
        except RateLimited:
            ctx.lanes.used(tokens=0)
            raise

    @app.job("spend_unsaid", lane=LANE)
    async def spend_unsaid(ctx: JobContext, request: dict[str, Any]) -> None:
        """It reserves what is usual of its kind, or nothing where the lane counts requests."""
        ctx.lanes.used(**await ask(request, ctx._run.lease.start_at))

    @app.job("spend_alone", max_retries=100)
    async def spend_alone(
        ctx: JobContext, request: dict[str, Any], tokens: int, window: float
    ) -> None:
        limiter = limiters.setdefault((tokens, window), Limiter(tokens, window))
        while True:
            await limiter.take(request["bound"]["tokens"])
            try:
                await ask(request, time.time())
                return
            except RateLimited as error:
                await asyncio.sleep(error.retry_after or 1.0)

    return app
