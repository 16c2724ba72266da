"""A bucket that is down, slow, wrong or cut off: a clear error in time, and nothing half stored."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from penstock.adapters.blobs.address import bucket_address
from penstock.adapters.blobs.bucket import BucketBlobs
from penstock.errors import StoreUnavailable
from penstock.model.ids import new_id
from penstock.ports.blobs import Blob, BlobStore
from tests.support.buckets import KEYS, Bucket, s3_bucket, s3_url
from tests.support.counting_server import Answer, CountingServer
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import until

PATIENCE = 30.0
LITTLE = 8.0
"""Where nothing is to succeed."""
IN_TIME = 75.0
KEY = f"{'0' * 64}-{'0' * 32}"
LARGE = b"0123456789abcdef" * (1 << 20)
MEDIUM = LARGE[: 2 << 20]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in KEYS.items():
        monkeypatch.setenv(variable, value)


@pytest.fixture
def name() -> str:
    return f"test-{new_id()}"


@pytest.fixture
def bucket(name: str) -> Iterator[Bucket]:
    with s3_bucket(name) as bucket:
        yield bucket


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy(s3_url()) as proxy:
        yield proxy


@asynccontextmanager
async def blobs_at(
    url: str, endpoint: str, *, patience: float = PATIENCE
) -> AsyncIterator[BucketBlobs]:
    blobs = BucketBlobs(bucket_address(f"{url}?endpoint={endpoint}"), patience=patience)
    yield blobs
    await blobs.close()


async def put(blobs: BlobStore, content: bytes) -> Blob:
    async def parts() -> AsyncIterator[bytes]:
        yield content

    return await blobs.put(parts(), most=len(LARGE))


async def read(blobs: BlobStore, key: str) -> bytes:
    async with blobs.local(key) as path:
        return path.read_bytes()


async def nothing(keys: Sequence[str]) -> set[str]:
    return set()


async def every_call_fails(blobs: BlobStore, why: str) -> None:
    async with asyncio.timeout(IN_TIME):
        ends = await asyncio.gather(
            put(blobs, b"x"),
            blobs.check(KEY),
            read(blobs, KEY),
            blobs.delete(KEY),
            blobs.sweep(0.0, nothing),
            return_exceptions=True,
        )
    for end in ends:
        assert isinstance(end, StoreUnavailable), end
        assert why in str(end)
        assert end.address is not None


async def test_bucket_that_is_down_is_unavailable_and_then_works_again(
    proxy: Proxy, bucket: Bucket, name: str
) -> None:
    async with blobs_at(f"s3://{name}", proxy.url) as blobs:
        stored = await put(blobs, b"before")
        proxy.leave()
        await every_call_fails(blobs, f"cannot use the blobs in s3://{name}: ")
        proxy.come_back()
        assert await read(blobs, stored.key) == b"before"
        await put(blobs, b"after")
    assert len(bucket.names()) == 2


@pytest.mark.parametrize("scheme", ["gs", "s3"])
async def test_bucket_where_nobody_answers_is_unavailable(scheme: str, proxy: Proxy) -> None:
    url = proxy.url
    proxy.leave()
    async with blobs_at(f"{scheme}://some/where", url, patience=LITTLE) as blobs:
        await every_call_fails(blobs, f"{scheme}://some/where: ")
    proxy.come_back()


@pytest.mark.parametrize("scheme", ["gs", "s3"])
@pytest.mark.parametrize(
    "answer",
    [
        Answer(500),
        Answer(503, body=b"<html>busy</html>"),
        Answer(403, body=b"<Error><Code>AccessDenied</Code></Error>"),
        Answer(200, body=b"no answer of a bucket", delay=60.0),
        Answer(hang=True),
        Answer(reset=True),
    ],
    ids=["500", "503", "refused", "slow", "silent", "reset"],
)
async def test_server_that_fails_is_unavailable_in_time(scheme: str, answer: Answer) -> None:
    with CountingServer() as server:
        server.answers["/"] = answer
        url = server.url("")
        async with blobs_at(f"{scheme}://some/where", url, patience=LITTLE) as blobs:
            await every_call_fails(blobs, f"{scheme}://some/where: ")
        # None, where the machine is too busy to send one in the time that was given.
        assert len(server.hits) <= 100, "a few tries for each request, of which a call has two"


async def test_missing_credentials_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in KEYS:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    async with blobs_at("s3://some/where", s3_url()) as blobs:
        with pytest.raises(StoreUnavailable, match="credentials"):
            await put(blobs, b"x")


async def test_answer_that_is_not_googles_is_unavailable() -> None:
    with CountingServer() as server:
        server.answers["/"] = Answer(200, body=b"welcome to some other server")
        async with blobs_at("gs://some/where", server.url("")) as blobs:
            for call in (put(blobs, b"x"), blobs.check(KEY), blobs.sweep(0.0, nothing)):
                with pytest.raises(StoreUnavailable, match="gs://some/where: "):
                    await call


@pytest.mark.parametrize("how", ["cut", "timed out", "cancelled"])
async def test_upload_that_is_cut_leaves_nothing(
    how: str, proxy: Proxy, bucket: Bucket, name: str
) -> None:
    proxy.delay = 0.02
    patience = LITTLE if how == "timed out" else PATIENCE
    async with blobs_at(f"s3://{name}", proxy.url, patience=patience) as blobs:
        upload = asyncio.create_task(put(blobs, MEDIUM))
        await until(lambda: proxy.passed > len(MEDIUM) / 4, "some of it to be sent")
        match how:
            case "cut":
                proxy.leave()
            case "timed out":
                proxy.silence()
            case _:
                upload.cancel()
        async with asyncio.timeout(IN_TIME):
            with pytest.raises(asyncio.CancelledError if how == "cancelled" else StoreUnavailable):
                await upload
    proxy.drop()
    proxy.resume()
    assert bucket.names() == []
    assert bucket.unfinished() == []
    if how == "cut":
        proxy.come_back()


async def test_download_that_is_cut_is_unavailable(proxy: Proxy, bucket: Bucket, name: str) -> None:
    async with blobs_at(f"s3://{name}", proxy.url) as blobs:
        stored = await put(blobs, LARGE)
        proxy.delay, before = 0.02, proxy.passed
        download = asyncio.create_task(read(blobs, stored.key))
        await until(lambda: proxy.passed > before + len(LARGE) / 20, "some of it to come")
        proxy.leave()
        with pytest.raises(StoreUnavailable):
            await download
        proxy.come_back()
        proxy.delay = 0.0
        assert await read(blobs, stored.key) == LARGE


async def test_other_bytes_than_were_stored_are_not_read(bucket: Bucket, name: str) -> None:
    async with blobs_at(f"s3://{name}", s3_url()) as blobs:
        stored = await put(blobs, b"the original")
        bucket.put(stored.key, b"the replaced")
        with pytest.raises(StoreUnavailable, match="other bytes than were stored"):
            await read(blobs, stored.key)


async def test_nothing_unmasked_has_a_name_on_this_machine(
    bucket: Bucket, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed leaves no file behind: there is none at any time."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen: list[list[str]] = []

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"not masked" * 100_000
            seen.append(os.listdir(tmp_path))

    async with blobs_at(f"s3://{name}", s3_url()) as blobs:
        stored = await blobs.put(parts(), most=len(LARGE))
        async with blobs.local(stored.key) as path:
            assert len(path.read_bytes()) == stored.size
            seen.append(os.listdir(tmp_path))
    assert seen == [[], [], [], []]


async def test_no_room_for_an_upload_is_a_clear_error(
    bucket: Bucket, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    async with blobs_at(f"s3://{name}", s3_url()) as blobs:
        with pytest.raises(StoreUnavailable, match="cannot keep a file in /nowhere"):
            await put(blobs, b"x")


async def test_event_loop_goes_on_while_a_bucket_is_used() -> None:
    """Also the first time, when libraries are loaded and credentials read."""
    with CountingServer() as server:
        server.answers["/"] = Answer(hang=True)
        async with blobs_at("s3://some/where", server.url(""), patience=LITTLE) as blobs:
            upload = asyncio.create_task(put(blobs, LARGE[: 1 << 20]))
            turns = 0
            while not upload.done():
                await asyncio.sleep(0.005)
                turns += 1
            with pytest.raises(StoreUnavailable, match="no answer within"):
                await upload
    assert turns >= 50, "a tenth of what there is time for"


async def test_address_of_the_trouble_is_the_servers(proxy: Proxy) -> None:
    """The lane's probe looks there."""
    url = proxy.url
    proxy.leave()
    async with blobs_at("s3://some/where", url, patience=LITTLE) as blobs:
        with pytest.raises(StoreUnavailable) as raised:
            await blobs.check(KEY)
    assert raised.value.address == urlsplit(url).netloc
    proxy.come_back()
