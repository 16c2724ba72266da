"""Durable steps: a worker is killed in the middle of a job, and the next one goes on from there."""

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock

CHAPTERS = ("springs", "streams", "rivers", "deltas", "seas")


def make_app(folder: Path) -> Penstock:
    app = Penstock(f"sqlite:///{folder}/jobs.db")
    asked = folder / "asked.txt"

    def ask_model(chapter: str) -> str:
        """Cost money, as far as this example is concerned."""
        with asked.open("a") as file:
            file.write(f"{chapter}\n")
        return f"All about {chapter}."

    @app.job("book")
    async def book(ctx: JobContext, chapters: list[str]) -> str:
        texts = []
        for chapter in chapters:
            texts.append(await ctx.step(f"write:{chapter}", ask_model, chapter, retries=2))
            if chapter == "rivers" and ctx.attempt == 1:
                os.kill(os.getpid(), signal.SIGKILL)  # three of five are done and paid for
        return " ".join(texts)

    return app


async def work_until_killed(folder: Path) -> None:
    async with make_app(folder).running():
        await asyncio.Event().wait()


async def main(folder: Path) -> None:
    app = make_app(folder)
    async with app:
        job = await app.enqueue("book", {"chapters": CHAPTERS})
        worker = await asyncio.create_subprocess_exec(sys.executable, __file__, str(folder))
        assert await worker.wait() == -signal.SIGKILL
        recorded = [step.name for step in await app.steps(job.id)]
        print(f"killed; recorded: {', '.join(recorded)}")

        async with app.running():
            text = await app.result(job.id, timeout=60)
        print(text)
        asked = (folder / "asked.txt").read_text().split()
        print(f"{len(asked)} calls of the model for {len(CHAPTERS)} chapters")
        assert tuple(asked) == CHAPTERS  # each once: what was recorded is not done again
        assert (await app.get(job.id)).attempts == 2


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work_until_killed(Path(sys.argv[1])))
    else:
        logging.getLogger("penstock").setLevel(logging.ERROR)  # not how the worker ended: we know
        with TemporaryDirectory() as name:
            asyncio.run(main(Path(name)))
