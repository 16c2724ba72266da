"""Tokens a minute: requests reserve what they may use, and are settled with what they have used."""

import asyncio
import time
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock

LIMIT, WINDOW = 1000, 2.0

calls: list[float] = []


async def model(words: int) -> int:
    """What would be a call of a provider; the tokens that its answer tells."""
    calls.append(time.monotonic())
    await asyncio.sleep(0.02)
    return words


async def main(folder: str) -> None:
    app = Penstock(
        f"sqlite:///{folder}/jobs.db",
        lanes={
            "model": {"tokens_per_interval": LIMIT, "interval_seconds": WINDOW, "max_parallel": 8}
        },
    )

    # Three tokens a word at most; mostly it is one.
    @app.job("summarise", lane="model", amount=lambda payload: 3 * payload["words"])
    async def summarise(ctx: JobContext, words: int) -> int:
        used = await model(words)
        ctx.lanes.used(tokens=used)
        return used

    @app.job("translate")
    async def translate(ctx: JobContext, words: int) -> int:
        async with ctx.lanes.permit("model", tokens=3 * words) as permit:
            used = await model(words)
            permit.used(tokens=used)
        return used

    async with app.running():
        begun = time.monotonic()
        await app.enqueue_many("summarise", [{"words": 120}] * 8)
        await app.enqueue_many("translate", [{"words": 120}] * 8)
        await app.drain(timeout=60)

    print(f"{len(calls)} calls of 120 tokens in {calls[-1] - begun:.1f} s")
    assert len(calls) == 16
    assert calls[-1] - begun > WINDOW  # 1,920 tokens do not fit into one window


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
