"""A job that finds the time is not right asks to be run later; that costs it no attempt."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, JobState, Penstock, RunLater

weather = ["rain", "rain", "sun"]


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job("picnic", max_retries=0)
    async def picnic(ctx: JobContext) -> str:
        now = weather.pop(0)
        if now != "sun":
            raise RunLater(1, f"{now} outside")  # or ctx.run_later(1, "...")
        return now

    async with app.running():
        job = waiting = await app.enqueue("picnic")
        while "rain outside" not in (waiting.waiting_for or ""):
            await asyncio.sleep(0.05)
            waiting = await app.get(job.id)
        print(waiting.state, "- waiting for", waiting.waiting_for)

        done = await app.wait(job.id, timeout=30)
        print(done.state, "after", done.releases, "releases and", done.attempts, "attempt")
        assert (done.state, done.result) == (JobState.COMPLETED, "sun")
        assert (done.releases, done.attempts) == (2, 1)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
