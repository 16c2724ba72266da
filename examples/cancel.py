"""Cancelling: a queued job never starts, a running one is interrupted."""

import asyncio
import time
from tempfile import TemporaryDirectory

from penstock import JobContext, JobState, Penstock

cleaned_up: list[str] = []


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")
    started = asyncio.Event()

    @app.job("encode", timeout=60)
    async def encode(ctx: JobContext, name: str) -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:  # the handler is interrupted at its await, as by asyncio.Task.cancel()
            cleaned_up.append(name)
        return name

    async with app.running():
        later = await app.enqueue("encode", {"name": "later"}, delay=60)
        assert (await app.cancel(later.id)).state is JobState.CANCELLED

        running = await app.enqueue("encode", {"name": "film"})
        await started.wait()
        began = time.monotonic()
        assert (await app.cancel(running.id)).state is JobState.CANCELLED
        await app.drain(timeout=30)  # until the run has really ended
        print(f"interrupted after {time.monotonic() - began:.3f} s, cleaned up: {cleaned_up}")
        assert cleaned_up == ["film"]

        # Cancelling what has ended changes nothing; the row says who came first.
        again = await app.cancel(running.id)
        assert again.state is JobState.CANCELLED


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
