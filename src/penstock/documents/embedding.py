"""The embedder of an app, for jobs and for queries.

Both observe its lane. No search waits for an embedder with problems: while its breaker is open a
query is rejected at once, except one that serves as the next attempt, and whose search continues
without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from penstock.adapters.models.offline_embedder import OfflineEmbedder, check_installed
from penstock.adapters.models.openai_embedder import OpenAIEmbedder, Post
from penstock.aio import end_tasks
from penstock.documents.embed_batches import Embed, EmbedBatches
from penstock.documents.jobs import EMBEDDER_LANE
from penstock.engine.context import JobContext
from penstock.engine.scope_provider import RequestScopes
from penstock.errors import EmbedderError
from penstock.model.embedder import EmbedderConfig

TRY_SECONDS = 0.3
"""How long a search waits for a query that is also the probe of a lane with problems."""
LATE_SECONDS = 0.5
"""A query ends by itself at its time limit; nobody waits for it longer than this after that."""


class Embedding:
    """Embeds for jobs and for queries. In a job every request uses the job's own client, and so its
    lane. A query takes its own permit, and has `seconds` for both."""

    def __init__(self, config: EmbedderConfig, scopes: RequestScopes, seconds: float) -> None:
        self._config = config
        self._scopes = scopes
        self._seconds = seconds
        self._offline = OfflineEmbedder() if config.provider == "offline" else None
        self._before: OfflineEmbedder | None = None
        """The previous embedder, for queries while its model serves."""
        self._asked: set[asyncio.Task[bytes]] = set()
        """Queries in progress, including those whose search has continued without them."""
        self._company = EmbedBatches(self._send)

    @property
    def model(self) -> str:
        return OfflineEmbedder.model if self._offline else self._config.identity

    def check(self) -> None:
        """Raise MissingExtra if no document could be embedded here."""
        if self._offline is not None:
            check_installed()

    def in_job(self, ctx: JobContext) -> AbstractContextManager[Embed]:
        """Return the function that a job embeds with, inside the block."""
        if self._offline is not None:
            return nullcontext(self._offline.embed)
        return self._company.member(ctx)

    async def _send(self, ctx: JobContext, texts: Sequence[str]) -> list[bytes]:
        return await self._served(partial(ctx.http.post, record="vectors")).embed(texts)

    async def question(self, model: str, tenant: str, text: str) -> bytes:
        """Embed a query with the serving model, which may be the previous one. Raises a
        PenstockError that says why there is no vector in time."""
        if model == OfflineEmbedder.model:
            self._before = self._offline or self._before or OfflineEmbedder()
            (vector,) = await self._before.embed([text])
            return vector
        if model != self.model:
            raise EmbedderError(f"{model} serves until all is embedded by {self.model}")
        trying = asyncio.Event()
        asked = asyncio.create_task(self._ask(tenant, text, trying), name="penstock-question")
        self._asked.add(asked)
        asked.add_done_callback(self._done)
        told = asyncio.create_task(trying.wait())
        try:
            until = self._seconds + LATE_SECONDS
            await asyncio.wait([asked, told], timeout=until, return_when=asyncio.FIRST_COMPLETED)
            if trying.is_set():
                await asyncio.wait([asked], timeout=TRY_SECONDS)
        except asyncio.CancelledError:
            asked.cancel()
            raise
        finally:
            told.cancel()
        if asked.done():
            return asked.result()
        if trying.is_set():
            raise EmbedderError(
                f"lane {EMBEDDER_LANE}: its breaker is open, an attempt is in progress"
            )
        raise EmbedderError(f"{self.model}: no permit or no answer within {self._seconds:g} s")

    async def _ask(self, tenant: str, text: str, trying: asyncio.Event) -> bytes:
        async with self._scopes.question(tenant, self._seconds) as visit:
            visit.lanes.trying = trying
            post = partial(visit.http.post, lane=EMBEDDER_LANE)
            (vector,) = await self._served(post).embed([text])
            return vector

    def _done(self, asked: asyncio.Task[bytes]) -> None:
        self._asked.discard(asked)
        if not asked.cancelled():
            asked.exception()  # its search has it, or has gone on without it; the lane knows

    def _served(self, post: Post) -> OpenAIEmbedder:
        config = self._config
        assert config.base_url is not None
        assert config.model is not None
        assert config.dimensions is not None
        return OpenAIEmbedder(
            config.base_url, config.model, config.dimensions, post, config.key_variable
        )

    async def close(self) -> None:
        await end_tasks(list(self._asked))
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        for offline in {self._offline, self._before} - {None}:
            assert offline is not None
            offline.close()
        # The app may be opened again.
        self._offline = OfflineEmbedder() if self._offline else None
        self._before = None
