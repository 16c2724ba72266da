"""Disk full, read-only, locked, corrupt: a clear error, nothing lost, no meltdown, recovery."""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock import Job, JobOrchestrator, JobState, Penstock
from penstock.adapters.sqlite import database
from penstock.errors import QueueUnavailable, QueueUnusable
from tests.support.cpu_time import cpu_share
from tests.support.disk import fill
from tests.support.side_effects import Side
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm


@asynccontextmanager
async def two_jobs_running(
    farm: Farm,
) -> AsyncIterator[tuple[Penstock, JobOrchestrator, list[Job]]]:
    """A worker in this process with two jobs in the middle of their run."""
    app = farm.app()
    async with app.running() as orchestrator:
        jobs = await app.enqueue_many("gated", [{"gate": str(farm.gate)}] * 2)
        await until(lambda: len(farm.side.notes()) == 2, "two jobs to run")
        yield app, orchestrator, jobs


async def finish_into_trouble(farm: Farm, orchestrator: JobOrchestrator, complaint: str) -> None:
    """Let the jobs end while their outcome cannot be stored: degraded, but at rest."""
    farm.gate.touch()
    await until(lambda: complaint in (orchestrator.degraded or ""), f"degraded: {complaint}")
    assert orchestrator.running
    assert await cpu_share(1.0) < 0.2
    assert orchestrator.dispatcher_task is not None
    assert not orchestrator.dispatcher_task.done()
    assert all(not worker.task.done() for worker in orchestrator.workers)


async def all_is_well_again(
    farm: Farm, app: Penstock, orchestrator: JobOrchestrator, jobs: list[Job]
) -> None:
    """Everything that was accepted finishes, new work included."""
    for job in jobs:
        done = await app.wait(job.id, timeout=PATIENCE)
        assert done.state is JobState.COMPLETED
        assert done.result["attempt"] == done.attempts == farm.side.runs()[job.id]
    await until(lambda: orchestrator.degraded is None, "the worker to recover")
    new = await app.enqueue("work", {"n": 1})
    assert (await app.wait(new.id, timeout=PATIENCE)).state is JobState.COMPLETED
    stored = {job.id for job in await app.jobs(limit=1000)}
    assert stored == {job.id for job in [*jobs, new]}


async def test_disk_full_is_said_and_survived(disk: Path, tmp_path: Path) -> None:
    farm = Farm(disk)
    farm.side, farm.gate = Side(tmp_path / "side.jsonl"), tmp_path / "gate"
    async with two_jobs_running(farm) as (app, orchestrator, jobs):
        ballast = fill(disk)
        with pytest.raises(QueueUnavailable, match=r"disk full.*free some space"):  # noqa: PT012
            while True:  # what space the file has left inside is used first
                jobs.append(await app.enqueue("gated", {"gate": str(farm.gate) + " " * 1000}))
        await finish_into_trouble(farm, orchestrator, "disk full")
        await app.get(jobs[0].id)  # reading needs no space
        ballast.unlink()
        await all_is_well_again(farm, app, orchestrator, jobs)


async def test_a_worker_cannot_start_on_a_full_disk_and_says_why(
    disk: Path, tmp_path: Path
) -> None:
    farm = Farm(disk)
    app = farm.app()
    async with app:
        job = await app.enqueue("work", {"n": 1})
        ballast = fill(disk)
        with pytest.raises(QueueUnavailable, match="No space left on device"):
            await app.orchestrator().start()
        ballast.unlink()
        farm.side = Side(tmp_path / "side.jsonl")
        async with app.running():
            assert (await app.wait(job.id, timeout=PATIENCE)).state is JobState.COMPLETED


def attribute(change: str, *paths: Path) -> bool:
    """chattr, which unlike chmod binds root too."""
    try:
        command = ["chattr", change, *map(str, paths)]
        return subprocess.run(command, capture_output=True, timeout=PATIENCE).returncode == 0
    except OSError:
        return False


@pytest.fixture
def immutable(farm: Farm) -> Iterator[None]:
    """Skips where chattr +i is not permitted; takes it back in the end."""
    probe = farm.folder / "probe"
    probe.touch()
    if not attribute("+i", probe):
        pytest.skip("chattr +i is not permitted here")
    attribute("-i", probe)
    yield
    attribute("-i", *farm.folder.iterdir(), farm.folder)


def database_files(farm: Farm) -> list[Path]:
    # Not the -shm file: it is mapped, and a write to a mapping of such a file is SIGBUS.
    return [farm.path, farm.path.with_name("jobs.db-wal")]


@pytest.mark.usefixtures("immutable")
async def test_a_file_turned_read_only_is_said_and_survived(farm: Farm) -> None:
    async with two_jobs_running(farm) as (app, orchestrator, jobs):
        files = database_files(farm)
        assert attribute("+i", *files)
        for _ in range(3):  # the first write meets it elsewhere than the others
            with pytest.raises(QueueUnavailable, match="writable"):
                await app.enqueue("work", {"n": 0})
        await finish_into_trouble(farm, orchestrator, "read-only")
        assert attribute("-i", *files)
        await all_is_well_again(farm, app, orchestrator, jobs)


@pytest.mark.usefixtures("immutable")
async def test_opening_a_read_only_file_says_so(farm: Farm) -> None:
    async with farm.app() as app:
        job = await app.enqueue("work", {"n": 0})
    assert attribute("+i", farm.path)
    with pytest.raises(QueueUnavailable, match=r"read-only.*writable"):
        async with farm.app() as app:
            await app.enqueue("work", {"n": 1})
    assert attribute("-i", farm.path)
    async with farm.app() as app, app.running():
        assert (await app.wait(job.id, timeout=60)).state is JobState.COMPLETED


@pytest.mark.usefixtures("immutable")
async def test_opening_in_a_read_only_folder_says_so(farm: Farm) -> None:
    assert attribute("+i", farm.folder)
    with pytest.raises(QueueUnavailable, match="writable"):
        async with farm.app():
            pass


async def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(QueueUnavailable, match=r"nowhere/jobs\.db.*does its folder exist"):
        async with Penstock(f"sqlite:///{tmp_path}/nowhere/jobs.db"):
            pass


async def test_a_file_locked_for_long_is_said_and_survived(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 2.0)
    async with two_jobs_running(farm) as (app, orchestrator, jobs):
        other = sqlite3.connect(farm.path, isolation_level=None)
        with contextlib.closing(other):
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(QueueUnavailable, match=r"locked by this process itself.*conn="):
                await app.enqueue("work", {"n": 0})
            await finish_into_trouble(farm, orchestrator, "locked by this process itself")
            await app.get(jobs[0].id)  # reading needs no lock
        await all_is_well_again(farm, app, orchestrator, jobs)


async def test_stopping_while_the_file_is_locked_ends_and_loses_nothing(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 2.0)
    farm.settings["lease_seconds"] = 3.0  # it tries to settle for as long
    async with two_jobs_running(farm) as (app, orchestrator, jobs):
        other = sqlite3.connect(farm.path, isolation_level=None)
        with contextlib.closing(other):
            other.execute("BEGIN EXCLUSIVE")
            farm.gate.touch()
            async with asyncio.timeout(60):
                await orchestrator.stop()
            assert not orchestrator.running
    async with app, app.running():
        for job in jobs:
            assert (await app.wait(job.id, timeout=60)).state is JobState.COMPLETED


async def test_garbage_is_refused_and_left_alone(farm: Farm) -> None:
    garbage = os.urandom(8192)
    farm.path.write_bytes(garbage)
    with pytest.raises(QueueUnusable, match=r"damaged or not a SQLite file.*restore a backup"):
        async with farm.app():
            pass
    assert farm.path.read_bytes() == garbage


def overwrite(source: Path, target: Path) -> None:
    """Copy 4 KiB, from another process: closing the file here would drop SQLite's locks on it."""
    how = ["bs=4096", "count=1", "conv=notrunc", "status=none"]
    subprocess.run(["dd", f"if={source}", f"of={target}", *how], check=True, timeout=PATIENCE)


async def damage(farm: Farm, header: Path) -> None:
    """Spoil the first page where everybody has to read it again: it is not in the log, because
    nobody writes meanwhile, and not in memory, because of a change that leaves it as it is."""
    log = farm.path.with_name("jobs.db-wal")
    with contextlib.closing(sqlite3.connect(farm.path, PATIENCE, isolation_level=None)) as other:

        def at_rest() -> bool:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            other.execute("BEGIN IMMEDIATE")
            if log.stat().st_size:
                other.execute("ROLLBACK")
            return other.in_transaction

        await until(at_rest, "a moment in which nobody writes")
        for change in (1, -1):  # SQLite writes no page that a statement leaves as it is
            other.execute("UPDATE processes SET pid = pid + ?", [change])
        overwrite(farm.path, header)
        overwrite(Path("/dev/urandom"), farm.path)
        other.execute("COMMIT")


async def test_a_file_damaged_while_running_is_said_and_survived(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", PATIENCE)
    async with two_jobs_running(farm) as (app, orchestrator, jobs):
        header = farm.path.with_name("header")
        await damage(farm, header)
        with pytest.raises(QueueUnusable, match=r"damaged.*restore a backup"):
            async with farm.app():
                pass
        with pytest.raises(QueueUnusable, match="damaged"):
            await app.enqueue("work", {"n": 0})
        await finish_into_trouble(farm, orchestrator, "damaged")
        overwrite(header, farm.path)
        await all_is_well_again(farm, app, orchestrator, jobs)
