"""Handlers that make requests: in a lane of their own, in others' lanes, and without any."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import JobContext, Penstock
from tests.support.gate_file import pass_gate
from tests.support.side_effects import Side


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)

    def own_lane(payload: dict[str, Any]) -> str:
        return str(payload["lane"])

    @app.job("call", lane=own_lane)
    async def call(ctx: JobContext, lane: str, url: str, times: int = 1, note: bool = False) -> int:
        """One request after the other, in the job's own lane."""
        if note:
            side.note(ctx)
        status = 0
        for _ in range(times):
            status = (await ctx.http.get(url)).status_code
        return status

    @app.job("fan", lane=own_lane)
    async def fan(ctx: JobContext, lane: str, url: str, times: int) -> int:
        """All requests at once, in the job's own lane."""
        answers = await asyncio.gather(*(ctx.http.get(url) for _ in range(times)))
        return len(answers)

    @app.job("visit")
    async def visit(ctx: JobContext, url: str, lane: str | None = None, times: int = 1) -> int:
        """Without a lane of its own: one permit a request, in `lane` or that of the host."""
        for _ in range(times):
            await ctx.http.get(url, lane=lane)
        return ctx.attempt

    @app.job("post", lane=own_lane)
    async def post(ctx: JobContext, lane: str, url: str) -> int:
        return (await ctx.http.post(url, content=b"x")).status_code

    @app.job("hold", lane=own_lane)
    async def hold(ctx: JobContext, lane: str, gate: str) -> None:
        """Keeps its slot until the gate is open."""
        side.note(ctx, lane)
        await pass_gate(gate)

    @app.job("permit")
    async def permit(ctx: JobContext, lane: str, gate: str | None = None) -> None:
        """Keeps a slot of a lane that is not its own."""
        async with ctx.lanes.permit(lane):
            side.note(ctx, lane)
            if gate is not None:
                await pass_gate(gate)

    @app.job("noop")
    async def noop(ctx: JobContext) -> None:
        """Needs nothing from anybody."""

    return app
