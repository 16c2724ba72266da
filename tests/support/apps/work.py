"""Handlers that take their time in every way a handler can."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from penstock import JobContext, Penstock
from tests.support.gate_file import pass_gate, pass_gate_in_thread
from tests.support.side_effects import Side


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)

    def result(ctx: JobContext) -> dict[str, Any]:
        return {"attempt": ctx.attempt, "pid": os.getpid()}

    @app.job("work", max_retries=5)
    async def work(ctx: JobContext, n: int, seconds: float = 0.0) -> dict[str, Any]:
        side.note(ctx, n)
        await asyncio.sleep(seconds)
        return result(ctx)

    @app.job("gated")
    async def gated(ctx: JobContext, gate: str) -> dict[str, Any]:
        """Runs until the gate is open."""
        side.note(ctx)
        await pass_gate(gate)
        return result(ctx)

    @app.job("gated_thread")
    def gated_thread(ctx: JobContext, gate: str) -> dict[str, Any]:
        """The same in a thread, which cannot be interrupted."""
        side.note(ctx)
        pass_gate_in_thread(gate)
        return result(ctx)

    @app.job("blocking")
    async def blocking(ctx: JobContext, seconds: float) -> dict[str, Any]:
        """Blocks the event loop."""
        side.note(ctx)
        time.sleep(seconds)  # noqa: ASYNC251 (the mistake under test)
        return result(ctx)

    return app
