"""Jobs that name a `log` report to it: ordered, without a gap, and made for following."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock
from penstock.types import Change


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", retry_base_seconds=0.1)

    @app.job("search")
    async def search(ctx: JobContext, page: int) -> str:
        await ctx.progress(0.5, "half way")
        if page == 2 and ctx.attempt == 1:
            raise ConnectionError("page 2 did not answer")
        await asyncio.sleep(0.3)
        return f"page {page}"

    async with app.running():
        await app.enqueue_many("search", [{"page": n} for n in (1, 2, 3)], log="question-7")

        log: list[Change] = []
        while sum(change.what == "completed" for change in log) < 3:
            since = log[-1].version if log else 0
            # Answers at once when there is news, else waits for it: no polling.
            news = await app.changes("question-7", since, wait=10)
            for change in news:
                print(change.version, change.what, change.job_id[-6:], change.data)
            log += news

    assert [change.version for change in log] == list(range(1, len(log) + 1))
    what = [change.what for change in log]
    assert what.count("queued") == what.count("completed") == 3
    assert what.count("retry") == 1


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
