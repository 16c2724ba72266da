"""A plain function is a handler too: it runs in a thread and does not block the others."""

import asyncio
import time
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", max_workers=10)

    @app.job("compress")
    def compress(ctx: JobContext, name: str) -> str:
        for step in range(5):
            if ctx.cancelled:  # cancelled, timed out or stopping: a thread must look itself
                return "stopped early"
            ctx.progress(step / 5)  # no await in a plain function
            time.sleep(0.05)
        child = ctx.from_thread(ctx.enqueue("note", {"text": f"{name} is done"}))
        return child.id

    @app.job("note")
    async def note(ctx: JobContext, text: str) -> str:
        return text

    async with app.running():
        began = time.monotonic()
        jobs = await app.enqueue_many("compress", [{"name": f"file {n}"} for n in range(10)])
        await app.drain(timeout=30)
        took = time.monotonic() - began
        print(f"10 blocking jobs of 0.25 s in {took:.2f} s")

        done = [await app.get(job.id) for job in jobs]
        notes = {job.id: job.result for job in await app.jobs(kind="note")}
        assert {notes[job.result] for job in done} == {f"file {n} is done" for n in range(10)}


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
