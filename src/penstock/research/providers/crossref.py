"""Crossref: `GET /works?query=`, followed by cursor."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.errors import ProviderError
from penstock.model.finding import Finding
from penstock.research.identity import doi_of
from penstock.research.providers.fields import Row, json_row, known, line, plain, year
from penstock.research.providers.paged import PagedProvider, Rows

_FIELDS = (
    "DOI,title,author,abstract,issued,link,license,URL,container-title,is-referenced-by-count,type"
)
_HEADING = re.compile(r"(?is)^\s*<jats:title>\s*(?:abstract|summary)\s*</jats:title>")


class Crossref(PagedProvider):
    """Crossref. The key is that of Metadata Plus."""

    name = "crossref"
    path = "/works"

    def request(self, query: str, size: int, cursor: str | None) -> dict[str, str]:
        return {"query": query, "rows": str(size), "cursor": cursor or "*", "select": _FIELDS}

    def key_headers(self) -> Mapping[str, str]:
        key = self._key()
        return {} if key is None else {"crossref-plus-api-token": f"Bearer {key}"}

    def rows(self, body: bytes, size: int, cursor: str | None) -> Rows:
        message = json_row(body, self.name).row("message")
        if not isinstance(message.raw("items"), list):
            raise ProviderError(f"{self.name} returned a response without items")
        items = message.items("items")
        # It has a next cursor also after the last page, often the same as before.
        return items, message.text("next-cursor") if len(items) >= size else None

    def finding(self, row: Any) -> Finding | None:
        work = Row(row)
        doi = doi_of(work.text("DOI"))
        title = next((text for one in work.items("title") if (text := plain(one))), None)
        if doi is None or title is None:
            return None
        abstract = work.raw("abstract")
        return Finding(
            provider=self.name,
            provider_id=doi,
            title=title,
            url=work.link("URL") or f"https://doi.org/{doi}",
            authors=tuple(name for one in work.rows("author") if (name := _name(one))),
            year=_year(work),
            doi=doi,
            abstract=plain(_HEADING.sub("", abstract) if isinstance(abstract, str) else None),
            open_access_url=_open_access(work),
            extra=known(
                cited_by=work.number("is-referenced-by-count"),
                type=work.text("type"),
                venue=next((line(one) for one in work.items("container-title")), None),
            ),
        )


def _name(author: Row) -> str | None:
    """Return the name of a person or group."""
    parts = [author.text("given"), author.text("family")]
    return " ".join(part for part in parts if part) or author.text("name")


def _year(work: Row) -> int | None:
    """Read the year of `{"date-parts": [[2020, 5, 17]]}`; an unknown date is `[[null]]`."""
    dates = work.row("issued").items("date-parts")
    first = dates[0] if dates else None
    return year(first[0]) if isinstance(first, list) and first else None


def _open_access(work: Row) -> str | None:
    """Find an open-access link: links are open to all only under a licence that says so."""
    licences = (one.text("URL") or "" for one in work.rows("license"))
    if not any("creativecommons.org" in licence for licence in licences):
        return None
    links = [one for one in work.rows("link") if one.link("URL")]
    papers = [one for one in links if one.text("content-type") == "application/pdf"]
    return next((one.link("URL") for one in (*papers, *links)), None)
