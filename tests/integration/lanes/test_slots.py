"""Slots of lanes come back, whoever held them and however that ended."""

import asyncio
import random
import signal
import time
from typing import Any

import pytest

from penstock import JobContext, JobState, Penstock
from penstock.ports.lanes import LaneInfo
from tests.support.waiting import until
from tests.support.worker_processes import Farm

SOON = 60.0


async def lane_info(app: Penstock, name: str) -> LaneInfo:
    return next(lane for lane in await app.lane_infos() if lane.name == name)


def slots(farm: Farm) -> list[tuple[Any, ...]]:
    return farm.query("SELECT lane, holder, ref FROM slots")


async def test_slot_that_belongs_to_nobody_is_freed_and_told(
    farm: Farm, caplog: pytest.LogCaptureFixture
) -> None:
    """It never happens; if it did, the lane would be short of a slot for ever."""
    app = farm.bare(lanes={"api": {"min_interval_seconds": 0.0, "max_parallel": 1}})

    async def call(ctx: JobContext) -> None:
        pass

    app.job("call", lane="api")(call)
    async with app:
        job = await app.enqueue("call")
        farm.execute("INSERT INTO slots VALUES ('api', 77, 12345, 0)")
        async with app.running():
            assert (await app.wait(job.id, timeout=SOON)).state is JobState.COMPLETED

    assert "a slot of lane api belonged to nobody" in caplog.text
    assert slots(farm) == []


async def test_slots_of_a_killed_process_are_used_by_others_at_once(farm: Farm) -> None:
    farm.settings["lanes"] = {"three": {"min_interval_seconds": 0.0, "max_parallel": 3}}
    async with farm.app("laned") as app:
        await app.enqueue_many("hold", [{"lane": "three", "gate": str(farm.gate)}] * 6)
        victim = await farm.start("laned", lease_seconds=600.0)
        await until(lambda: len(farm.side.notes()) == 3, "three jobs to run")
        other = await farm.start("laned", lease_seconds=600.0)
        await victim.kill()

        def whole() -> bool:
            return sum(note.pid == other.pid for note in farm.side.notes()) == 3

        # Without waiting for the lease.
        await until(whole, "three jobs to run elsewhere", patience=SOON)
        assert (await lane_info(app, "three")).in_flight == 3
        farm.gate.touch()
        await app.drain(timeout=SOON)
    assert slots(farm) == []


async def test_permits_of_a_killed_process_are_free_at_once(farm: Farm) -> None:
    farm.settings["lanes"] = {"two": {"min_interval_seconds": 0.0, "max_parallel": 2}}
    async with farm.app("laned") as app:
        await app.enqueue_many("permit", [{"lane": "two", "gate": str(farm.gate)}] * 2)
        victim = await farm.start("laned", lease_seconds=600.0)
        await until(lambda: len(farm.side.notes()) == 2, "both permits to be taken")
        await farm.start("laned", lease_seconds=600.0)
        await victim.kill()
        farm.gate.touch()
        await app.enqueue_many("permit", [{"lane": "two"}] * 4)
        await app.drain(timeout=SOON)
        jobs = await app.jobs(states=["completed"])
    assert len(jobs) == 6
    assert slots(farm) == []


async def test_slots_of_a_frozen_process_are_free_within_the_lease_and_not_before(
    farm: Farm,
) -> None:
    farm.settings["lanes"] = {"three": {"min_interval_seconds": 0.0, "max_parallel": 3}}
    async with farm.app("laned") as app:
        await app.enqueue_many("hold", [{"lane": "three", "gate": str(farm.gate)}] * 6)
        frozen = await farm.start("laned", lease_seconds=6.0)
        await until(lambda: len(farm.side.notes()) == 3, "three jobs to run")
        other = await farm.start("laned", lease_seconds=600.0)
        await farm.freeze(frozen)
        since = time.monotonic()

        def elsewhere() -> int:
            return sum(note.pid == other.pid for note in farm.side.notes())

        await until(lambda: elsewhere() == 3, "the limit to be whole again", patience=SOON)
        assert time.monotonic() - since >= 1.0, "it was renewed 2 s ago at most"
        farm.gate.touch()
        await app.drain(timeout=SOON)
        frozen.send(signal.SIGCONT)
        await until(lambda: "rejoining" in frozen.log, "the thawed process to notice")
        assert slots(farm) == [], "nor does it bring its old slots with it"


async def test_cancelling_waiters_at_random_points_loses_no_slot(farm: Farm) -> None:
    app = farm.bare(
        max_workers=60,
        lanes={
            "narrow": {"min_interval_seconds": 0.005, "max_parallel": 3},
            "own": {"min_interval_seconds": 0.0, "max_parallel": 20},
        },
    )
    dice = random.Random(3)
    most = running = 0
    full = asyncio.Event()

    @app.job("wait", lane=lambda payload: "own" if payload["n"] % 3 == 0 else "narrow")
    async def wait(ctx: JobContext, n: int, until_full: bool = False) -> None:
        """In its own lane or, every third, in the narrow one from outside."""
        nonlocal most, running
        if n % 3:
            await asyncio.sleep(dice.random() * 0.05)
            return
        async with ctx.lanes.permit("narrow"):
            running += 1
            most = max(most, running)
            try:
                if until_full:
                    if running == 3:
                        full.set()
                    await full.wait()
                await asyncio.sleep(dice.random() * 0.05)
            finally:
                running -= 1

    async with app, app.running():
        jobs = await app.enqueue_many("wait", [{"n": n} for n in range(300)])
        for job in dice.sample(jobs, len(jobs)):
            await asyncio.sleep(dice.random() * 0.008)
            await app.cancel(job.id)
        await app.drain(timeout=SOON)
        states = {job.state for job in await app.jobs(limit=400)}
        assert states <= {JobState.COMPLETED, JobState.CANCELLED}
        await until(lambda: slots(farm) == [], "every slot to be given back", patience=SOON)
        assert (await lane_info(app, "narrow")).in_flight == 0
        assert most <= 3
        more = await app.enqueue_many("wait", [{"n": 0, "until_full": True}] * 30)
        for job in more:
            assert (await app.wait(job.id, timeout=SOON)).state is JobState.COMPLETED
    assert most == 3, "the lane still grants all it has, and no more"


async def test_stopping_hands_back_what_waits_for_its_start_and_frees_its_slots(
    farm: Farm,
) -> None:
    app = farm.bare(
        max_workers=4, lanes={"api": {"min_interval_seconds": 0.04, "max_parallel": 50}}
    )

    @app.job("work", lane="api")
    async def work(ctx: JobContext) -> None:
        pass

    async with app:
        await app.enqueue_many("work", [None] * 300)
        async with app.running():
            await until(lambda: _completed(farm) > 3, "some work")
        jobs = await app.jobs(limit=400)
    assert {(job.state, job.attempts) for job in jobs} == {
        (JobState.COMPLETED, 1),
        (JobState.QUEUED, 0),
    }
    assert slots(farm) == []


def _completed(farm: Farm) -> int:
    ((count,),) = farm.query("SELECT count(*) FROM jobs WHERE state = 'completed'")
    return int(count)
