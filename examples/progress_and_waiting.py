"""A handler says how far it is; anybody may look, and many may wait."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock
from penstock.errors import JobNotFound, WaitTimeout


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job("export")
    async def export(ctx: JobContext, pages: int) -> int:
        for page in range(pages):
            await ctx.progress(page / pages, f"page {page + 1} of {pages}")
            await asyncio.sleep(0.3)
        ctx.log("%d pages exported", pages)  # kept with the job
        return pages

    async with app.running():
        job = await app.enqueue("export", {"pages": 10})
        seen, done = set(), None
        while done is None:
            try:
                done = await app.wait(job.id, timeout=0.2)
            except WaitTimeout:  # only the wait is over; the job goes on
                now = await app.get(job.id)
                seen.add(now.progress)
                print(f"{now.progress:4.0%} {now.message}")
        assert done.progress == 1.0
        assert len(seen) > 1
        assert [line.message for line in done.lines] == ["10 pages exported"]

        # Any number may wait for one job; all are woken when it ends, however it ends.
        job = await app.enqueue("export", {"pages": 1})
        ended = await asyncio.gather(*(app.wait(job.id, timeout=30) for _ in range(1000)))
        assert {one.result for one in ended} == {1}
        print(len(ended), "waiters woken")

        try:
            await app.wait("no-such-job", timeout=300)
            raise AssertionError("found")
        except JobNotFound as error:  # at once, not after 300 s
            print(error)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
