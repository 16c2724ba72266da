"""Periodic jobs. SKEW in the environment sets the clock of the process wrong by so many seconds."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from penstock import JobContext, Penstock
from tests.support.side_effects import Side

BEAT_SECONDS = 1.0


def build(url: str, side: Side, **settings: Any) -> Penstock:
    right, skew = time.time, float(os.environ.get("SKEW", "0"))
    if skew:
        time.time = lambda: right() + skew
    app = Penstock(url, **settings)

    @app.job("beat", every=BEAT_SECONDS, overlap=True)
    async def beat(ctx: JobContext) -> float | None:
        side.note(ctx, ctx.tick)
        await asyncio.sleep(0.05)
        return ctx.tick

    @app.job("other", every=BEAT_SECONDS)
    async def other(ctx: JobContext) -> None:
        side.note(ctx, ctx.tick)

    return app
