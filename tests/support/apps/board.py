"""The app of the dashboard's tests; copied into the folder of each module."""

import asyncio
from pathlib import Path

from penstock import JobContext, Penstock

app = Penstock(
    max_workers=4,
    retry_base_seconds=0.01,
    upkeep_seconds=0.1,
    lease_seconds=15.0,
    durable=False,
    lanes={"catalogue": {"min_interval_seconds": 0.01, "max_parallel": 2}},
)


@app.job("add")
async def add(ctx: JobContext, a: int = 1, b: int = 2) -> dict[str, int]:
    return {"sum": a + b}


@app.job("fail", max_retries=1)
async def fail(ctx: JobContext, message: str = "boom") -> None:
    raise ValueError(message)


@app.job("lose", max_retries=0)
async def lose(ctx: JobContext, key: str = "it") -> None:
    raise KeyError(key)


@app.job("hold")
async def hold(ctx: JobContext, gate: str = "gate") -> str:
    """Runs until the file exists."""
    await ctx.progress(0.5, "half way")
    while not Path(gate).exists():  # noqa: ASYNC110, ASYNC240 (the test is another process)
        await asyncio.sleep(0.02)
    return "released"


@app.job("look.up", lane="catalogue")
async def look_up(ctx: JobContext, word: str = "mill") -> str:
    return word


@app.job("say")
async def say(ctx: JobContext, text: str = "") -> str:
    """Whatever it is given goes wherever a handler can put it."""
    await ctx.progress(0.3, text)
    return text


@app.job("report")
async def report(ctx: JobContext) -> dict[str, object]:
    """Plans, waits to be approved, and writes."""
    plan = await ctx.step(
        "plan", lambda: {"pages": 3, "password": "hunter2hunter2"}, lane="catalogue"
    )
    await ctx.emit({"planned": plan["pages"]})
    by = await ctx.wait_for("approved", timeout=3600)
    return {
        "approved": by,
        "text": await ctx.step("write", lambda: "a mill at the weir", retries=1),
    }
