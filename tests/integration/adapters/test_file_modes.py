"""What Penstock puts on a disk is for its own user, whatever the umask."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from penstock import JobContext, Penstock
from penstock.adapters.blobs.local import LocalBlobs
from penstock.adapters.life_file import LifeFile
from penstock.adapters.private_files import open_private, private_folder


@pytest.fixture(params=[0o000, 0o022], ids=["umask 000", "umask 022"], autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def below(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))


def open_to_others(folder: Path) -> list[str]:
    """What is below a folder that the group or everybody can do something with."""
    return [
        f"{path.relative_to(folder)} {path.stat().st_mode & 0o777:o}"
        for path in below(folder)
        if path.stat().st_mode & 0o077
    ]


async def parts(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_queue_and_what_lies_beside_it_are_private(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db")

    @app.job("noop")
    async def noop(ctx: JobContext) -> None: ...

    async with app.running():
        await app.wait((await app.enqueue("noop")).id)
        names = {path.name for path in below(tmp_path)}
        assert names >= {"jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db-run", "ready.bell"}
        assert any(name.endswith(".life") for name in names)
        assert open_to_others(tmp_path) == []


async def test_originals_are_private_and_so_are_the_folders_made_for_them(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path / "deep" / "blobs")
    blob = await blobs.put(parts(b"not masked"), most=100)
    async with blobs.local(blob.key) as path:
        assert path.read_bytes() == b"not masked"
    assert open_to_others(tmp_path) == []


def test_life_files_of_queues_on_servers_are_private(tmp_path: Path) -> None:
    life = LifeFile(tmp_path / "deep" / "run")
    assert open_to_others(tmp_path) == []
    life.close()


def test_what_is_there_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o750)
    (shared / "file").touch()
    (shared / "file").chmod(0o640)
    assert private_folder(shared) == []
    assert private_folder(shared / "a" / "b") == [shared / "a", shared / "a" / "b"]
    os.close(open_private(shared / "file", os.O_RDWR | os.O_CREAT))
    assert sorted(open_to_others(tmp_path)) == ["shared 750", "shared/file 640"]
