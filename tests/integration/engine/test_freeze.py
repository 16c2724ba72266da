"""Processes that stand still: frozen past their lease, or blocked by a handler."""

import signal

import pytest

from penstock import JobState
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

LEASE = 3.0
"""Of a process that stands still."""


@pytest.fixture(autouse=True)
def _lease(farm: Farm) -> None:
    farm.settings["lease_seconds"] = 600.0


async def test_what_a_thawed_process_has_to_say_about_lost_jobs_is_refused(farm: Farm) -> None:
    gate = farm.folder / "gate"
    async with farm.app() as app:
        jobs = await app.enqueue_many("gated", [{"gate": str(gate)}] * 4)
        frozen = await farm.start(lease_seconds=LEASE)
        await until(lambda: len(farm.side.notes()) == 4, "four jobs to run")
        await farm.freeze(frozen)
        gate.touch()
        other = await farm.start(kinds=["gated"])
        for job in jobs:
            done = await app.wait(job.id, timeout=PATIENCE)
            assert (done.state, done.attempts) == (JobState.COMPLETED, 2)
            assert done.result == {"attempt": 2, "pid": other.pid}
            assert [record.outcome for record in done.history] == ["lost"]
        rows = [await app.get(job.id) for job in jobs]

        # Every handler of the thawed process returns at once, with a result nobody wants.
        frozen.send(signal.SIGCONT)
        await until(lambda: "rejoining" in frozen.log, "the thawed process to notice")

        async def joined() -> bool:
            return {p.pid for p in await app.processes()} == {frozen.pid, other.pid}

        await until(joined, "the thawed process to join again")
        assert [await app.get(job.id) for job in jobs] == rows
        assert farm.side.runs() == {job.id: 2 for job in jobs}

        # It lives on, and does new work.
        done = await app.wait((await app.enqueue("work", {"n": 1})).id, timeout=PATIENCE)
        assert done.result == {"attempt": 1, "pid": frozen.pid}


async def test_a_late_outcome_that_reaches_the_queue_is_refused_and_said_so(farm: Farm) -> None:
    gate = farm.folder / "gate"
    async with farm.app() as app:
        job = await app.enqueue("gated", {"gate": str(gate)})
        # Its first renewal would be due in 200 s: so it hears of its loss from the queue, when
        # it brings its outcome.
        slow = await farm.start()
        await until(farm.side.notes, "the job to run")
        lapse = "UPDATE processes SET lease_until = 1 WHERE pid = ?"
        await farm.freeze(slow)
        farm.execute(lapse, slow.pid)
        gate.touch()
        other = await farm.start(kinds=["gated"])
        done = await app.wait(job.id, timeout=PATIENCE)
        assert done.result == {"attempt": 2, "pid": other.pid}
        slow.send(signal.SIGCONT)
        await until(lambda: "was refused" in slow.log, "the refusal")
        await until(lambda: "rejoining" in slow.log, "the slow process to join again")
        assert await app.get(job.id) == done
        work = await app.wait((await app.enqueue("work", {"n": 1})).id, timeout=PATIENCE)
        assert work.result == {"attempt": 1, "pid": slow.pid}


async def test_a_process_frozen_alone_finishes_its_jobs_when_it_thaws(farm: Farm) -> None:
    gate = farm.folder / "gate"
    async with farm.app() as app:
        jobs = await app.enqueue_many("gated", [{"gate": str(gate)}] * 4)
        frozen = await farm.start(lease_seconds=LEASE)
        await until(lambda: len(farm.side.notes()) == 4, "four jobs to run")
        await farm.freeze(frozen)

        def lapsed() -> bool:
            return bool(farm.query("SELECT 1 FROM processes WHERE lease_until < unixepoch() - 1"))

        await until(lapsed, "its lease to pass")
        gate.touch()
        frozen.send(signal.SIGCONT)
        await app.drain(timeout=PATIENCE)
        rows = [await app.get(job.id) for job in jobs]
    assert [job.state for job in rows] == [JobState.COMPLETED] * 4
    runs = farm.side.runs()
    assert all(runs[job.id] == job.attempts <= 2 for job in rows)


async def test_a_handler_that_blocks_the_event_loop_for_two_leases_is_run_once(
    farm: Farm,
) -> None:
    lease = 8.0  # a machine that stands still for 5 s does not end it
    async with farm.app() as app:
        job = await app.enqueue("blocking", {"seconds": 2 * lease})
        first = await farm.start(kinds=["blocking"], lease_seconds=lease)
        await until(farm.side.notes, "the job to run")
        second = await farm.start(kinds=["blocking"])
        done = await app.wait(job.id, timeout=PATIENCE)
        assert (done.state, done.attempts, done.history) == (JobState.COMPLETED, 1, [])
        assert done.result == {"attempt": 1, "pid": first.pid}
        assert farm.side.runs() == {job.id: 1}
        assert {p.pid for p in await app.processes()} == {first.pid, second.pid}
    assert "membership expired" not in first.log + second.log
