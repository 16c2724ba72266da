"""A rate-limited, flaky provider in a lane; its pages become documents, and answers cite them."""

import asyncio
import itertools

from penstock import JobContext, Penstock
from penstock.errors import RateLimited

LANES = {"wiki": {"requests_per_interval": 5, "interval_seconds": 1}}  # shared by all processes
app = Penstock("sqlite:///mill.db", lanes=LANES).use("answers")
calls = itertools.count()  # stands in for an API that answers every other call with 429


@app.job("fetch", lane="wiki")  # a 429 pauses the lane: no worker waits, no attempt is spent
async def fetch(ctx: JobContext, title: str) -> None:
    if next(calls) % 2 == 0:
        raise RateLimited("429 Too Many Requests", retry_after=1)
    text = f"{title}: it is turned by the weight of water in its buckets."
    await app.documents.add(text, id=title)


async def main() -> None:
    async with app.running():  # or in processes of their own: penstock worker MODULE:app
        await app.enqueue("fetch", {"title": "Overshot wheel"})  # stored: survives kill -9
        await app.drain(timeout=60)  # fetched, chunked, embedded, searchable
        asked = await app.answers.ask("What turns an overshot wheel?")
        print((await app.answers.wait(asked.id, timeout=60)).text)


if __name__ == "__main__":
    asyncio.run(main())
