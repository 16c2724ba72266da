"""Reads objects in buckets that callers name; they are never changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from penstock.adapters.blobs.address import BucketAddress, ObjectAddress
from penstock.adapters.blobs.bucket import BucketBlobs


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
