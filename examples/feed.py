"""The feed of a tenant: what all its logs get, in one stream that can be resumed."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock
from penstock.types import FeedEntry


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job("search")
    async def search(ctx: JobContext, page: int) -> str:
        return f"page {page}"

    async def follow(after: str | None, count: int) -> list[FeedEntry]:
        """So many entries at least, and then the connection is lost."""
        seen: list[FeedEntry] = []
        async with app.feeds.follow("default", after) as batches:
            async for batch in batches:
                seen += batch
                if len(seen) >= count:
                    break
        return seen

    async with app.running():
        start = await app.queue.feed_end("default")
        for log in ("question-7", "question-8"):
            await app.enqueue_many("search", [{"page": n} for n in (1, 2, 3)], log=log)

        seen = await follow(start, 5)
        while len(seen) < 12:  # two logs, three jobs each: queued and completed
            seen += await follow(seen[-1].position, 1)
        for entry in seen:
            print(entry.position, entry.change.log, entry.change.version, entry.change.what)

    for log in ("question-7", "question-8"):
        versions = [entry.change.version for entry in seen if entry.change.log == log]
        assert versions == [1, 2, 3, 4, 5, 6], "each once, and in order"


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
