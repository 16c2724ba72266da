"""The port to a blob store: files by the hash of their content."""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple, Protocol


class Blob(NamedTuple):
    key: str
    """Names the content: the same bytes have the same key."""
    size: int


class BlobStore(Protocol):
    async def put(self, parts: AsyncIterable[bytes], *, most: int) -> Blob:
        """Store what comes, whole or not at all. DocumentTooLarge past `most` bytes."""
        ...

    def local(self, key: str) -> AbstractAsyncContextManager[Path]:
        """A file to read it from, for as long as the block lasts."""
        ...

    async def delete(self, key: str) -> None:
        """Harmless where there is none."""
        ...
