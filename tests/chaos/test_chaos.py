"""Worker processes killed, frozen and ended at random while they work, their server restarted,
the network cut. Then the counting."""

import asyncio
import itertools
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from penstock import Job, JobState, Penstock
from penstock.errors import QueueUnavailable
from tests.chaos.grounds import Ground, ground
from tests.chaos.previous import environment, unpack_previous
from tests.conformance.support import BACKENDS
from tests.support.apps.chaos import LANES
from tests.support.rate_windows import most_in_window
from tests.support.side_effects import Note
from tests.support.worker_processes import Farm, WorkerProcess

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]

T = TypeVar("T")

KINDS = {"short": 0.5, "flaky": 0.15, "narrow": 0.15, "long": 0.05, "parent": 0.15}
PROCESSES = 4
JITTER = 0.05
"""Seconds between a start and the moment its handler notes it, on a busy machine."""


class Monkey:
    """Does something terrible to a worker process or to the server, again and again."""

    def __init__(self, farm: Farm, ground: Ground, seed: int, previous: Path | None) -> None:
        self._farm = farm
        self._previous = previous
        self._starts = itertools.count()
        self._ground = ground
        self._random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.workers: list[WorkerProcess] = []

    async def start(self) -> None:
        self.workers = [await self._start() for _ in range(PROCESSES)]

    async def _start(self) -> WorkerProcess:
        """A worker process does not start while the queue is gone; then it is started again.
        Every other one runs the previous code, where there is one."""
        variables = {}
        if self._previous is not None and next(self._starts) % 2:
            variables = environment(self._previous)
        while True:
            try:
                return await self._farm.start("chaos", environment=variables)
            except AssertionError as error:
                if "QueueUnavailable" not in str(error):
                    raise

    async def run(self, most: int) -> None:
        while sum(self.done.values()) < most:
            await asyncio.sleep(self._random.uniform(0.05, 0.3))  # chaos has no condition
            server = self._ground.strikes and self._random.random() < 0.4
            what = self._random.choice(
                self._ground.strikes if server else ["SIGKILL", "SIGKILL", "SIGTERM", "SIGSTOP"]
            )
            self.done[what] += 1
            if server:
                await self._ground.strike(what, self._random)
            else:
                await self._strike(what)

    async def _strike(self, what: str) -> None:
        place = self._random.randrange(PROCESSES)
        worker = self.workers[place]
        if what == "SIGSTOP":
            await worker.freeze()
            # Sometimes past the lease: then others take its jobs, and it must find out.
            await asyncio.sleep(self._random.choice([0.1, 2.5]))
            worker.send(signal.SIGCONT)
            return
        worker.send(signal.Signals[what])
        code = await worker.exit()
        assert code == (0 if what == "SIGTERM" else -signal.SIGKILL), worker.log[-2000:]
        self.workers[place] = await self._start()


async def chaos(
    name: str, folder: Path, jobs: int, strikes: int, seed: int, previous: Path | None = None
) -> Counter[str]:
    counts = {kind: round(jobs * share) for kind, share in KINDS.items()}
    with ground(name, folder) as place:
        farm = Farm(folder, url=place.url, lease_seconds=1.5)
        monkey = Monkey(farm, place, seed, previous)
        app = farm.app("chaos")
        try:
            async with app:
                await monkey.start()
                terror = asyncio.create_task(monkey.run(strikes))
                for kind, count in counts.items():
                    await _enqueue(app, kind, count)
                await terror
                await _in_the_end(app.drain, timeout=60 + jobs / 50)
                rows = await _in_the_end(partial(_all_jobs, app), timeout=60)
                lanes = await _in_the_end(app.lane_infos, timeout=60)
        finally:
            await farm.close()

    notes: dict[str, list[Note]] = {}
    for note in farm.side.notes():
        notes.setdefault(note.job, []).append(note)
    # Nothing lost, nothing made twice (children of reruns included), every result its own.
    made = Counter(job.kind for job in rows)
    assert made == Counter({**counts, "child": 2 * counts["parent"]})
    assert {job.state for job in rows} == {JobState.COMPLETED}
    assert all(job.result["n"] == job.payload["n"] for job in rows)
    # Each ran at least once, and what is recorded is of the newest lease: a holder that had
    # been taken for dead could not write over it.
    assert notes.keys() == {job.id for job in rows}
    newest = {job_id: max(note.token for note in some) for job_id, some in notes.items()}
    assert [job.id for job in rows if job.result["token"] != newest[job.id]] == []
    # Nobody is left holding a lane, and nobody started more often than it allows.
    assert {lane.name: lane.in_flight for lane in lanes} == {"narrow": 0}
    starts = [note.at for note in farm.side.notes(kind="narrow")]
    rate = LANES["narrow"]
    window, most = rate["interval_seconds"], rate["requests_per_interval"]
    assert most_in_window(starts, window - JITTER) <= most
    return monkey.done


async def _enqueue(app: Penstock, kind: str, count: int) -> None:
    """All of them, once each, however often the queue is gone while they are stored."""
    for start in range(0, count, 1000):
        numbers = range(start, min(start + 1000, count))
        keys = [f"{kind}-{n}" for n in numbers]
        payloads = [{"n": n} for n in numbers]
        await _in_the_end(partial(app.enqueue_many, kind, payloads, keys=keys), timeout=60)


async def _in_the_end(action: Callable[[], Awaitable[T]], timeout: float) -> T:
    """Its outcome, as soon as the queue lets it have one."""
    give_up = time.monotonic() + timeout
    while True:
        try:
            async with asyncio.timeout(give_up - time.monotonic()):
                return await action()
        except QueueUnavailable:
            assert time.monotonic() < give_up, "the queue did not come back"
            await asyncio.sleep(0.1)


async def _all_jobs(app: Penstock) -> list[Job]:
    rows: list[Job] = []
    while some := await app.jobs(limit=1000, before=rows[-1].id if rows else None):
        rows += some
    return rows


@pytest.mark.parametrize("queue", sorted(BACKENDS))
async def test_nothing_is_lost_under_a_short_spell_of_chaos(tmp_path: Path, queue: str) -> None:
    done = await chaos(queue, tmp_path, jobs=1_000, strikes=15, seed=1)
    assert sum(done.values()) == 15


@pytest.mark.parametrize("queue", ["postgres", "redis"])
async def test_nothing_is_lost_while_half_of_the_processes_run_the_previous_code(
    tmp_path: Path, queue: str
) -> None:
    previous = unpack_previous(tmp_path / "previous", queue)
    if previous is None:
        pytest.skip("no history of the code at hand")
    done = await chaos(queue, tmp_path, jobs=500, strikes=6, seed=5, previous=previous)
    assert sum(done.values()) == 6


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("queue", sorted(BACKENDS))
async def test_nothing_is_lost_under_a_long_spell_of_chaos(tmp_path: Path, queue: str) -> None:
    seed = random.randrange(1 << 32)
    previous = unpack_previous(tmp_path / "previous", queue)
    done = await chaos(queue, tmp_path, 20_000, 120, seed, previous)
    assert sum(done.values()) == 120
