"""Semantic Scholar: `GET /paper/search`, followed by offset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import ProviderError
from penstock.model.finding import Finding
from penstock.research.identity import arxiv_id_of, doi_of
from penstock.research.providers.fields import Row, json_row, known
from penstock.research.providers.paged import PagedProvider, Rows, offset_of

_FIELDS = "title,abstract,year,authors,externalIds,url,openAccessPdf,citationCount,venue"
_REACH = 999
"""Maximum results of one query."""


class SemanticScholar(PagedProvider):
    """Semantic Scholar. All callers without a key share one limit: 429 can come at any time."""

    name = "semantic_scholar"
    path = "/paper/search"

    def request(self, query: str, size: int, cursor: str | None) -> dict[str, str]:
        offset = offset_of(cursor)
        return {
            "query": query.replace("-", " "),  # it finds nothing for words with hyphens
            "offset": str(offset),
            "limit": str(max(1, min(size, _REACH - offset))),
            "fields": _FIELDS,
        }

    def key_headers(self) -> Mapping[str, str]:
        key = self._key()
        return {} if key is None else {"x-api-key": key}

    def rows(self, body: bytes, size: int, cursor: str | None) -> Rows:
        answer = json_row(body, self.name)
        if not isinstance(answer.raw("data"), list) and answer.number("total") != 0:
            raise ProviderError(f"{self.name} returned a response without data")
        after = answer.number("next")
        goes_on = after is not None and offset_of(cursor) < after < _REACH
        return answer.items("data"), str(after) if goes_on else None

    def finding(self, row: Any) -> Finding | None:
        paper = Row(row)
        identifier, title = paper.text("paperId"), paper.text("title")
        if identifier is None or title is None:
            return None
        names, doi = paper.row("externalIds"), doi_of(paper.row("externalIds").text("DOI"))
        authors = (author.text("name") for author in paper.rows("authors"))
        return Finding(
            provider=self.name,
            provider_id=identifier,
            title=title,
            url=paper.link("url") or f"https://www.semanticscholar.org/paper/{identifier}",
            authors=tuple(author for author in authors if author),
            year=paper.year("year"),
            doi=doi,
            arxiv_id=arxiv_id_of(names.text("ArXiv")) or arxiv_id_of(doi),
            abstract=paper.text("abstract"),
            open_access_url=paper.row("openAccessPdf").link("url"),
            extra=known(cited_by=paper.number("citationCount"), venue=paper.text("venue")),
        )
