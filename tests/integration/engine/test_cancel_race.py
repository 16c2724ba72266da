"""A cancel that arrives while the handler is returning."""

import asyncio
from pathlib import Path
from threading import Thread

from penstock import JobContext, JobState, Penstock
from tests.support.waiting import PATIENCE


async def test_job_cancelled_as_its_handler_returns_leaves_no_work(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    app = Penstock(url, durable=False, poll_seconds=0.1)

    async def cancel(job_id: str) -> None:
        async with Penstock(url, durable=False) as elsewhere:
            await elsewhere.cancel(job_id)

    @app.job("work")
    async def work(ctx: JobContext) -> str:
        # Without giving way to the event loop, so that it returns before it can be interrupted.
        thread = Thread(target=lambda: asyncio.run(cancel(ctx.job.id)))
        thread.start()
        thread.join()
        return "too late"

    async with app, app.running():
        job = await app.enqueue("work")
        cancelled = await app.wait(job.id, timeout=PATIENCE)
        assert (cancelled.state, cancelled.result) == (JobState.CANCELLED, None)
        await app.drain(timeout=PATIENCE)
