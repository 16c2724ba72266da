"""The embedder of an app: inside its jobs, and for questions."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from penstock.adapters.embedders.offline import OfflineEmbedder
from penstock.adapters.embedders.openai import OpenAIEmbedder, Post
from penstock.engine.context import JobContext
from penstock.ingest.company import Company, Embed
from penstock.model.embedder import EmbedderConfig

QUESTION_SECONDS = 10.0
"""A question that takes longer to embed is answered by its words."""


class Embedding:
    """In a job every request goes through the job's own client, and so through the lane."""

    def __init__(self, config: EmbedderConfig) -> None:
        self._config = config
        self._offline = OfflineEmbedder() if config.provider == "offline" else None
        self._company = Company(lambda ctx, texts: self._served(ctx.http.post).embed(texts))

    @property
    def model(self) -> str:
        return OfflineEmbedder.model if self._offline else str(self._config.model)

    def in_job(self, ctx: JobContext) -> AbstractContextManager[Embed]:
        """What a job embeds with, for as long as it may."""
        if self._offline is not None:
            return nullcontext(self._offline.embed)
        return self._company.member(ctx)

    async def question(self, text: str) -> bytes:
        if self._offline is not None:
            (vector,) = await self._offline.embed([text])
            return vector
        import httpx2  # here, because most processes search nothing

        async with httpx2.AsyncClient(timeout=QUESTION_SECONDS) as client:
            (vector,) = await self._served(client.post).embed([text])
        return vector

    def _served(self, post: Post) -> OpenAIEmbedder:
        config = self._config
        assert config.base_url is not None
        assert config.model is not None
        assert config.dimensions is not None
        return OpenAIEmbedder(
            config.base_url, config.model, config.dimensions, post, config.key_variable
        )

    def close(self) -> None:
        if self._offline is not None:
            self._offline.close()
            self._offline = OfflineEmbedder()  # the app may be opened again
