"""Worker processes killed, frozen and ended at random while they work, their server restarted,
the network cut. Then the counting."""

import asyncio
import random
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from penstock import Job, JobState, Penstock
from tests.chaos.grounds import ground
from tests.chaos.monkey import LEASE_SECONDS, Monkey, in_the_end
from tests.chaos.previous import unpack_previous
from tests.conformance.support import BACKENDS
from tests.support.apps.chaos import LANES
from tests.support.rate_windows import most_in_window
from tests.support.side_effects import Note
from tests.support.worker_processes import Farm

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]

KINDS = {"short": 0.5, "flaky": 0.15, "narrow": 0.15, "long": 0.05, "parent": 0.15}
PATIENCE = 200.0
"""Seconds, for what the number of jobs does not say: the machine may be busy."""
JITTER = 0.05
"""Seconds between a start and the moment its handler notes it, on a busy machine."""


async def chaos(
    name: str, folder: Path, jobs: int, strikes: int, seed: int, previous: Path | None = None
) -> Counter[str]:
    counts = {kind: round(jobs * share) for kind, share in KINDS.items()}
    with ground(name, folder) as place:
        farm = Farm(folder, url=place.url, lease_seconds=LEASE_SECONDS)
        monkey = Monkey(farm, place, seed, previous)
        app = farm.app("chaos")
        try:
            async with app:
                await monkey.start()
                terror = asyncio.create_task(monkey.run(strikes))
                for kind, count in counts.items():
                    await _enqueue(app, kind, count)
                await terror
                await in_the_end(app.drain, timeout=PATIENCE + jobs / 50)
                rows = await in_the_end(partial(_all_jobs, app), timeout=60)
                lanes = await in_the_end(app.lane_infos, timeout=60)
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
        await in_the_end(partial(app.enqueue_many, kind, payloads, keys=keys), timeout=60)


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
