"""Jobs that start later: after a delay, or at a time."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job("remind")
    async def remind(ctx: JobContext, what: str) -> float:
        return time.time()

    async with app.running():
        soon = await app.enqueue("remind", {"what": "tea"}, delay=0.5)
        moment = datetime.now(UTC) + timedelta(seconds=3)  # a time zone is required
        later = await app.enqueue("remind", {"what": "meeting"}, run_at=moment)

        # A scheduled job is stored like any other, is queued, and says what it waits for.
        waiting = await app.get(later.id)
        print(waiting.state, "- waiting for", waiting.waiting_for)
        assert waiting.waiting_for is not None
        assert waiting.waiting_for.startswith("its time")

        for job in (soon, later):
            done = await app.wait(job.id, timeout=30)
            late = done.result - job.run_at
            print(f"{job.payload['what']}: started {late * 1000:.1f} ms after its time")
            assert 0 <= late < 20


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
