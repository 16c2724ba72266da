"""A timeout bounds one run; a deadline bounds the job, retries and waiting included."""

import asyncio
import time
from tempfile import TemporaryDirectory

from penstock import Job, JobContext, JobState, Penstock


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", retry_base_seconds=0.1)

    @app.job("crawl", timeout=0.2, max_retries=1)
    async def crawl(ctx: JobContext, seconds: float) -> str:
        # ctx.deadline is when this run is cut short; pass what is left on to what you call.
        assert ctx.remaining() <= 0.2
        await asyncio.sleep(seconds)
        return "done"

    async with app.running():
        # Too slow twice: the run is cut short, retried, and cut short again.
        slow = await finish(app, await app.enqueue("crawl", {"seconds": 60}))
        assert (slow.state, slow.attempts) == (JobState.FAILED, 2)
        assert slow.error is not None
        assert slow.error.type == "JobTimeout"

        # Its deadline comes before its start: it fails without having run.
        soon = time.time() + 1
        late = await app.enqueue("crawl", {"seconds": 0}, delay=60, deadline=soon)
        late = await finish(app, late)
        assert (late.state, late.attempts) == (JobState.FAILED, 0)
        assert late.error is not None
        assert late.error.type == "DeadlineExceeded"


async def finish(app: Penstock, job: Job) -> Job:
    done = await app.wait(job.id, timeout=30)
    assert done.error is not None
    print(f"{done.attempts} runs, {done.error.type}: {done.error.message}")
    return done


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
