"""A cancel that arrives while the handler is returning."""

from pathlib import Path

from penstock import JobContext, JobFilter, JobState, Penstock


async def test_job_cancelled_as_its_handler_returns_leaves_no_work(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db", durable=False, poll_seconds=0.1)

    @app.job("work")
    async def work(ctx: JobContext) -> None:
        # Once this is stored the handler returns, before it can be interrupted.
        await app.queue.cancel(JobFilter(ids=[ctx.job.id]))

    async with app, app.running():
        job = await app.enqueue("work")
        assert (await app.wait(job.id, timeout=10)).state is JobState.CANCELLED
        await app.drain(timeout=3)
