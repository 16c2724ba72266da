"""Handlers that fork, and handlers that enqueue."""

from __future__ import annotations

import os
import signal
import time
from itertools import count
from typing import Any

from penstock import JobContext, Penstock
from tests.support.gate_file import pass_gate
from tests.support.side_effects import Side


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)

    @app.job("forks")
    async def forks(ctx: JobContext, gate: str, child_seconds: float) -> int:
        """Leaves a child behind on its first run, and waits for the gate."""
        child = os.fork() if ctx.attempt == 1 else 0
        if ctx.attempt == 1 and child == 0:
            time.sleep(child_seconds)  # noqa: ASYNC251 (the child has no event loop to block)
            os._exit(0)
        side.note(ctx, child)
        await pass_gate(gate)
        return os.getpid()

    @app.job("parent")
    async def parent(ctx: JobContext) -> list[str]:
        """Makes three children (two of them alike), and dies on its first run."""
        side.note(ctx)
        children = [
            await ctx.enqueue("child", {"n": 1}),
            await ctx.enqueue("child", {"n": 1}),
            await ctx.enqueue("child", {"n": 2}),
        ]
        if ctx.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return [child.id for child in children]

    @app.job("child")
    async def child(ctx: JobContext, n: int) -> int:
        side.note(ctx, n)
        return n

    @app.job("mother", lane="mothers")
    async def mother(ctx: JobContext, gate: str) -> list[int]:
        """Waits for three children; its note is made before, each child's when it begins."""
        side.note(ctx)
        made = [await ctx.enqueue("son", {"n": n, "gate": gate}) for n in range(3)]
        return sorted([son.result async for son in ctx.finished(made)])

    @app.job("son")
    async def son(ctx: JobContext, n: int, gate: str) -> int:
        side.note(ctx, n)
        await pass_gate(gate)
        return n

    @app.job("fertile")
    async def fertile(ctx: JobContext, gate: str) -> None:
        """Has children for as long as it may."""
        side.note(ctx)
        for n in count():
            await ctx.enqueue("son", {"n": n, "gate": gate})

    @app.job("flawed", max_retries=5)
    async def flawed(ctx: JobContext, gate: str) -> None:
        side.note(ctx)
        await pass_gate(gate)
        raise ValueError("flawed")

    return app
