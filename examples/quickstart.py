"""The smallest whole program: one handler, one job, its result.

Run it:             python examples/quickstart.py
Or, as a service:   penstock worker examples.quickstart:app
"""

import asyncio

from penstock import JobContext, Penstock

app = Penstock()  # sqlite:///penstock.db, unless PENSTOCK_QUEUE or penstock.yaml name another


@app.job("resize", timeout=30, max_retries=3)
async def resize(ctx: JobContext, url: str, width: int = 800) -> dict[str, object]:
    await ctx.progress(0.5, "half way")
    return {"url": url, "width": width, "attempt": ctx.attempt}


async def main() -> None:
    async with app.running():  # workers in this process
        job = await app.enqueue("resize", {"url": "cat.jpg"})  # stored: it will not be lost
        done = await app.wait(job.id, timeout=30)
        print(done.state, done.result)
        assert done.result == {"url": "cat.jpg", "width": 800, "attempt": 1}


if __name__ == "__main__":
    asyncio.run(main())
