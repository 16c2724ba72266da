"""The port to a blob store: files by the hash of their content."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple, Protocol


class Blob(NamedTuple):
    key: str
    """See `key_of`."""
    size: int


def key_of(digest: str, number: str) -> str:
    """The name of a blob: the SHA-256 of its content, in hex, and what tells it from others of the
    same content, in 32 hex digits."""
    return f"{digest}-{number}"


def digest_of(key: str) -> str:
    return key[:64]


def number_of(key: str) -> str:
    return key[65:]


InUse = Callable[[Sequence[str]], Awaitable[set[str]]]
"""Which of these keys are in use."""


class BlobStore(Protocol):
    """Methods raise StoreUnavailable while it cannot be reached, after a bounded time."""

    async def put(
        self, parts: AsyncIterable[bytes], *, most: int, number: str | None = None
    ) -> Blob:
        """Store what comes, whole or not at all. DocumentTooLarge past `most` bytes. The blob is
        told from others of the same content by `number`, or a new one."""
        ...

    async def check(self, key: str) -> None:
        """BlobMissing where there is none."""
        ...

    def local(self, key: str) -> AbstractAsyncContextManager[Path]:
        """A file to read it from, for as long as the block lasts. BlobMissing where there is
        none."""
        ...

    async def delete(self, key: str) -> None:
        """Harmless where there is none."""
        ...

    async def sweep(self, older_than: float, in_use: InUse) -> int:
        """Delete blobs stored more than so many seconds ago that are not in use, and what uploads
        of that age have left unfinished; how many. What is not named as a blob is not touched."""
        ...

    async def close(self) -> None:
        """Give connections back. It can be used again."""
        ...
