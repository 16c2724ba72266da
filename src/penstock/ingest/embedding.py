"""The embedder of an app: inside its jobs, and for questions."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from penstock.adapters.embedders.offline import OfflineEmbedder
from penstock.adapters.embedders.openai import OpenAIEmbedder, Post
from penstock.engine.context import JobContext
from penstock.ingest.company import Company, Embed
from penstock.model.embedder import EmbedderConfig
from penstock.model.errors import EmbedderError

if TYPE_CHECKING:
    import httpx2

QUESTION_SECONDS = 10.0
"""A question that takes longer to embed is answered by its words."""


class Embedding:
    """In a job every request goes through the job's own client, and so through the lane."""

    def __init__(self, config: EmbedderConfig) -> None:
        self._config = config
        self._offline = OfflineEmbedder() if config.provider == "offline" else None
        self._before: OfflineEmbedder | None = None
        """For questions, while its model serves."""
        self._client: httpx2.AsyncClient | None = None
        """For questions. One for all: to make one takes 25 ms, and the event loop with it."""
        self._company = Company(lambda ctx, texts: self._served(ctx.http.post).embed(texts))

    @property
    def model(self) -> str:
        return OfflineEmbedder.model if self._offline else self._config.identity

    def in_job(self, ctx: JobContext) -> AbstractContextManager[Embed]:
        """What a job embeds with, for as long as it may."""
        if self._offline is not None:
            return nullcontext(self._offline.embed)
        return self._company.member(ctx)

    async def question(self, model: str, text: str) -> bytes:
        """The vector by the model that serves, which may be the one before."""
        if model == OfflineEmbedder.model:
            self._before = self._offline or self._before or OfflineEmbedder()
            (vector,) = await self._before.embed([text])
            return vector
        if model != self.model:
            raise EmbedderError(f"{model} serves until all is embedded by {self.model}")
        import httpx2  # here, because most processes search nothing

        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=QUESTION_SECONDS)
        (vector,) = await self._served(self._client.post).embed([text])
        return vector

    def _served(self, post: Post) -> OpenAIEmbedder:
        config = self._config
        assert config.base_url is not None
        assert config.model is not None
        assert config.dimensions is not None
        return OpenAIEmbedder(
            config.base_url, config.model, config.dimensions, post, config.key_variable
        )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        for offline in {self._offline, self._before} - {None}:
            assert offline is not None
            offline.close()
        # The app may be opened again.
        self._offline = OfflineEmbedder() if self._offline else None
        self._before = None
