"""arXiv: `GET /query?search_query=`, an Atom feed, followed by offset."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import ParserError, ProviderError, ValidationError
from penstock.model.finding import Finding
from penstock.research.identity import arxiv_id_of, doi_of
from penstock.research.providers.fields import known, line, link, year_in
from penstock.research.providers.paged import PagedProvider, Rows, offset_of
from penstock.text.xml_events import events

_REACH = 30_000
"""Maximum results of one query."""
_WORD = re.compile(r"[^\W_]+")
_ERRORS = "/api/errors"


@dataclass(slots=True)
class ArxivEntry:
    """An entry of the feed: the text of its elements by name, and its links."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    links: list[dict[str, str]] = field(default_factory=list)

    def text(self, name: str) -> str | None:
        return line(self.texts.get(name, [None])[0])


class Arxiv(PagedProvider):
    """Finds works that contain every word of the query. Takes no key."""

    name = "arxiv"
    path = "/query"

    def request(self, query: str, size: int, cursor: str | None) -> dict[str, str]:
        # In small letters, and without signs: AND, quotes and colons are its own language.
        words = _WORD.findall(query.lower())
        if not words:
            raise ValidationError("an arXiv query needs at least one word")
        offset = offset_of(cursor)
        return {
            "search_query": " AND ".join(f"all:{word}" for word in words),
            "start": str(offset),
            "max_results": str(max(1, min(size, _REACH - offset))),
        }

    def rows(self, body: bytes, size: int, cursor: str | None) -> Rows:
        try:
            entries, total = _read(body)
        except ParserError as error:
            raise ProviderError(
                f"{self.name} returned something other than an Atom feed"
            ) from error
        if any(_ERRORS in (entry.text("id") or "") for entry in entries):
            raise ProviderError(f"{self.name} rejected the query")
        after = offset_of(cursor) + len(entries)
        goes_on = len(entries) > 0 and after < min(total, _REACH)
        return list(entries), str(after) if goes_on else None

    def finding(self, row: Any) -> Finding | None:
        assert isinstance(row, ArxivEntry)
        page, title = link(row.text("id")), row.text("title")
        identifier = arxiv_id_of(page)
        if page is None or identifier is None or title is None:
            return None
        papers = (one.get("href") for one in row.links if one.get("title") == "pdf")
        return Finding(
            provider=self.name,
            provider_id=identifier,
            title=title,
            url=page,
            authors=tuple(name for one in row.texts.get("name", []) if (name := line(one))),
            year=year_in(row.text("published")),
            doi=doi_of(row.text("doi")),
            arxiv_id=identifier,
            abstract=row.text("summary"),
            open_access_url=next((found for one in papers if (found := link(one))), page),
            extra=known(venue=row.text("journal_ref"), comment=row.text("comment")),
        )


def _read(body: bytes) -> tuple[list[ArxivEntry], int]:
    """Parse a feed: its entries, and the total number of results. Raises ParserError if it is not a
    feed."""
    entries: list[ArxivEntry] = []
    path: list[str] = []
    total = ""
    inside = False
    for kind, name, attributes in events([body]):
        if kind == "start":
            path.append(name)
            if name == "entry":
                entries.append(ArxivEntry())
                inside = True
            elif name == "link" and inside:
                entries[-1].links.append(attributes)
            elif inside:
                entries[-1].texts.setdefault(name, []).append("")
        elif kind == "end":
            path.pop()
            inside = inside and name != "entry"
        elif path[0] != "feed":
            raise ParserError("it is no Atom feed")
        elif inside and path[-1] in entries[-1].texts:
            entries[-1].texts[path[-1]][-1] += name
        elif path[-1] == "totalResults":
            total += name
    if not total.strip().isascii() or not total.strip().isdecimal():
        raise ParserError("it does not say how many results there are")
    return entries, min(int(total.strip()[:9]), _REACH)
