"""Blob store in a bucket: S3-compatible servers or Google Cloud Storage.

    s3://bucket/prefix/<key>        one object for each blob, nothing else

The content of an object is sent by one request, so it is there whole or not at all, and no part
of an upload that was cut is left behind. What is on its way is in files without a name: they are
not masked, and are gone when the process is, however it ends.

All requests are made by fsspec's own thread: loading the libraries, reading credentials and TLS
take their time there and not on the caller's event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import tempfile
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.adapters.blobs.address import BucketAddress, ObjectAddress
from penstock.adapters.blobs.keys import is_key
from penstock.adapters.blobs.services import BlobService, require, service
from penstock.errors import BlobMissing, DocumentTooLarge, StoreUnavailable
from penstock.model.ids import new_id
from penstock.ports.blobs import Blob, InUse, digest_of, key_of

PATIENCE = 20.0
"""Seconds a request may take, and as many more as its bytes need at the slowest."""
SLOWEST = 500_000
"""Bytes a second."""
AT_ONCE = 4
"""Uploads under way in one process: each is in memory while it is sent."""
PIECE = 8 << 20
"""Bytes of a download in memory at a time."""
ONE_REQUEST = 5 * 2**30 - 1
"""S3 takes no more in one request."""
PAGE = 500
"""Blobs asked about at a time."""
FORBIDDEN = "Forbidden:"
"""How what gcsfs says of a 403 begins: its error is like many others."""
SHARDS = "0123456789abcdef"
"""What keys begin with: a listing is made in as many parts, and held in memory one at a time."""


class BucketBlobs:
    """See `penstock.ports.blobs.BlobStore`. ConfigError where the extra is not installed."""

    def __init__(self, address: BucketAddress, *, patience: float = PATIENCE) -> None:
        require(address)
        self._address = address
        self._patience = patience
        self._uploads = asyncio.Semaphore(AT_ONCE)
        self._service: BlobService | None = None
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        # In a thread, because the library closes its connections when it is let go, and on an
        # event loop it would take that for its own. It opens new ones if used again.
        await asyncio.to_thread(self._let_go)

    def _let_go(self) -> None:
        self._service = None

    async def put(
        self, parts: AsyncIterable[bytes], *, most: int, number: str | None = None
    ) -> Blob:
        digest, size, most = hashlib.sha256(), 0, min(most, ONE_REQUEST)
        with _nameless() as file:
            async for part in parts:
                size += len(part)
                if size > most:
                    raise DocumentTooLarge(f"over {most:,} bytes")
                await asyncio.to_thread(_write, file, digest, part)
            key = key_of(digest.hexdigest(), number or new_id())
            async with self._uploads:
                content = await asyncio.to_thread(_whole, file)
                try:
                    await self._ask(lambda files: _send(files, self._path(key), content), size)
                except FileNotFoundError as error:
                    await self._need_bucket()
                    raise self._unavailable("the upload was lost on its way") from error
        return Blob(key, size)

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        path, digest = self._path(key), hashlib.sha256()
        with _nameless() as file:
            async for piece in self._pieces(path):
                await asyncio.to_thread(_write, file, digest, piece)
            if digest.hexdigest() != digest_of(key):
                raise self._unavailable("it gave other bytes than were stored")
            await asyncio.to_thread(file.flush)
            # The parser, a process of the same user, reads it through its owner.
            yield Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")

    async def content(self, name: str) -> AsyncIterator[bytes]:
        """What another program has stored in this bucket, in pieces. BlobMissing where it is not
        there, PermissionError where it is not for us."""
        try:
            async for piece in self._pieces(f"{self._address.bucket}/{name}"):
                yield piece
        except StoreUnavailable as error:
            cause = error.__cause__
            if isinstance(cause, PermissionError) or str(cause).startswith(FORBIDDEN):
                raise PermissionError(f"{self._address.bucket}: it is not for us") from error
            raise

    async def _pieces(self, path: str) -> AsyncIterator[bytes]:
        size = await self._size(path)
        for start in range(0, size, PIECE):
            yield await self._piece(path, start, min(start + PIECE, size))

    async def _piece(self, path: str, start: int, end: int) -> bytes:
        try:
            piece = await self._ask(
                lambda files: files._cat_file(path, start=start, end=end), end - start
            )
        except FileNotFoundError as error:
            raise _missing() from error
        assert isinstance(piece, bytes)
        return piece

    async def check(self, key: str) -> None:
        await self._size(self._path(key))

    async def delete(self, key: str) -> None:
        path = self._path(key)
        try:
            await self._ask(lambda files: files._rm_file(path))
        except FileNotFoundError:
            return

    async def sweep(self, older_than: float, in_use: InUse) -> int:
        before, count = time.time() - older_than, 0
        for shard in SHARDS:
            keys = await self._older(shard, before)
            for first in range(0, len(keys), PAGE):
                page = keys[first : first + PAGE]
                used = await in_use(page)
                for key in page:
                    if key not in used:
                        await self.delete(key)
                        count += 1
        return count

    async def _older(self, shard: str, before: float) -> list[str]:
        """What is not ours is left out: others may keep things in the same bucket."""
        root = self._address.root
        try:
            found = await self._ask(lambda files: files._find(root, prefix=shard, detail=True))
        except FileNotFoundError:
            await self._need_bucket()
            return []
        assert self._service is not None
        stored_at, start = self._service.stored_at, len(root) + 1
        return [
            name[start:]
            for name, info in found.items()
            if is_key(name[start:]) and info[stored_at].timestamp() < before
        ]

    async def _size(self, path: str) -> int:
        try:
            return int((await self._ask(lambda files: files._info(path)))["size"])
        except FileNotFoundError as error:
            await self._need_bucket()
            raise _missing() from error

    async def _need_bucket(self) -> None:
        """Tells a bucket that is missing from what is missing in it."""
        bucket = self._address.bucket
        try:
            await self._ask(lambda files: files._info(bucket))
        except FileNotFoundError as error:
            raise self._unavailable(f"there is no bucket {bucket!r}: make it") from error

    def _path(self, key: str) -> str:
        if not is_key(key):
            raise BlobMissing(f"{key!r} names no blob")
        return f"{self._address.bucket}/{self._address.prefix}{key}"

    async def _ask(self, call: Callable[[Any], Coroutine[Any, Any, Any]], size: int = 0) -> Any:
        """What `call` makes of the file system; FileNotFoundError, or StoreUnavailable for
        whatever else comes between."""
        seconds = self._patience + size / SLOWEST
        known: tuple[type[Exception], ...] = (OSError,)
        try:
            async with asyncio.timeout(seconds):
                opened = await self._open()
                known = opened.errors
                there = asyncio.run_coroutine_threadsafe(call(opened.files), opened.files.loop)
                return await asyncio.wrap_future(there)
        except FileNotFoundError:
            raise
        except TimeoutError as error:
            raise self._unavailable(f"no answer within {seconds:.0f} s") from error
        except known as error:
            raise self._unavailable(f"{type(error).__name__}: {error}".rstrip(": ")) from error

    async def _open(self) -> BlobService:
        async with self._opening:
            if self._service is None:
                self._service = await asyncio.to_thread(service, self._address, self._patience)
            return self._service

    def _unavailable(self, why: str) -> StoreUnavailable:
        problem = StoreUnavailable(f"cannot use the blobs in {self._address}: {why}")
        problem.address = self._address.host
        return problem


def _send(files: Any, path: str, content: bytes) -> Coroutine[Any, Any, Any]:
    # As one piece, see above. gcsfs would send less than a piece between boundaries that it does
    # not look for in the content.
    call: Coroutine[Any, Any, Any] = files._pipe_file(path, content, chunksize=len(content) or 1)
    return call


def _missing() -> BlobMissing:
    return BlobMissing("the original is not there any more: upload the document again")


def _nameless() -> io.BufferedRandom:
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise _no_room(error) from error


def _write(file: io.BufferedRandom, digest: hashlib._Hash, part: bytes) -> None:
    digest.update(part)
    try:
        file.write(part)
    except OSError as error:
        raise _no_room(error) from error


def _whole(file: io.BufferedRandom) -> bytes:
    file.seek(0)
    return file.read()


def _no_room(error: OSError) -> StoreUnavailable:
    where = tempfile.gettempdir()
    return StoreUnavailable(f"cannot keep a file in {where}: {error.strerror or error}")


class Objects:
    """Reads objects; connections to a bucket are kept for the next. ConfigError where the extra is
    not installed."""

    def __init__(self) -> None:
        self._buckets: dict[BucketAddress, BucketBlobs] = {}

    async def content(self, address: ObjectAddress) -> AsyncIterator[bytes]:
        """In pieces. Raises as `BucketBlobs.content` does."""
        where = replace(address.bucket, prefix="")
        if where not in self._buckets:
            self._buckets[where] = BucketBlobs(where)
        async for piece in self._buckets[where].content(address.name):
            yield piece

    async def close(self) -> None:
        """Give connections back. It can be used again."""
        while self._buckets:
            await self._buckets.popitem()[1].close()
