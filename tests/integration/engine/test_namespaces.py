"""Proof of life by a kernel lock: pids prove nothing, and children inherit nothing."""

import contextlib
import os
import signal
import subprocess
from collections import Counter

import pytest

from penstock import JobState
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def may_unshare() -> bool:
    try:
        tried = subprocess.run([*UNSHARE, "true"], capture_output=True, timeout=PATIENCE)
        return tried.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@pytest.mark.skipif(not may_unshare(), reason="new pid namespaces are not permitted here")
async def test_processes_with_the_same_pid_in_two_namespaces_share_the_work(farm: Farm) -> None:
    farm.settings["lease_seconds"] = 60.0  # a pause of the machine is no death
    async with farm.app() as app:
        workers = [await farm.start(wrapper=UNSHARE, environment={"WORKER": name}) for name in "ab"]
        assert [p.pid for p in await app.processes()] == [1, 1]
        payloads = [{"n": n, "seconds": 0.02} for n in range(300)]
        jobs = await app.enqueue_many("work", payloads)
        await app.drain(timeout=PATIENCE)
        shares = Counter(note.worker for note in farm.side.notes())
        if min(shares["a"], shares["b"]) < 50:  # one had not the time
            jobs += await app.enqueue_many("work", payloads)
            await app.drain(timeout=PATIENCE)
        rows = await app.jobs(limit=700)
        assert len(await app.processes()) == 2
    assert {(job.state, job.attempts, len(job.history)) for job in rows} == {
        (JobState.COMPLETED, 1, 0)
    }
    assert farm.side.runs() == {job.id: 1 for job in jobs}
    assert {note.pid for note in farm.side.notes()} == {1}
    shares = Counter(note.worker for note in farm.side.notes())
    assert min(shares["a"], shares["b"]) >= 50
    assert all("membership expired" not in worker.log for worker in workers)


@pytest.mark.skipif(not may_unshare(), reason="new pid namespaces are not permitted here")
async def test_a_live_job_is_not_stolen_across_namespaces_but_a_dead_ones_is_taken_at_once(
    farm: Farm,
) -> None:
    farm.settings["lease_seconds"] = 60.0  # only the lock can tell
    gate = farm.folder / "gate"
    async with farm.app() as app:
        job = await app.enqueue("gated", {"gate": str(gate)})
        first = await farm.start(wrapper=UNSHARE)
        await until(farm.side.notes, "the job to run")
        await farm.start(wrapper=UNSHARE, upkeep_seconds=0.02)
        # The second one's upkeep has looked at the first many times once it has done this.
        for n in range(20):
            await app.wait((await app.enqueue("work", {"n": n, "seconds": 0.02})).id, timeout=60)
        assert farm.side.runs("gated") == {job.id: 1}
        assert (await app.get(job.id)).state is JobState.RUNNING
        await first.kill()  # and with it, pid 1 of its namespace
        gate.touch()
        done = await app.wait(job.id, timeout=60)
        assert (done.state, done.attempts) == (JobState.COMPLETED, 2)


async def test_a_surviving_child_does_not_keep_its_dead_parents_jobs(farm: Farm) -> None:
    farm.settings["lease_seconds"] = 60.0  # only the lock can tell
    gate = farm.folder / "gate"
    async with farm.app("family") as app:
        job = await app.enqueue("forks", {"gate": str(gate), "child_seconds": 60})
        parent = await farm.start("family")
        (note,) = await until(farm.side.notes, "the job to run")
        child = int(note.data)
        try:
            await parent.kill()
            os.kill(child, 0)  # still there
            gate.touch()
            other = await farm.start("family")
            done = await app.wait(job.id, timeout=60)
            os.kill(child, 0)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        assert (done.state, done.attempts, done.result) == (JobState.COMPLETED, 2, other.pid)


async def test_a_child_that_ends_does_not_make_its_living_parent_look_dead(farm: Farm) -> None:
    farm.settings["lease_seconds"] = 60.0  # a pause of the machine is no death
    gate = farm.folder / "gate"
    async with farm.app("family") as app:
        job = await app.enqueue("forks", {"gate": str(gate), "child_seconds": 0})
        parent = await farm.start("family")
        (note,) = await until(farm.side.notes, "the job to run")

        def child_ended() -> bool:
            with open(f"/proc/{note.data}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] == "Z"

        await until(child_ended, "the child to end")
        other = await farm.start("family", kinds=["child"], upkeep_seconds=0.02)
        for n in range(20):
            await app.wait((await app.enqueue("child", {"n": n})).id, timeout=60)
        assert {p.pid for p in await app.processes()} == {parent.pid, other.pid}
        gate.touch()
        done = await app.wait(job.id, timeout=60)
        assert (done.state, done.attempts, done.result) == (JobState.COMPLETED, 1, parent.pid)
        assert farm.side.runs("forks") == {job.id: 1}
