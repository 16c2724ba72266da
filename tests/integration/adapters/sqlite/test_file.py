"""The file of a SQLite queue: new, old, newer, damaged, or somebody else's."""

import asyncio
import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from penstock.adapters.sqlite import SqliteQueue, schema
from penstock.adapters.sqlite import database as database_module
from penstock.errors import ConfigError, QueueError, QueueUnavailable, QueueUnusable
from penstock.model.job import JobState
from penstock.ports.queue import JobFilter, Topic
from tests.conformance.support import add, add_one
from tests.support.waiting import PATIENCE, look_on

OPEN = """
import asyncio, sys, time
from penstock.adapters.sqlite import SqliteQueue
from tests.conformance.support import add_one

async def main(url, at):
    queue = SqliteQueue(url, durable=False)
    time.sleep(max(0.0, at - time.time()))  # all at the same moment
    await queue.open()
    await add_one(queue)
    await queue.close()

asyncio.run(main(sys.argv[1], float(sys.argv[2])))
"""
ROOT = Path(__file__).parents[4]


def queue_at(path: Path) -> SqliteQueue:
    return SqliteQueue(f"sqlite:///{path}", durable=False)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteQueue]:
    queue = queue_at(path)
    await queue.open()
    try:
        yield queue
    finally:
        await queue.close()


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version


async def refuses(path: Path, *words: str) -> None:
    """Opening `path` is refused with a message that names it and has these words."""
    queue = queue_at(path)
    with pytest.raises(QueueUnusable) as refusal:
        await queue.open()
    for word in (str(path), *words):
        assert word in str(refusal.value)
    with pytest.raises(QueueError):
        await queue.counts()


async def test_new_file_gets_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as queue:
        assert await queue.counts() == []

    assert version_of(path) >= 1


async def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as queue:
        job = await add_one(queue)
    version = version_of(path)
    async with opened(path) as queue:
        assert list(await queue.get([job.id])) == [job.id]

    assert version_of(path) == version


async def test_empty_file_is_taken_for_a_new_queue(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.touch()
    async with opened(path) as queue:
        await add_one(queue)


async def test_file_of_a_newer_penstock_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 9999")
    await refuses(path, "9999", "upgrade")

    assert version_of(path) == 9999


async def test_old_file_is_brought_up_to_date_with_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a migration of tomorrow, today's files are the old ones."""
    path = tmp_path / "jobs.db"
    async with opened(path) as queue:
        job = await add_one(queue)
    today = version_of(path)
    package = tmp_path / "package"
    (package / "migrations").mkdir(parents=True)
    for file in (Path(schema.__file__).parent / "migrations").glob("*.sql"):
        (package / "migrations" / file.name).write_text(file.read_text())
    step = package / "migrations" / "9998_tomorrow.sql"
    step.write_text("-- a comment; with a semicolon\nCREATE TABLE tomorrow (x TEXT DEFAULT ';');\n")
    monkeypatch.setattr(schema, "files", lambda name: package)
    monkeypatch.setattr(schema, "migrations", schema.migrations.__wrapped__)  # without its cache

    async with opened(path) as queue:
        assert list(await queue.get([job.id])) == [job.id]
    assert version_of(path) == today + 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM tomorrow").fetchone() == (0,)

    # and a step that fails half way leaves the file as it was
    (package / "migrations" / "9999_broken.sql").write_text(
        "CREATE TABLE half (x);\nINSERT INTO missing VALUES (1);\n"
    )
    with pytest.raises(QueueError):
        await queue_at(path).open()
    assert version_of(path) == today + 1
    with closing(sqlite3.connect(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert "half" not in tables


@pytest.mark.parametrize("version", [0, 1, 5])
async def test_database_of_another_program_is_refused_and_left_alone(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.execute("INSERT INTO notes VALUES ('mine')")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
    before = path.read_bytes()

    with pytest.raises(QueueUnusable):
        await queue_at(path).open()

    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["other.db"]


async def test_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir or Madam, " * 500)
    before = path.read_bytes()
    await refuses(path, "not a SQLite file")

    assert path.read_bytes() == before


async def test_damaged_file_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as queue:
        await add(queue, 500)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(bytes(content))

    with pytest.raises(QueueUnusable, match="damaged"):
        async with opened(path) as queue:
            await queue.counts()


async def test_damage_found_while_writing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as queue:
        await add(queue, 500)
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(bytes(content))

    with pytest.raises(QueueUnusable, match="damaged"):
        async with opened(path) as queue:
            await add(queue, 500)


async def test_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "jobs.db"

    with pytest.raises(QueueUnavailable, match="folder") as refusal:
        await queue_at(path).open()
    assert str(path) in str(refusal.value)


async def test_folder_in_place_of_the_file_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(QueueError):
        await queue_at(tmp_path).open()


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite://jobs.db", "jobs.db", ""])
async def test_url_without_a_file_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:///"):
        SqliteQueue(url)


async def test_queue_that_is_not_open_says_so(tmp_path: Path) -> None:
    queue = queue_at(tmp_path / "jobs.db")
    with pytest.raises(QueueError, match="not open"):
        await queue.counts()
    await queue.close()
    async with opened(tmp_path / "jobs.db") as queue:
        pass
    with pytest.raises(QueueError, match="not open"):
        await add_one(queue)


async def test_locked_file_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", PATIENCE)
    path = tmp_path / "jobs.db"
    async with opened(path) as queue:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.ensure_future(add_one(queue))
            await look_on(0.1)
            assert not waiting.done()
            assert await queue.counts() == [], "readers are not kept waiting"
            other.execute("COMMIT")
        job = await waiting
        assert list(await queue.get([job.id])) == [job.id]


async def test_file_locked_for_too_long_is_unavailable_and_works_again_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.1)
    path = tmp_path / "jobs.db"
    async with opened(path) as queue:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(QueueUnavailable, match="locked"):
                await add_one(queue)
            other.execute("ROLLBACK")
        job = await add_one(queue)
        assert [found.id for found in (await queue.get([job.id])).values()] == [job.id]


async def test_full_disk_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as queue:
        job = await add_one(queue)
        await queue.write(lambda tx: tx.execute("PRAGMA max_page_count = 1").fetchone())
        with pytest.raises(QueueUnavailable, match="disk full"):
            await add(queue, 2000)

        assert [found.id for found in await queue.find(JobFilter(), 10)] == [job.id]
        # The limit went with the connection: there is room again.
        await add(queue, 2000)
        (counts,) = await queue.counts()
        assert counts.states == {JobState.QUEUED: 2001}


async def test_processes_that_open_a_new_file_at_once_all_succeed(tmp_path: Path) -> None:
    for round_ in range(1):
        url = f"sqlite:///{tmp_path}/jobs{round_}.db"
        at = str(time.time() + 0.7)
        processes = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", OPEN, url, at, cwd=ROOT, stderr=asyncio.subprocess.PIPE
            )
            for _ in range(4)
        ]
        for process in processes:
            _, problem = await process.communicate()
            assert process.returncode == 0, problem.decode()
        async with opened(tmp_path / f"jobs{round_}.db") as queue:
            (counts,) = await queue.counts()
            assert sum(counts.states.values()) == 4


async def test_queue_objects_that_open_a_new_file_at_once_all_succeed(tmp_path: Path) -> None:
    for round_ in range(8):
        queues = [queue_at(tmp_path / f"jobs{round_}.db") for _ in range(6)]
        outcomes = await asyncio.gather(*(queue.open() for queue in queues), return_exceptions=True)
        await asyncio.gather(*(queue.close() for queue in queues))
        assert outcomes == [None] * 6


async def test_wakeups_arrive_without_inotify_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_NO_INOTIFY", "1")
    path = tmp_path / "jobs.db"
    async with opened(path) as queue, opened(path) as other:
        wakeup = other.listen(Topic.READY)
        while await wakeup.wait(0.3):
            pass
        job = await add_one(queue)
        assert await wakeup.wait(PATIENCE)
        assert list(await other.get([job.id])) == [job.id]
