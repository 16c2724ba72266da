"""Pages fetched by jobs, from a server on loopback that may be fetched."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from penstock import Job, JobContext, JobState, Penstock
from penstock.outbound.http import host_lane
from penstock.research.page import fetch_page, reason_of
from penstock.research.robots import Robots
from penstock.types import Document, DocumentState
from tests.support.document_app import SOON
from tests.support.web_documents import Web

PAGE = "page"


class Reader:
    """An app whose jobs fetch pages, and a site on loopback that may be fetched."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self.site = web.site
        self.app: Penstock

    @asynccontextmanager
    async def running(
        self,
        *,
        timeout: float = SOON,
        clock: Callable[[], float] = time.monotonic,
        **settings: Any,
    ) -> AsyncIterator[Reader]:
        self.app = app = self.web.shelf.farm.app("documents", **settings)
        robots = Robots(app.lanes, clock=clock)

        @app.job(PAGE, lane=lambda payload: host_lane(_host(payload["url"])), timeout=timeout)
        async def fetch(ctx: JobContext, url: str, fresh: float) -> str:
            document = await fetch_page(
                ctx,
                app.documents,
                url,
                tenant=ctx.job.tenant,
                collection="web",
                fresh_seconds=fresh,
                robots=robots,
            )
            return document.ref.id

        async with app.running() as orchestrator:
            self.orchestrator = orchestrator
            yield self

    async def ask(self, url: str, *, fresh: float = 0.0, tenant: str = "default") -> Job:
        job = await self.app.enqueue(PAGE, {"url": url, "fresh": fresh}, tenant=tenant)
        return await self.app.wait(job.id, timeout=2 * SOON)

    async def document(self, url: str, *, tenant: str = "default", **options: Any) -> Document:
        """The document that a page becomes, completed or failed."""
        job = await self.ask(url, tenant=tenant, **options)
        assert job.state is JobState.COMPLETED, job.error
        return await self.app.documents.wait(
            job.result, collection="web", tenant=tenant, timeout=SOON
        )

    async def read(self, url: str, **options: Any) -> Document:
        document = await self.document(url, **options)
        assert document.state is DocumentState.COMPLETED, document
        return document

    async def text(self, document: Document) -> str:
        text = await self.app.documents._tools.documents.text(document.ref)
        assert text is not None
        return text

    async def refusal(self, url: str, **options: Any) -> tuple[str, str]:
        """Why a page is not had, in one word, and what is said of it."""
        job = await self.ask(url, **options)
        assert job.state is JobState.FAILED, job
        assert job.error is not None
        return reason_of(job.error), job.error.message


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
