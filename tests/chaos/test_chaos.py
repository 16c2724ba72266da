"""Worker processes killed, frozen and ended at random while they work. Then the counting."""

import asyncio
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from penstock import JobState
from tests.support.processes import Farm, WorkerProcess

KINDS = {"short": 0.5, "flaky": 0.15, "narrow": 0.15, "long": 0.05, "parent": 0.15}
PROCESSES = 4


class Monkey:
    """Does something terrible to a worker process, again and again."""

    def __init__(self, farm: Farm, seed: int) -> None:
        self._farm = farm
        self._random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.workers: list[WorkerProcess] = []

    async def start(self) -> None:
        self.workers = [await self._farm.start("chaos") for _ in range(PROCESSES)]

    async def run(self, over: asyncio.Event, most: int) -> None:
        while not over.is_set() and sum(self.done.values()) < most:
            await asyncio.sleep(self._random.uniform(0.05, 0.3))  # chaos has no condition
            await self._strike()

    async def _strike(self) -> None:
        place = self._random.randrange(PROCESSES)
        worker = self.workers[place]
        what = self._random.choice(["SIGKILL", "SIGKILL", "SIGTERM", "SIGSTOP"])
        self.done[what] += 1
        if what == "SIGSTOP":
            await worker.freeze()
            # Sometimes past the lease: then others take its jobs, and it must find out.
            await asyncio.sleep(self._random.choice([0.1, 2.5]))
            worker.send(signal.SIGCONT)
            return
        worker.send(signal.Signals[what])
        code = await worker.exit()
        assert code == (0 if what == "SIGTERM" else -signal.SIGKILL)
        self.workers[place] = await self._farm.start("chaos")


async def chaos(folder: Path, jobs: int, strikes: int, seed: int) -> Counter[str]:
    farm = Farm(folder)
    monkey = Monkey(farm, seed)
    app = farm.app("chaos")
    counts = {kind: round(jobs * share) for kind, share in KINDS.items()}
    over = asyncio.Event()
    try:
        async with app:
            await monkey.start()
            terror = asyncio.create_task(monkey.run(over, strikes))
            for kind, count in counts.items():
                await app.enqueue_many(kind, [{"n": n} for n in range(count)])
            await terror
            await app.drain(timeout=60 + jobs / 100)
            over.set()
            rows = farm.query("SELECT id, kind, state, payload ->> 'n', result, holder FROM jobs")
    finally:
        over.set()
        await farm.close()

    # Nothing lost, nothing made twice (children of reruns included), every result its own.
    made = Counter(kind for _, kind, *_ in rows)
    assert made == Counter({**counts, "child": 2 * counts["parent"]})
    assert {state for _, _, state, *_ in rows} == {JobState.COMPLETED.value}
    assert all(str(n) == result for _, _, _, n, result, _ in rows)
    assert all(holder is None for *_, holder in rows)
    # Each ran at least once; nobody is left holding a lane.
    assert farm.side.runs().keys() == {job_id for job_id, *_ in rows}
    assert farm.query("SELECT count(*) FROM slots") == [(0,)]
    return monkey.done


async def test_nothing_is_lost_under_a_short_spell_of_chaos(tmp_path: Path) -> None:
    done = await chaos(tmp_path, jobs=1_000, strikes=15, seed=1)
    assert sum(done.values()) == 15


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [2, 3])
async def test_nothing_is_lost_under_a_long_spell_of_chaos(tmp_path: Path, seed: int) -> None:
    done = await chaos(tmp_path, jobs=20_000, strikes=120, seed=seed)
    assert sum(done.values()) == 120
