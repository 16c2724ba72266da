"""Documents by their address, from a server on loopback that may be fetched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from penstock import Penstock
from tests.support.counting_server import CountingServer
from tests.support.document_app import LANE, Shelf

HOSTS: dict[str, Any] = {
    "min_interval_seconds": 0.0,
    "max_parallel": 4,
    "breaker_first_seconds": 0.1,
    "breaker_cap_seconds": 0.5,
}
SLUICE = b"The sluice opens at dawn."
NOON = b"The sluice opens at noon."


class Web:
    """Documents, and a server on loopback that may be fetched."""

    def __init__(self, shelf: Shelf, site: CountingServer) -> None:
        self.shelf = shelf
        self.site = site
        shelf.farm.settings |= {
            "fetch_allow": [f"127.0.0.1:{site.port}", f"localhost:{site.port}"],
            "lanes": {"embedder": LANE, "host:*": HOSTS},
            "max_retries": 1,
        }

    @asynccontextmanager
    async def idle(self, **settings: Any) -> AsyncIterator[Penstock]:
        """An app that accepts, and does not work."""
        async with self.shelf.farm.app("documents", **settings) as app:
            yield app

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator[Penstock]:
        async with self.shelf.running(**settings) as app:
            yield app
