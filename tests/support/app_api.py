"""The API of an app in the test's own process: the wire is tested elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx

from penstock import JobContext, Penstock
from penstock.model.access import EVERYTHING, KeyScope
from penstock.model.server import ServerConfig
from penstock.server.api import build
from penstock.server.draining import Draining
from penstock.server.run import bind, listening
from tests.support.waiting import PATIENCE


class Site:
    """An app, its API, and clients with keys."""

    def __init__(self, app: Penstock, config: ServerConfig | None = None) -> None:
        self.app = app
        self.config = replace(config or ServerConfig(), port=0)
        self.draining = Draining()
        self.api = build(app, self.config, self.draining)

    async def client(self, tenant: str = "default", *scopes: KeyScope) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.api),
            base_url="http://localhost",
            headers={"Authorization": f"Bearer {await self.secret(tenant, *scopes)}"},
        )

    @asynccontextmanager
    async def listening(self, **changes: Any) -> AsyncIterator[str]:
        """On a port of its own, with other settings of the server; its address."""
        config = replace(self.config, **changes)
        with bind(config) as bound:
            async with listening(self.app, config, Draining(), bound) as serving:
                yield serving.address

    async def secret(self, tenant: str = "default", *scopes: KeyScope) -> str:
        """That of a new key; for everything unless scopes are given."""
        _, secret = await self.app.keys.create("test", tenant=tenant, scopes=scopes or EVERYTHING)
        return secret.reveal()

    async def work(self) -> None:
        """Until nothing is left to do."""
        async with self.app.running():
            await self.app.drain(timeout=PATIENCE)


@asynccontextmanager
async def site_in(
    folder: Path,
    *,
    url: str = "",
    config: ServerConfig | None = None,
    documents: bool = False,
    **settings: Any,
) -> AsyncIterator[Site]:
    """`url`: of the queue, which is a file in the folder unless given. With `documents` it also has
    a document store, research and answers."""
    settings = {"durable": False, "max_retries": 0, "blobs": str(folder / "blobs"), **settings}
    app = Penstock(url or f"sqlite:///{folder}/jobs.db", **settings)
    app.use("keys")
    if documents:
        app.use("answers")

    @app.job("add")
    async def add(ctx: JobContext, a: int = 0, b: int = 0) -> int:
        return a + b

    @app.job("fail")
    async def fail(ctx: JobContext, why: str = "broken") -> None:
        raise ValueError(why)

    @app.job("called", lane="openalex")
    async def called(ctx: JobContext) -> None:
        return None

    async with app:
        yield Site(app, config)
