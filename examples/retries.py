"""A run that fails is tried again later; an error that cannot pass is not."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, JobState, Penstock, PermanentError


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", retry_base_seconds=0.1)

    @app.job("fetch", max_retries=3)  # 3 retries: at most 4 runs
    async def fetch(ctx: JobContext, url: str) -> str:
        if ctx.attempt < 3:
            raise ConnectionError(f"{url} did not answer")
        return f"{url} on run {ctx.attempt}"

    @app.job("parse", permanent=[UnicodeDecodeError])  # named here: not worth a retry
    async def parse(ctx: JobContext, text: str) -> str:
        if not text:
            raise PermanentError("there is nothing to parse")  # never worth a retry
        return text.encode().decode("ascii")

    async with app.running():
        fetched = await app.enqueue("fetch", {"url": "example.org"})
        empty = await app.enqueue("parse", {"text": ""})
        foreign = await app.enqueue("parse", {"text": "café"})

        done = await app.wait(fetched.id, timeout=30)
        assert done.result == "example.org on run 3"
        for record in done.history:  # the runs that failed, with times, error and traceback
            print(record.attempt, record.outcome, record.error.type, record.error.message)
        assert [record.outcome for record in done.history] == ["retry", "retry"]

        for job in (empty, foreign):
            failed = await app.wait(job.id, timeout=30)
            assert failed.error is not None
            print(failed.state, failed.attempts, failed.error.type, failed.error.retryable)
            assert (failed.state, failed.attempts) == (JobState.FAILED, 1)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
