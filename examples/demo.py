"""Watch Penstock work: 400 jobs, two worker processes, and a SIGKILL in the middle; then documents
in three languages, made searchable and found, and questions answered from them.

    python examples/demo.py               a live view on a terminal, plain lines elsewhere
    python examples/demo.py --keep DIR    keep the queue, to look at it afterwards
    python examples/demo.py --svg FILE    save a picture of what was shown

Its exit code is 0 only if every job was found again, finished, and recorded once, every document
was found by its question, and every answer says only what stands where it cites it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from penstock import JobContext, JobState, Penstock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # it is started by its path, and by its workers as a module

from examples import demo_documents  # noqa: E402
from examples.demo_view import Progress, Show, WorkerProcess, next_steps  # noqa: E402

PICTURES, UPLOADS, ALBUMS, THUMBNAILS = 279, 60, 15, 3
TOTAL = PICTURES + UPLOADS + ALBUMS * (1 + THUMBNAILS) + 1
LOG = "demo"
LIMIT_SECONDS = 90


def build(queue: str | None = None) -> Penstock:
    """The app and its handlers, for the worker processes and for this program."""
    app = Penstock(queue, retry_base_seconds=0.5)

    @app.job("resize", max_retries=2)
    async def resize(ctx: JobContext, picture: str) -> int:
        await asyncio.sleep(random.uniform(0.2, 0.6))
        if picture == "broken.jpg":
            raise ValueError("not a picture")
        return os.getpid()

    @app.job("upload")
    async def upload(ctx: JobContext, picture: str) -> int:
        await asyncio.sleep(random.uniform(0.1, 0.3))
        if ctx.attempt == 1:
            raise ConnectionError("the shop did not answer")
        return os.getpid()

    @app.job("album")
    async def album(ctx: JobContext, number: int) -> int:
        for n in range(THUMBNAILS):
            await ctx.enqueue("thumbnail", {"album": number, "n": n})
        return os.getpid()

    @app.job("thumbnail")
    async def thumbnail(ctx: JobContext, album: int, n: int) -> int:
        await asyncio.sleep(random.uniform(0.1, 0.2))
        return os.getpid()

    return app


app = build()  # what `penstock worker examples.demo:app` looks for


class Demo:
    def __init__(self, folder: Path, progress: Progress, show: Show) -> None:
        self._folder = folder
        self._progress = progress
        self._show = show
        self._url = f"sqlite:///{folder}/jobs.db"
        self._app = build(self._url)
        self._version = 0
        self.queued: set[str] = set()
        self.completions: Counter[str] = Counter()
        self.failed: set[str] = set()
        self.retries: Counter[str] = Counter()
        self.lost_with_process: dict[str, float] = {}
        """Jobs that were running when their process was killed, and when they were taken back."""

    async def run(self) -> bool:
        """Enqueue, watch, kill, verify; whether all is as promised."""
        try:
            async with self._app, asyncio.timeout(LIMIT_SECONDS):
                with self._show:
                    await self._enqueue()
                    await self._start_workers(2)
                    await self._until(lambda: self._progress.finished > TOTAL * 0.4)
                    await self._kill_one()
                    await self._until(lambda: self._progress.finished >= TOTAL)
                    while await self._follow(wait=0):
                        pass
                    self._show.event("nothing is left to do", "bold green")
                    seconds = self._progress.seconds
                    await self._stop_workers()
                return await self._verify(seconds)
        except TimeoutError:
            self._show.event(f"not done after {LIMIT_SECONDS} s: {self._progress.states}", "red")
            return False
        finally:
            for worker in self._progress.workers:
                worker.process.kill()
                worker.process.wait()

    async def _enqueue(self) -> None:
        batches: dict[str, list[dict[str, Any] | None]] = {
            "album": [{"number": n} for n in range(ALBUMS)],
            "upload": [{"picture": f"{n:03}.jpg"} for n in range(UPLOADS)],
            "resize": [{"picture": f"{n:03}.jpg"} for n in range(PICTURES)],
        }
        began = time.monotonic()
        for kind, payloads in batches.items():
            jobs = await self._app.enqueue_many(kind, payloads, log=LOG)
            self.queued.update(job.id for job in jobs)
        poison = await self._app.enqueue(
            "resize", {"picture": "broken.jpg"}, log=LOG, priority="high"
        )
        self.queued.add(poison.id)
        took = (time.monotonic() - began) * 1000
        self._show.event(
            f"{len(self.queued)} jobs stored in {took:.0f} ms, every one on disk; "
            f"{ALBUMS * THUMBNAILS} more will come from them"
        )

    async def _start_workers(self, count: int) -> None:
        for _ in range(count):
            self._start_worker(len(self._progress.workers) + 1)
        await self._until(lambda: all(w.state != "starting" for w in self._progress.workers))

    def _start_worker(self, number: int) -> None:
        command = [sys.executable, "-m", "penstock.cli", "worker", "examples.demo:app"]
        worker = WorkerProcess.start(
            number, [*command, "--queue", self._url], ROOT, self._folder / f"worker-{number}.log"
        )
        self._progress.workers.append(worker)

    async def _kill_one(self) -> None:
        victim = self._progress.workers[1]
        victim.process.send_signal(signal.SIGKILL)
        killed_at = time.time()
        await asyncio.to_thread(victim.process.wait)
        victim.state = "killed"
        self._show.event(
            f"worker {victim.number} (process {victim.pid}) killed with SIGKILL", "bold red"
        )
        await self._until(lambda: bool(self.lost_with_process))
        took = max(self.lost_with_process.values()) - killed_at
        self._show.event(
            f"worker 1 saw it: the {len(self.lost_with_process)} jobs it was running "
            f"were taken back {took:.2f} s after the kill",
            "bold yellow",
        )
        await self._start_workers(1)
        self._show.picture()
        again = set(self.lost_with_process)
        await self._until(lambda: again <= self.completions.keys() | self.failed)
        self._show.event(
            f"all {len(again)} done {time.time() - killed_at:.1f} s after the kill, "
            "run singly in case one is a killer",
            "bold green",
        )

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Follow the log, which has news of every job, until `reached`."""
        while True:
            await self._look()
            if reached():
                return
            for worker in self._progress.workers:
                if worker.state != "killed" and worker.process.poll() is not None:
                    log = (self._folder / f"worker-{worker.number}.log").read_text()
                    raise SystemExit(f"worker {worker.number} ended by itself:\n{log}")
            await self._follow(wait=0.1)

    async def _follow(self, wait: float) -> bool:
        """Read on in the log; whether there was news."""
        news = await self._app.changes(LOG, self._version, wait=wait)
        for change in news:
            self._version = change.version
            match change.what:
                case "queued":
                    self.queued.add(change.job_id)
                case "completed":
                    self.completions[change.job_id] += 1
                case "retry":
                    self._note_retry(change.job_id, change.data["error"], change.at)
                case "failed":
                    self.failed.add(change.job_id)
                    error = change.data["error"]
                    what = f"dead letter: resize broken.jpg, {error['type']}: {error['message']}"
                    self._show.event(what, "bold red")
        return bool(news)

    def _note_retry(self, job_id: str, error: dict[str, str], at: float) -> None:
        if error["type"] not in self.retries:
            what = f"a run failed ({error['type']}: {error['message']}); it will be tried again"
            if error["type"] != "WorkerLost":
                self._show.event(what)
        if error["type"] == "WorkerLost":
            self.lost_with_process[job_id] = at
        self.retries[error["type"]] += 1

    async def _look(self) -> None:
        progress = self._progress
        progress.states.clear()
        for counts in await self._app.counts():
            for state, count in counts.states.items():
                progress.states[state.value] += count
        progress.samples.append((progress.seconds, progress.finished))
        done = Counter(job.result for job in await self._app.jobs(states=["completed"], limit=1000))
        joined = {process.pid for process in await self._app.processes()}
        for worker in progress.workers:
            worker.done = done[worker.pid]
            if worker.state == "starting" and worker.pid in joined:
                worker.state = "working"
                self._show.event(f"worker {worker.number} (process {worker.pid}) started")
        self._show.tick()

    async def _stop_workers(self) -> None:
        for worker in self._progress.workers:
            worker.process.terminate()
        for worker in self._progress.workers:
            code = await asyncio.to_thread(worker.process.wait)
            if worker.state != "killed":
                worker.state = "stopped"
                if code != 0:
                    raise SystemExit(f"worker {worker.number} ended with exit code {code}")

    async def _verify(self, seconds: float) -> bool:
        """Read every job again, and compare with what was enqueued."""
        jobs = {job.id: job for job in await self._app.jobs(limit=10 * TOTAL)}
        by_state = Counter(job.state for job in jobs.values())
        dead = await self._app.dead_letters()
        lost = [i for i in self.queued if i not in jobs or not jobs[i].state.finished]
        twice = [job_id for job_id, times in self.completions.items() if times > 1]
        completed = {job.id for job in jobs.values() if job.state is JobState.COMPLETED}
        retries = sum(job.attempts - 1 for job in jobs.values())
        killed = len(self.lost_with_process)

        children = sum(job.parent_id is not None for job in jobs.values())
        runs = ", ".join(f"{job.payload['picture']} after {job.attempts} runs" for job in dead)
        rows: list[tuple[str, float, str]] = [
            ("jobs enqueued", len(self.queued), f"{children} of them by other jobs"),
            ("completed", by_state[JobState.COMPLETED], ""),
            ("dead letters", len(dead), runs),
            ("lost", len(lost), "of all that were ever stored"),
            ("results recorded twice", len(twice), "although some ran twice"),
            ("retries", retries, f"{killed} because their process was killed"),
            ("seconds", round(seconds, 1), f"{len(jobs) / seconds:.0f} jobs/s"),
        ]
        self._show.sums(rows)
        return (
            not (lost or twice)
            and completed == self.completions.keys()
            and set(jobs) == self.queued
            and len(jobs) == TOTAL
            and [job.payload for job in dead] == [{"picture": "broken.jpg"}]
            and by_state[JobState.COMPLETED] == TOTAL - 1
        )


def main() -> int:
    options = argparse.ArgumentParser(description="Watch Penstock work.")
    options.add_argument("--keep", metavar="DIR", help="keep the queue in this new folder")
    options.add_argument("--svg", metavar="FILE", help="save a picture of what was shown")
    chosen = options.parse_args()
    progress = Progress(TOTAL)
    show = Show(progress, record=chosen.svg is not None)
    show.console.print("\n  [bold]Penstock[/bold]: 400 jobs, two worker processes, one SIGKILL\n")

    def run(folder: str) -> bool:
        place = Path(folder).resolve()
        jobs = asyncio.run(Demo(place, progress, show).run())
        return jobs and asyncio.run(demo_documents.show(place, show.console))

    with suppress(KeyboardInterrupt):
        if chosen.keep is not None:
            Path(chosen.keep).mkdir(parents=True)
            good = run(chosen.keep)
        else:
            with TemporaryDirectory(prefix="penstock-demo-") as folder:
                good = run(folder)
        next_steps(show.console, chosen.keep)
        if not good:
            show.console.print("  [bold red]this is not what was promised[/bold red]")
        if chosen.svg is not None:
            show.save(chosen.svg)
        return 0 if good else 1
    return 130


if __name__ == "__main__":
    sys.exit(main())
