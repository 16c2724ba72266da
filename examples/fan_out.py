"""A job waits for the jobs it enqueued, as they end. It needs no worker meanwhile."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock


async def main(folder: str) -> None:
    # One worker is enough: whoever waits lends it to those it waits for.
    app = Penstock(
        f"sqlite:///{folder}/jobs.db",
        max_workers=1,
        lanes={"albums": {"min_interval_seconds": 0, "max_parallel": 2}},
    )

    @app.job("album", lane="albums")
    async def album(ctx: JobContext, pictures: int) -> dict[str, int]:
        made = await ctx.enqueue_many("thumbnail", [{"n": n} for n in range(pictures)])
        ends: dict[str, int] = {}
        async for job in ctx.finished(made):
            ends[job.state] = ends.get(job.state, 0) + 1
            await ctx.progress(sum(ends.values()) / pictures)
        return ends

    @app.job("thumbnail", max_retries=0)
    async def thumbnail(ctx: JobContext, n: int) -> int:
        if n == 3:
            raise ValueError("not a picture")
        return n * n

    async with app.running():
        albums = await app.enqueue_many("album", [{"pictures": 5}] * 3)
        for job in albums:
            done = await app.wait(job.id, timeout=30)
            print(done.result)
            assert done.result == {"completed": 4, "failed": 1}


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
