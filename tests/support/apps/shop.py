"""The app of the command line's tests; copied into each test's folder."""

import asyncio
import time
from pathlib import Path

from penstock import JobContext, Penstock

app = Penstock(max_workers=4, retry_base_seconds=0.01, upkeep_seconds=0.1, durable=False)
not_an_app = 42


def note_start() -> None:
    """Tell the test that the handler runs."""
    Path("started").touch()


@app.job("add")
async def add(ctx: JobContext, a: int = 1, b: int = 2) -> dict[str, int]:
    return {"sum": a + b}


@app.job("mail.send")
async def send(ctx: JobContext, to: str = "nobody") -> str:
    return f"sent to {to}"


@app.job("fail", max_retries=1)
async def fail(ctx: JobContext, message: str = "boom") -> None:
    raise ValueError(message)


@app.job("hold")
async def hold(ctx: JobContext) -> str:
    """Runs until the file `gate` exists."""
    note_start()
    await ctx.progress(0.5, "half way")
    while not Path("gate").exists():  # noqa: ASYNC110, ASYNC240 (the test is another process)
        await asyncio.sleep(0.01)
    return "released"


@app.job("stubborn")
async def stubborn(ctx: JobContext) -> None:
    """Does not end when it is cancelled."""
    note_start()
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


@app.job("block")
def block(ctx: JobContext, seconds: float = 60) -> None:
    """Occupies a thread."""
    note_start()
    time.sleep(seconds)


@app.job("freeze")
async def freeze(ctx: JobContext) -> None:
    """Blocks the event loop."""
    note_start()
    time.sleep(60)  # noqa: ASYNC251 (that is the point)


@app.job("executor")
async def executor(ctx: JobContext) -> None:
    """Leaves a thread behind that the interpreter waits for at exit."""
    note_start()
    await asyncio.to_thread(time.sleep, 60)
