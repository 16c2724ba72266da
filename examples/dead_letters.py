"""Jobs that failed for good are kept, with every error, until redriven or discarded."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, JobFilter, JobState, Penstock

prices = {"tea": 3}


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", retry_base_seconds=0.05)

    @app.job("quote", max_retries=1)
    async def quote(ctx: JobContext, item: str) -> int:
        return prices[item]

    async with app.running():
        await app.enqueue_many("quote", [{"item": item} for item in ("tea", "coffee", "cola")])
        await app.drain(timeout=30)

        letters = await app.dead_letters()  # newest first
        for job in letters:
            assert job.error is not None
            print(job.payload, job.error.type, job.error.message, "-", job.attempts, "runs")
        assert [job.payload["item"] for job in letters] == ["cola", "coffee"]

        # The cause is mended: run one again, with fresh retries and its history kept.
        prices["coffee"] = 4
        coffee = letters[1]
        assert await app.redrive(job_id=coffee.id) == 1
        done = await app.wait(coffee.id, timeout=30)
        assert (done.state, done.result) == (JobState.COMPLETED, 4)
        outcomes = [record.outcome for record in done.history]
        print("coffee:", done.result, outcomes)
        assert outcomes == ["retry", "failed", "redriven"]

        # Others are not worth it: all of a kind that failed in one way.
        assert await app.discard(JobFilter(kind="quote", error_type="KeyError")) == 1
        assert await app.dead_letters() == []


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
