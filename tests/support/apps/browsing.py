"""Searches in a browser, as the app's config file has it."""

from __future__ import annotations

from typing import Any

from penstock import JobContext, Penstock
from penstock.research.providers import open_providers
from tests.support.side import Side


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)
    providers = open_providers(
        {}, browser=app.config.browser, fetch_allow=app.config.settings.fetch_allow
    )

    @app.job("browse", lane=lambda payload: str(payload["provider"]))
    async def browse(ctx: JobContext, provider: str, query: str, limit: int) -> list[str]:
        """The titles of what was found."""
        side.note(ctx, provider)
        pages = [page async for page in providers[provider].search(ctx, query, limit)]
        return [finding.title for page in pages for finding in page.findings]

    return app
