"""Handlers that take their process with them."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from typing import Any

from penstock import JobContext, Penstock
from tests.support.side_effects import Side


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)

    @app.job("harmless")
    async def harmless(ctx: JobContext, n: int) -> int:
        side.note(ctx)
        await asyncio.sleep(0.005)
        return n

    @app.job("killed")
    async def killed(ctx: JobContext) -> None:
        side.note(ctx)
        os.kill(os.getpid(), signal.SIGKILL)

    @app.job("exits")
    async def exits(ctx: JobContext) -> None:
        side.note(ctx)
        os._exit(3)

    @app.job("segfaults")
    def segfaults(ctx: JobContext) -> None:
        side.note(ctx)
        ctypes.string_at(0)

    return app
