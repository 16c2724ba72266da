"""OpenAlex: `GET /works?search=`, followed by cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import ProviderError
from penstock.model.finding import Finding
from penstock.research.identity import arxiv_id_of, doi_of
from penstock.research.providers.fields import Row, json_row, known, line, plain, whole
from penstock.research.providers.paged import PagedProvider, Rows

_FIELDS = (
    "id,doi,display_name,publication_year,authorships,abstract_inverted_index,primary_location,"
    "best_oa_location,locations,cited_by_count,type"
)


class OpenAlex(PagedProvider):
    """OpenAlex. Since 2026 it requires a key, which it accepts only as a parameter."""

    name = "openalex"
    path = "/works"

    def request(self, query: str, size: int, cursor: str | None) -> dict[str, str]:
        return {"search": query, "per_page": str(size), "cursor": cursor or "*", "select": _FIELDS}

    def key_parameters(self) -> Mapping[str, str]:
        key = self._key()
        return {} if key is None else {"api_key": key}

    def rows(self, body: bytes, size: int, cursor: str | None) -> Rows:
        answer = json_row(body, self.name)
        if not isinstance(answer.raw("results"), list):
            raise ProviderError(f"{self.name} returned a response without results")
        return answer.items("results"), answer.row("meta").text("next_cursor")

    def finding(self, row: Any) -> Finding | None:
        work = Row(row)
        identifier, title = work.text("id"), plain(work.raw("display_name"))
        if identifier is None or title is None:
            return None
        doi, free = doi_of(work.text("doi")), work.row("best_oa_location")
        authors = (one.row("author").text("display_name") for one in work.rows("authorships"))
        places = (one.text("landing_page_url") for one in work.rows("locations"))
        return Finding(
            provider=self.name,
            provider_id=identifier.rpartition("/")[2],
            title=title,
            url=work.row("primary_location").link("landing_page_url")
            or (f"https://doi.org/{doi}" if doi else identifier),
            authors=tuple(author for author in authors if author),
            year=work.year("publication_year"),
            doi=doi,
            arxiv_id=arxiv_id_of(doi)
            or next((found for place in places if (found := arxiv_id_of(place))), None),
            abstract=abstract_of(work.raw("abstract_inverted_index")),
            open_access_url=free.link("pdf_url") or free.link("landing_page_url"),
            extra=known(cited_by=work.number("cited_by_count"), type=work.text("type")),
        )


def abstract_of(index: Any) -> str | None:
    """Rebuild an abstract from its inverted index."""
    if not isinstance(index, dict):
        return None
    words = [
        (place, word)
        for word, places in index.items()
        for place in (places if isinstance(places, list) else [])
        if whole(place) is not None
    ]
    return line(" ".join(word for _, word in sorted(words)))
