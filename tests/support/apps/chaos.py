"""Handlers for the chaos test: short, long, flaky, with children, in a lane."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from penstock import JobContext, Penstock
from tests.support.side import Side

LANES = {"narrow": {"min_interval_seconds": 0.002, "max_parallel": 3}}


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, lanes=LANES, **settings)

    @app.job("short", max_retries=1000)
    async def short(ctx: JobContext, n: int) -> int:
        side.note(ctx, n)
        return n

    @app.job("long", max_retries=1000)
    async def long(ctx: JobContext, n: int) -> int:
        side.note(ctx, n)
        await asyncio.sleep(0.2)
        return n

    @app.job("flaky", max_retries=1000)
    async def flaky(ctx: JobContext, n: int) -> int:
        side.note(ctx, n)
        if random.random() < 0.3:
            raise OSError("bad luck")
        return n

    @app.job("parent", max_retries=1000)
    async def parent(ctx: JobContext, n: int) -> int:
        side.note(ctx, n)
        await ctx.enqueue("child", {"n": n})
        await ctx.enqueue("child", {"n": n})
        return n

    @app.job("child", max_retries=1000)
    async def child(ctx: JobContext, n: int) -> int:
        side.note(ctx, n)
        return n

    @app.job("narrow", max_retries=1000, lane="narrow")
    async def narrow(ctx: JobContext, n: int) -> int:
        side.note(ctx, n)
        return n

    return app
