"""Searches in a browser, a kind for each engine of the app's config file."""

from __future__ import annotations

from typing import Any

from penstock import JobContext, Penstock
from penstock.ports.provider import SearchProvider
from penstock.research.providers import open_providers
from tests.support.side_effects import Side


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)
    allow, browser = app.config.outbound.fetch_allow, app.config.browser
    providers = open_providers({}, browser=browser, fetch_allow=allow)
    for engine in browser.engines:
        _register(app, side, providers[f"browser.{engine}"])
    return app


def _register(app: Penstock, side: Side, provider: SearchProvider) -> None:
    @app.job(provider.name, lane=provider.lane)
    async def search(ctx: JobContext, query: str, limit: int) -> list[str]:
        """The titles of what was found."""
        side.note(ctx)
        pages = [page async for page in provider.search(ctx, query, limit)]
        return [finding.title for page in pages for finding in page.findings]
