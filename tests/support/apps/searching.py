"""Searches, each in the lane of its provider."""

from __future__ import annotations

from typing import Any

from penstock import JobContext, Penstock
from penstock.model.providers import ProviderConfig
from penstock.research.providers import open_providers
from tests.support.side_effects import Side


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)

    @app.job("search", lane=lambda payload: str(payload["provider"]))
    async def search(ctx: JobContext, provider: str, base_url: str, query: str, limit: int) -> int:
        """How many were found."""
        asked = open_providers({provider: ProviderConfig(base_url)})[provider]
        pages = [page async for page in asked.search(ctx, query, limit)]
        return sum(len(page.findings) for page in pages)

    return app
