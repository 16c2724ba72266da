"""A job of many steps, each of which notes its calls where no kill can undo it."""

from __future__ import annotations

import asyncio
import random
import time
from functools import partial
from typing import Any

from penstock import JobContext, Penstock
from penstock.model.ids import new_id
from tests.support.side_effects import Side

READS, THOUGHTS, CHECKS, WRITES = 8, 4, 3, 4
STEPS = 1 + READS + THOUGHTS + CHECKS + WRITES
BAD_LUCK = 0.2
SIGNALS = 2
"""Named "go", to each job: it waits for all of them."""
LONG = 600.0
"""Seconds a wait for them may take: the test is over before."""
SLEEP = 1.05
"""Seconds of the shortest sleep: a shorter one would not give up the lease."""


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)

    @app.job("way", max_retries=1000)
    async def way(ctx: JobContext, n: int, longest: float) -> dict[str, Any]:
        """Random in its times, and the same in its steps."""
        side.note(ctx, {"run": n})

        def call(name: str, number: int) -> dict[str, Any]:
            """What is noted is what is recorded, so that each record tells its call."""
            noted = {"step": f"{name} {number}", "call": new_id(), "token": ctx.token}
            side.note(ctx, noted)
            return noted

        async def work(name: str, number: int) -> dict[str, Any]:
            noted = call(name, number)
            await asyncio.sleep(random.uniform(0.0, 0.02))  # a call takes time
            return noted

        async def flaky(name: str, number: int) -> dict[str, Any]:
            noted = await work(name, number)
            if random.random() < BAD_LUCK:
                raise OSError("bad luck")
            return noted

        def plain(name: str, number: int) -> dict[str, Any]:
            noted = call(name, number)
            time.sleep(random.uniform(0.0, 0.005))
            return noted

        async def wait(name: str, timeout: float) -> None:
            side.note(ctx, {"saw": name, "payload": await ctx.wait_for(name, timeout=timeout)})

        done = [await ctx.step("plan", work, "plan", 0, strict=True)]
        read = [ctx.step("read", flaky, "read", number, retries=2) for number in range(READS)]
        done += await asyncio.gather(*read)
        await ctx.sleep(random.uniform(SLEEP, longest))
        for number in range(THOUGHTS):
            done.append(await ctx.step("think", plain, "think", number))
        await wait("go", LONG)
        await wait("late", random.uniform(SLEEP, longest))
        check = [
            ctx.step("check", partial(work, "check"), number, timeout=30)
            for number in range(CHECKS)
        ]
        done += await asyncio.gather(*check, ctx.sleep(0.01))
        done.pop()  # of the sleep
        await wait("go", LONG)
        for number in range(WRITES):
            done.append(await ctx.step("write", work, "write", number))
        return {"n": n, "token": ctx.token, "calls": [one["call"] for one in done]}

    return app
