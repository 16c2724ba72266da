"""Stop all jobs of a log, and go on with them later."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, JobState, Penstock
from penstock.errors import LogStopped


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", max_workers=1)
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.job("page")
    async def page(ctx: JobContext, n: int) -> int:
        begun.set()
        await go_on.wait()
        return n

    async with app.running():
        jobs = await app.enqueue_many("page", [{"n": n} for n in range(10)], log="question-7")
        await begun.wait()

        stopped = await app.stop_log("question-7")
        print(f"{stopped.cancelled} cancelled, {stopped.running} still running")
        assert stopped == (9, 1)
        try:
            await app.enqueue("page", {"n": 10}, log="question-7")
        except LogStopped as error:
            print(error)
        go_on.set()
        assert (await app.wait(jobs[0].id, timeout=30)).result == 0

        await app.reopen_log("question-7")
        unfinished = [job for job in jobs if (await app.get(job.id)).state == JobState.CANCELLED]
        again = await app.enqueue_many(
            "page", [job.payload for job in unfinished], log="question-7"
        )
        for job in again:
            assert (await app.wait(job.id, timeout=30)).state == JobState.COMPLETED


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
