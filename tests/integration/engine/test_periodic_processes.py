"""Periodic jobs of several processes, some of them killed, frozen, or with a wrong clock."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Job, JobState
from tests.conformance.support import BACKENDS
from tests.support.apps.ticking import BEAT_SECONDS
from tests.support.cli import Cli
from tests.support.periodic import gaps, jobs_of, pauses, some_jobs, tick
from tests.support.sampling import some_of
from tests.support.serve_process import Host
from tests.support.waiting import look_on, until
from tests.support.worker_processes import Farm, WorkerProcess

KILLS = 5
FROZEN_TICKS = 4
SKEWS = {"sqlite": ["0"] * 4, "postgres": ["3600", "-3600", "20", "0"]}
"""How wrong the clocks are. The queue's own clock, which counts, is that of its server; a file has
that of the machine, which is the same for all."""


@pytest.fixture(params=some_of(["postgres", "sqlite", "redis"], "postgres"))
def queue(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
async def many(queue: str, tmp_path: Path) -> AsyncIterator[Farm]:
    farm = Farm(tmp_path, url=BACKENDS[queue].url(tmp_path))
    yield farm
    await farm.close()


async def beats(farm: Farm, more: int = 0) -> list[Job]:
    """All jobs of ticks, once there are so many more."""
    async with farm.bare() as app:
        return await some_jobs(app, "beat", len(await jobs_of(app, "beat")) + more, 60)


def assert_each_tick_once(jobs: list[Job]) -> None:
    ticks = [tick(job) for job in jobs]
    assert len(set(ticks)) == len(ticks)


async def test_while_one_process_lives_no_tick_is_missed_and_none_is_repeated(
    many: Farm, queue: str
) -> None:
    skews = SKEWS.get(queue, SKEWS["postgres"])

    async def start(skew: str) -> WorkerProcess:
        return await many.start("ticking", kinds=["beat"], environment={"SKEW": skew})

    workers = [await start(skew) for skew in skews]
    dice = random.Random(7)
    async with pauses(BEAT_SECONDS / 2) as paused:
        for _ in range(KILLS):
            await beats(many, more=1)
            await look_on(dice.uniform(0, BEAT_SECONDS))
            number = dice.randrange(len(workers))
            await workers[number].kill()
            workers[number] = await start(skews[number])
        await beats(many, more=2)
    async with many.bare() as app:
        for worker in workers:
            worker.send(signal.SIGTERM)
        assert [await worker.exit() for worker in workers] == [0] * len(workers)
        jobs = await jobs_of(app, "beat")

    assert_each_tick_once(jobs)
    assert len(gaps(jobs, BEAT_SECONDS)) <= len(paused), "only what the machine slept over"
    done = [job for job in jobs if job.state is JobState.COMPLETED]
    assert len(jobs) - len(done) <= 1, "at most the one that was enqueued as they stopped"
    assert {job.result for job in done} == {tick(job) for job in done}
    assert len({note.pid for note in many.side.notes()}) > 1
    late = [job.enqueued_at - tick(job) for job in jobs[1:]]
    assert min(late) >= 0, "by the queue's clock no tick is early, whatever a process thinks"
    assert max(late) < 15 + sum(paused), "less than any clock is wrong"


async def test_a_process_that_was_frozen_repeats_no_tick(farm: Farm) -> None:
    frozen = await farm.start("ticking", kinds=["beat"], lease_seconds=FROZEN_TICKS / 2)
    other = await farm.start("ticking", kinds=["beat"])
    await beats(farm, more=1)
    async with pauses(BEAT_SECONDS / 2) as paused:
        await farm.freeze(frozen)
        await beats(farm, more=FROZEN_TICKS)
        frozen.send(signal.SIGCONT)
        await until(lambda: "rejoining" in frozen.log, "the thawed process to notice")
        await beats(farm, more=2)
        await other.kill()
        jobs = await beats(farm, more=2)

    assert_each_tick_once(jobs)
    assert len(gaps(jobs, BEAT_SECONDS)) <= len(paused), "only what the machine slept over"
    late = max(job.enqueued_at - tick(job) for job in jobs[1:])
    assert late < FROZEN_TICKS * BEAT_SECONDS + sum(paused)


async def test_a_process_that_was_frozen_alone_makes_up_one_tick(farm: Farm) -> None:
    alone = await farm.start("ticking", kinds=["beat"])
    await beats(farm, more=1)
    await farm.freeze(alone)
    before = await beats(farm)
    async with pauses(BEAT_SECONDS / 2) as paused:
        await look_on(FROZEN_TICKS * BEAT_SECONDS)
        alone.send(signal.SIGCONT)
        jobs = await beats(farm, more=2)

    assert_each_tick_once(jobs)
    [missed] = gaps(jobs[len(before) - 1 : len(before) + 1], BEAT_SECONDS)
    assert missed >= FROZEN_TICKS - 2
    after = jobs[len(before)]
    late = after.enqueued_at - tick(after)
    assert late < (FROZEN_TICKS - 1) * BEAT_SECONDS + sum(paused), "the newest, and it is new"


async def test_the_command_line_lists_periodic_kinds(farm: Farm, cli: Cli) -> None:
    async with farm.bare() as app:
        nothing = await asyncio.to_thread(cli, "periodic", "--queue", farm.url)
        assert nothing.out == ""
        assert "no worker process has periodic jobs" in nothing.err

        farm.settings["lease_seconds"] = 9.0  # so that none is forgotten while a command starts
        await farm.start("ticking")
        await farm.start("ticking", kinds=["beat"])

        async def told() -> bool:
            kinds = await app.periodic()
            return [kind.processes for kind in kinds] == [2, 1] and all(k.last for k in kinds)

        await until(told, "both processes to tell")
    listed = await asyncio.to_thread(cli, "periodic", "--queue", farm.url, "--json")
    beat, other = listed.json
    assert (beat["kind"], beat["schedule"], beat["processes"]) == ("beat", "every 1 s", 2)
    assert (other["kind"], other["processes"]) == ("other", 1)
    assert 0 < beat["next"] - beat["last"] <= 30
    shown = await asyncio.to_thread(cli, "periodic", "--queue", farm.url)
    assert "every 1 s" in shown.out
    assert " ago)" in shown.out


async def test_the_server_enqueues_ticks_and_tells_admins_of_them(host: Host) -> None:
    (host.cli.folder / "ticking.py").write_text(
        "from penstock import Penstock\n\napp = Penstock()\n\n\n"
        '@app.job("tidy", every=0.5)\nasync def tidy(ctx): ...\n'
    )
    host.others["lease_seconds"] = 6.0  # it tells of itself every 2 s
    reader, admin = host.key("reader", scopes="read"), host.key("admin", scopes="admin")
    served = host.serve(app="ticking:app", require_key=True)
    async with served.client(reader) as client, served.client(admin) as other:

        async def told() -> list[dict[str, Any]] | None:
            kinds = (await other.get("/v1/periodic")).json()["periodic"]
            return kinds if kinds and kinds[0]["last"] else None

        [tidy] = await until(told, "the server to tell")
        assert (tidy["kind"], tidy["schedule"], tidy["processes"]) == ("tidy", "every 0.5 s", 1)
        assert (await client.get("/v1/periodic")).status_code == 403
        jobs = (await client.get("/v1/jobs?kind=tidy")).json()["jobs"]
        assert jobs[-1]["key"].startswith("tick 20")
