"""Blob store in a directory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from penstock.adapters.blobs.keys import is_key, is_number
from penstock.adapters.private_files import open_private, private_folder
from penstock.errors import BlobMissing, DocumentTooLarge, StoreUnavailable
from penstock.model.ids import new_id
from penstock.ports.blobs import Blob, InUse, key_of

UNFINISHED = "unfinished"
PAGE = 500
"""Blobs asked about at a time."""


class LocalBlobs:
    """See `penstock.ports.blobs.BlobStore`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lasting: set[Path] = set()
        """Folders whose names are known to be on the disk."""

    async def put(
        self, parts: AsyncIterable[bytes], *, most: int, number: str | None = None
    ) -> Blob:
        upload = new_id()
        unfinished = self._folder / UNFINISHED / upload
        digest, size = hashlib.sha256(), 0
        try:
            if not unfinished.parent.exists():
                await asyncio.to_thread(self._make, unfinished.parent)
            try:
                new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                with os.fdopen(open_private(unfinished, new), "wb") as file:
                    async for part in parts:
                        size += len(part)
                        if size > most:
                            raise DocumentTooLarge(f"over {most:,} bytes")
                        digest.update(part)
                        await asyncio.to_thread(file.write, part)
                    key = key_of(digest.hexdigest(), number or upload)
                    await asyncio.to_thread(self._keep, file, unfinished, key)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise _unavailable(self._folder, error) from error
        return Blob(key, size)

    def _keep(self, file: BinaryIO, unfinished: Path, key: str) -> None:
        file.flush()
        _to_disk(file.fileno())
        path = self._path(key)
        self._make(path.parent)
        unfinished.rename(path)
        _folder_to_disk(path.parent)  # the name, too

    def _make(self, folder: Path) -> None:
        """Make a folder of ours, so that it outlives a power loss. One that is there may be another
        process's that has not got that far, so its name is written too, once."""
        made = private_folder(folder)
        if made or folder not in self._lasting:
            for name in made or [folder]:
                _folder_to_disk(name.parent)
            self._lasting.add(folder)

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        await self.check(key)
        yield self._path(key)

    async def check(self, key: str) -> None:
        if not await asyncio.to_thread(self._path(key).exists):
            raise BlobMissing("the original is not there any more: upload the document again")

    async def close(self) -> None:
        """It holds nothing open."""

    async def delete(self, key: str) -> None:
        try:
            await asyncio.to_thread(self._path(key).unlink, missing_ok=True)
        except OSError as error:
            raise _unavailable(self._folder, error) from error

    async def sweep(self, older_than: float, in_use: InUse) -> int:
        try:
            files = await asyncio.to_thread(self._older, time.time() - older_than)
        except OSError as error:
            raise _unavailable(self._folder, error) from error
        orphans = [path for path in files if path.parent.name == UNFINISHED]
        blobs = [path for path in files if path.parent.name != UNFINISHED]
        for first in range(0, len(blobs), PAGE):
            page = blobs[first : first + PAGE]
            used = await in_use([path.name for path in page])
            orphans += [path for path in page if path.name not in used]
        for path in orphans:
            await asyncio.to_thread(path.unlink, missing_ok=True)
        return len(orphans)

    def _older(self, than: float) -> list[Path]:
        found = []
        for path in self._folder.glob("*/*"):
            if not _is_ours(path):
                continue
            try:
                if path.stat().st_mtime < than:
                    found.append(path)
            except FileNotFoundError:  # deleted a moment ago, as most are
                continue
        return found

    def _path(self, key: str) -> Path:
        if not is_key(key):
            raise BlobMissing(f"{key!r} names no blob")
        return self._folder / key[:2] / key


def _is_ours(path: Path) -> bool:
    """Others may keep files in the same folder: those are not swept."""
    if path.parent.name == UNFINISHED:
        return is_number(path.name)
    return is_key(path.name) and path.parent.name == path.name[:2]


def _to_disk(fd: int) -> None:
    os.fsync(fd)


def _folder_to_disk(folder: Path) -> None:
    """The names in a folder."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        _to_disk(fd)
    finally:
        os.close(fd)


def _unavailable(folder: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"cannot use the blobs in {folder}: {error.strerror or error}")
