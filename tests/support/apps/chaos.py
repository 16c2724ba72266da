"""Handlers for the chaos test: short, long, flaky, with children, in a lane."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from penstock import JobContext, Penstock
from tests.support.side_effects import Side

LANES = {"narrow": {"requests_per_interval": 100, "interval_seconds": 5.0, "max_parallel": 3}}
"""A start may be 0.05 s late, a hundredth of the interval: with less a busy machine uses few."""


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, lanes=LANES, **settings)

    def noted(ctx: JobContext, n: int) -> dict[str, Any]:
        """What every handler returns: its number, and which of its leases this is."""
        side.note(ctx, n)
        return {"n": n, "token": ctx.token}

    @app.job("short", max_retries=1000)
    async def short(ctx: JobContext, n: int) -> dict[str, Any]:
        return noted(ctx, n)

    @app.job("long", max_retries=1000)
    async def long(ctx: JobContext, n: int) -> dict[str, Any]:
        result = noted(ctx, n)
        await asyncio.sleep(0.2)
        return result

    @app.job("flaky", max_retries=1000)
    async def flaky(ctx: JobContext, n: int) -> dict[str, Any]:
        result = noted(ctx, n)
        if random.random() < 0.3:
            raise OSError("bad luck")
        return result

    @app.job("parent", max_retries=1000)
    async def parent(ctx: JobContext, n: int) -> dict[str, Any]:
        result = noted(ctx, n)
        await ctx.enqueue("child", {"n": n})
        await ctx.enqueue("child", {"n": n})
        return result

    @app.job("child", max_retries=1000)
    async def child(ctx: JobContext, n: int) -> dict[str, Any]:
        return noted(ctx, n)

    @app.job("narrow", max_retries=1000, lane="narrow")
    async def narrow(ctx: JobContext, n: int) -> dict[str, Any]:
        return noted(ctx, n)

    return app
