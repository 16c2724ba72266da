"""The engine without `app.running()`: start and stop an orchestrator yourself."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, JobOrchestrator, JobState, Penstock


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job("greet")
    async def greet(ctx: JobContext, name: str) -> str:
        await asyncio.sleep(0.2)
        return f"hello {name}"

    async with app:
        orchestrator = JobOrchestrator(app.queue, app.handlers, max_workers=10)
        await orchestrator.start()
        assert len(orchestrator.workers) == 10
        jobs = await app.enqueue_many("greet", [{"name": str(n)} for n in range(30)])
        await asyncio.sleep(0.3)  # ten done, ten running
        print("status:", orchestrator.status)

        # Claims nothing more, lets running jobs finish, hands the rest back.
        await orchestrator.stop(grace=25)
        assert not orchestrator.running
        assert orchestrator.workers == []
        assert orchestrator.dispatcher_task is not None
        assert orchestrator.dispatcher_task.done()

        states = [(await app.get(job.id)).state for job in jobs]
        print({state.value: states.count(state) for state in set(states)})
        assert set(states) == {JobState.COMPLETED, JobState.QUEUED}

        await orchestrator.start()  # it can be started again
        await app.drain(timeout=30)
        await orchestrator.stop()
        done = [await app.get(job.id) for job in jobs]
        assert all((job.state, job.attempts) == (JobState.COMPLETED, 1) for job in done)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
