"""An app whose handlers quote what they should not; copied into a test's folder."""

import asyncio
import logging

from penstock import JobContext, Penstock, PermanentError

app = Penstock(max_workers=4, retry_base_seconds=0.01, lease_seconds=6.0, durable=False)
log = logging.getLogger("leaky")


@app.job("fails", max_retries=1)
async def fails(ctx: JobContext, said: str) -> None:
    log.info("one attempt")
    raise ValueError(said)


@app.job("fails.thread", max_retries=0)
def fails_in_thread(ctx: JobContext, said: str) -> None:
    try:
        raise KeyError(said)
    except KeyError:
        log.exception("in a thread")
        raise PermanentError(said) from None


@app.job("leaves.task")
async def leaves_task(ctx: JobContext, said: str) -> str:
    """Nobody hears of what becomes of a task of its own."""

    async def forgotten() -> None:
        raise RuntimeError(said)

    left = asyncio.create_task(forgotten())
    await asyncio.wait([left])
    return said


@app.job("asks")
async def asks(ctx: JobContext, url: str, key: str) -> None:
    await ctx.http.get(url, params={"q": key}, headers={"Authorization": f"Bearer {key}"})
