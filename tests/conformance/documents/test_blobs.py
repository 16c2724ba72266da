"""What every blob store promises, through the port: a folder, S3, Google Cloud Storage."""

import asyncio
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os.path import samestat
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.blobs.address import bucket_address
from penstock.adapters.blobs.bucket import PIECE, BucketBlobs
from penstock.adapters.blobs.local import LocalBlobs
from penstock.errors import BlobMissing, DocumentTooLarge, StoreUnavailable
from penstock.model.ids import new_id
from penstock.ports.blobs import Blob, BlobStore
from tests.support.buckets import KEYS, GcsBucket, s3_bucket, s3_url
from tests.support.gcs_server import GcsServer

MOST = 50_000_000
SOON = -60.0
"""As an age: also what was stored this moment is old enough."""
PATIENCE = 100.0
"""Seconds for an answer: the servers of the tests may have to wait for a core."""
STORES = ("folder", "gcs", "s3")

# aiohttp warns of the event loop that gcsfs would block with it: that is a thread of its own.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")


@dataclass(slots=True)
class Place:
    """A blob store, and what is in it as others see it."""

    blobs: BlobStore
    names: Callable[[], list[str]]
    """Every object or file that is there."""
    put: Callable[[str, bytes], None]
    """Another program stores something there."""


@pytest.fixture(params=STORES)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    for variable, value in KEYS.items():
        monkeypatch.setenv(variable, value)
    name = f"test-{new_id()}"
    match request.param:
        case "folder":
            yield Place(
                LocalBlobs(tmp_path / "blobs"),
                lambda: sorted(
                    str(path.relative_to(tmp_path / "blobs"))
                    for path in (tmp_path / "blobs").rglob("*")
                    if path.is_file()
                ),
                lambda name, content: _write(tmp_path / "blobs" / name, content),
            )
        case "s3":
            with s3_bucket(name) as bucket:
                address = bucket_address(f"s3://{name}/some/where?endpoint={s3_url()}")
                yield Place(BucketBlobs(address, patience=PATIENCE), bucket.names, bucket.put)
        case "gcs":
            with GcsServer() as server:
                there = GcsBucket(server, name)
                monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
                address = bucket_address(f"gs://{name}/some/where")
                yield Place(BucketBlobs(address, patience=PATIENCE), there.names, there.put)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.fixture
async def blobs(place: Place) -> AsyncIterator[BlobStore]:
    yield place.blobs
    await place.blobs.close()


async def parts(*content: bytes) -> AsyncIterator[bytes]:
    for part in content:
        yield part


async def put(blobs: BlobStore, *content: bytes) -> Blob:
    return await blobs.put(parts(*content), most=MOST)


async def content_of(blobs: BlobStore, key: str) -> bytes:
    async with blobs.local(key) as path:
        return await asyncio.to_thread(path.read_bytes)


def using(*keys: str) -> Callable[[Sequence[str]], Any]:
    async def in_use(asked: Sequence[str]) -> set[str]:
        return set(asked) & set(keys)

    return in_use


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"a",
        b"\n--==0==\r\n\r\nno boundary\n--==0==--",
        bytes(range(256)) * 40_000,
        os.urandom(PIECE) + b"and one piece more",
    ],
    ids=["nothing", "a byte", "a boundary", "ten megabytes", "more than a piece"],
)
async def test_what_is_stored_is_read_as_it_was(blobs: BlobStore, content: bytes) -> None:
    stored = await put(blobs, content[:1000], content[1000:])
    assert stored.size == len(content)
    assert stored.key.startswith(hashlib.sha256(content).hexdigest())
    await blobs.check(stored.key)
    assert await content_of(blobs, stored.key) == content


async def test_same_bytes_twice_are_two_blobs(blobs: BlobStore, place: Place) -> None:
    first, second = await put(blobs, b"same"), await put(blobs, b"same")
    assert first.key[:64] == second.key[:64]
    assert first.key != second.key
    await blobs.delete(first.key)
    assert len(place.names()) == 1
    assert await content_of(blobs, second.key) == b"same"


async def test_too_large_an_upload_is_refused_and_leaves_nothing(
    blobs: BlobStore, place: Place
) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 1000

    with pytest.raises(DocumentTooLarge, match="over 10,500 bytes"):
        await blobs.put(endless(), most=10_500)
    assert taken == 11, "it stops as soon as it knows"
    assert place.names() == []


async def test_upload_that_breaks_leaves_nothing(blobs: BlobStore, place: Place) -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield b"half of it"
        raise RuntimeError("the client is gone")

    with pytest.raises(RuntimeError, match="the client is gone"):
        await blobs.put(breaking(), most=MOST)
    assert place.names() == []


async def test_cancelled_upload_leaves_nothing(blobs: BlobStore, place: Place) -> None:
    begun = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield b"half of it"
        begun.set()
        await asyncio.Event().wait()

    upload = asyncio.create_task(blobs.put(stuck(), most=MOST))
    await begun.wait()
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert place.names() == []


async def test_missing_blob_says_so(blobs: BlobStore) -> None:
    stored = await put(blobs, b"here, then gone")
    await blobs.delete(stored.key)
    await blobs.delete(stored.key)
    with pytest.raises(BlobMissing, match="upload the document again"):
        await blobs.check(stored.key)
    with pytest.raises(BlobMissing, match="upload the document again"):
        await content_of(blobs, stored.key)


@pytest.mark.parametrize("key", ["", "../../etc/passwd", "0" * 64, "a/b", f"{'A' * 64}-{'0' * 32}"])
async def test_what_is_no_key_reaches_nothing(blobs: BlobStore, place: Place, key: str) -> None:
    place.put("passwd", b"not ours")
    with pytest.raises(BlobMissing):
        await content_of(blobs, key)
    with pytest.raises(BlobMissing):
        await blobs.delete(key)
    assert place.names() == ["passwd"]


async def test_sweep_deletes_what_is_old_and_not_in_use(blobs: BlobStore, place: Place) -> None:
    stored = [await put(blobs, str(number).encode()) for number in range(20)]
    used = [blob.key for blob in stored[::2]]
    assert await blobs.sweep(3600.0, using()) == 0, "all of it is young"
    assert await blobs.sweep(SOON, using(*used)) == 10
    assert sorted(name.rpartition("/")[2] for name in place.names()) == sorted(used)
    assert await blobs.sweep(SOON, using(*used)) == 0


async def test_sweep_leaves_alone_what_is_not_a_blob(blobs: BlobStore, place: Place) -> None:
    others = ["some/where/report.pdf", "some/where/ab/cd.txt", "some/abc", "notes.txt"]
    for name in others:
        place.put(name, b"somebody else's")
    await put(blobs, b"ours")
    assert await blobs.sweep(SOON, using()) == 1
    assert place.names() == sorted(others)


async def test_many_at_once_do_not_mix(blobs: BlobStore) -> None:
    contents = [f"document {number}".encode() * 1000 for number in range(20)]
    stored = await asyncio.gather(*(put(blobs, content) for content in contents))
    read = await asyncio.gather(*(content_of(blobs, blob.key) for blob in stored))
    assert read == contents


async def test_closed_store_can_be_used_again(blobs: BlobStore) -> None:
    stored = await put(blobs, b"before")
    await blobs.close()
    assert await content_of(blobs, stored.key) == b"before"


async def test_local_file_is_gone_after_use(blobs: BlobStore, place: Place) -> None:
    stored = await put(blobs, b"not masked")
    async with blobs.local(stored.key) as path:
        assert path.read_bytes() == b"not masked"
        used = path.stat()
    await blobs.delete(stored.key)
    with suppress(FileNotFoundError):  # the number of a file that was closed may be another's now
        assert not samestat(path.stat(), used)


@pytest.mark.parametrize("scheme", ["gs", "s3"])
async def test_missing_bucket_is_a_clear_error_and_no_missing_blob(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in KEYS.items():
        monkeypatch.setenv(variable, value)
    key = f"{'0' * 64}-{'0' * 32}"
    with GcsServer() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        query = f"?endpoint={s3_url()}" if scheme == "s3" else ""
        blobs = BucketBlobs(
            bucket_address(f"{scheme}://nobody-made-it/where{query}"), patience=PATIENCE
        )
        for asked in (put(blobs, b"x"), blobs.check(key), blobs.sweep(SOON, using())):
            with pytest.raises(StoreUnavailable, match="no bucket 'nobody-made-it'"):
                await asked
        await blobs.close()


async def test_small_blob_is_whole_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file's buffer is written when it is closed: too late for the fsync before."""
    synced: list[int] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            synced.append(os.fstat(fd).st_size)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)

    async def parts() -> AsyncIterator[bytes]:
        yield b"small"

    blob = await LocalBlobs(tmp_path).put(parts(), most=100)
    assert blob.size == 5
    assert synced == [5]


async def test_name_of_every_folder_above_a_blob_is_on_disk_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power loss takes a new folder away, and all that is in it."""
    synced: list[Path] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{fd}")))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    root = tmp_path / "a" / "blobs"
    first = await put(LocalBlobs(root), b"first")
    shard = root / first.key[:2]
    assert {tmp_path, tmp_path / "a", root, shard} <= set(synced)
    assert synced[-2:] == [root, shard], "the folder's name after it is made, the blob's after that"

    synced.clear()
    other = LocalBlobs(root)  # as in another process, that cannot know who has made the folder
    await put(other, b"first")
    assert root in synced
    synced.clear()
    await put(other, b"first")
    assert synced[1:] == [shard], "once is enough"
