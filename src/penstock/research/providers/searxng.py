"""SearXNG, a metasearch engine: `GET /search?format=json`, page by page."""

from __future__ import annotations

from typing import Any

from penstock.errors import AuthenticationError, ProviderError, Unavailable
from penstock.model.finding import Finding
from penstock.ports.provider import Http
from penstock.research.identity import arxiv_id_of, canonical_url, doi_of
from penstock.research.providers.fields import Row, json_row, known, line, year_in
from penstock.research.providers.paged import PagedProvider, Rows, offset_of


class Searxng(PagedProvider):
    """Your own instance: there is no public address, and no key."""

    name = "searxng"
    path = "/search"
    page_size = 10
    """About what engines return; it cannot be requested."""

    def request(self, query: str, size: int, cursor: str | None) -> dict[str, str]:
        return {"q": query, "format": "json", "pageno": str(max(1, offset_of(cursor)))}

    async def _ask(self, http: Http, query: str, size: int, cursor: str | None) -> bytes:
        try:
            return await super()._ask(http, query, size, cursor)
        except AuthenticationError as error:
            raise ProviderError(
                "searxng refuses to answer: `search.formats` in its settings.yml must have json, "
                "and its limiter must let this machine pass"
            ) from error

    def rows(self, body: bytes, size: int, cursor: str | None) -> Rows:
        answer = json_row(body, self.name)
        if not isinstance(answer.raw("results"), list):
            raise ProviderError(f"{self.name} returned a response without results")
        results, page = answer.items("results"), max(1, offset_of(cursor))
        if not results and page == 1 and (silent := _silent(answer)):
            # Not the same as finding nothing.
            said = f"searxng: no engine responded; failing: {', '.join(silent)}"
            raise Unavailable(said, lane=self.lane)
        return results, str(page + 1) if results else None

    def finding(self, row: Any) -> Finding | None:
        result = Row(row)
        url, title = result.link("url"), result.text("title")
        if url is None or title is None:
            return None
        engines = [name for one in result.items("engines") if (name := line(one))]
        return Finding(
            provider=self.name,
            provider_id=canonical_url(url) or url,
            title=title,
            url=url,
            year=year_in(result.text("publishedDate")),
            doi=doi_of(result.text("doi")) or doi_of(url),
            arxiv_id=arxiv_id_of(url),
            abstract=result.text("content"),
            extra=known(engines=engines or None),
        )


def _silent(answer: Row) -> list[str]:
    """List the engines that did not respond, given as [name, reason]."""
    given = answer.items("unresponsive_engines")
    names = (line(one[0]) for one in given if isinstance(one, list) and one)
    return [name for name in names if name]
