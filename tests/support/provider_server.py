"""Search providers on loopback that answer as the real ones document it, each under its own path.

What they do not take they refuse with 400, as the real ones do: pages too large, places that are no
places. `works` is what they have, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from penstock.model.providers import ProviderConfig
from penstock.ports.provider import SearchProvider
from penstock.research.providers import open_providers
from tests.support.counting_server import Answer, CountingServer, Hit, as_json

PATHS = {
    "openalex": "/openalex/works",
    "semantic_scholar": "/scholar/paper/search",
    "crossref": "/crossref/works",
    "arxiv": "/arxiv/query",
    "searxng": "/searxng/search",
}
SEARXNG_PAGE = 10


@dataclass(slots=True, frozen=True)
class Work:
    number: int
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or f"Work {self.number}"

    @property
    def doi(self) -> str:
        return f"10.5555/W{self.number}"

    @property
    def arxiv(self) -> str:
        return f"2401.{self.number:05d}"


class ProviderServer(CountingServer):
    """`faults` are answers given instead, by provider; `delays` is how long each takes;
    those that are `held` do not answer until they are no more; `spoilt` are rows put before the
    others of each page."""

    def __init__(self, works: int = 0) -> None:
        super().__init__()
        self.works = [Work(number) for number in range(works)]
        self.faults: dict[str, Answer] = {}
        self.fault_from = 1
        """The first request, counted for each provider, that meets with its fault."""
        self.spoilt: list[Any] = []
        self.delays: dict[str, float] = {}
        self.held: set[str] = set()

    def provider(
        self, name: str, api_key: str | None = None, host: str = "127.0.0.1"
    ) -> SearchProvider:
        url = self.url("/" + PATHS[name].split("/")[1], host)
        return open_providers({name: ProviderConfig(url, api_key)})[name]

    def asked(self, name: str) -> list[dict[str, str]]:
        """The parameters of each request to a provider."""
        return [_parameters(hit) for hit in self.at(PATHS[name])]

    def answer(self, path: str) -> Answer:
        names = [name for name, known in PATHS.items() if known == path]
        if not names:
            return super().answer(path)
        (name,) = names
        if name in self.faults and len(self.at(path)) >= self.fault_from:
            return self.faults[name]
        try:
            body = _ANSWERS[name](self, _parameters(self.at(path)[-1]))
        except (KeyError, ValueError, AssertionError):
            return Answer(400)
        delay = self.delays.get(name, 0.0)
        return Answer(body=body, delay=delay, until=lambda: name not in self.held)

    def page(self, start: int, size: int, row: Callable[[Work], Any]) -> list[Any]:
        found = [row(work) for work in self.works[start : start + size]]
        return [*self.spoilt, *found] if found else []


def _parameters(hit: Hit) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(hit.query).items()}


def _openalex(server: ProviderServer, asked: Mapping[str, str]) -> bytes:
    size = int(asked["per_page"])
    assert 1 <= size <= 100
    assert asked["search"]
    start = 0 if asked["cursor"] == "*" else int(asked["cursor"].removeprefix("at-"))
    after = f"at-{start + size}" if start < len(server.works) else None
    meta = {"count": len(server.works), "per_page": size, "next_cursor": after}
    return as_json({"meta": meta, "results": server.page(start, size, openalex_row)}).body


def openalex_row(work: Work) -> dict[str, Any]:
    return {
        "id": f"https://openalex.org/W{work.number}",
        "doi": f"https://doi.org/{work.doi}",
        "display_name": work.name,
        "publication_year": 2024,
        "authorships": [{"author": {"display_name": "Ada Byron"}}, {"author": {}}],
        "abstract_inverted_index": {"turns": [1], "Water": [0], "wheels.": [2]},
        "primary_location": {"landing_page_url": f"https://journal.example/{work.number}"},
        "best_oa_location": {"pdf_url": f"https://free.example/{work.number}.pdf"},
        "locations": [{"landing_page_url": f"http://arxiv.org/abs/{work.arxiv}v2"}],
        "cited_by_count": 7,
        "type": "article",
    }


def _scholar(server: ProviderServer, asked: Mapping[str, str]) -> bytes:
    offset, size = int(asked["offset"]), int(asked["limit"])
    assert 1 <= size <= 100
    assert offset + size < 1000
    if not server.works:
        return as_json({"total": 0, "offset": 0}).body
    answer = {"total": len(server.works), "offset": offset}
    if offset + size < len(server.works):
        answer["next"] = offset + size
    return as_json({**answer, "data": server.page(offset, size, scholar_row)}).body


def scholar_row(work: Work) -> dict[str, Any]:
    return {
        "paperId": f"{work.number:040x}",
        "externalIds": {"DOI": work.doi, "ArXiv": work.arxiv, "CorpusId": work.number},
        "title": work.name,
        "abstract": "Water turns\nwheels.",
        "year": 2024,
        "authors": [{"authorId": "1", "name": "Ada Byron"}],
        "url": f"https://www.semanticscholar.org/paper/{work.number:040x}",
        "openAccessPdf": {"url": "", "status": "CLOSED"},
        "citationCount": 7,
        "venue": "",
    }


def _crossref(server: ProviderServer, asked: Mapping[str, str]) -> bytes:
    size = int(asked["rows"])
    assert 1 <= size <= 1000
    start = 0 if asked["cursor"] == "*" else int(asked["cursor"].removeprefix("scroll+/="))
    items = server.page(start, size, crossref_row)
    message = {"total-results": len(server.works), "next-cursor": f"scroll+/={start + size}"}
    return as_json({"status": "ok", "message": {**message, "items": items}}).body


def crossref_row(work: Work) -> dict[str, Any]:
    return {
        "DOI": work.doi,
        "URL": f"https://doi.org/{work.doi}",
        "title": [work.name],
        "author": [{"given": "Ada", "family": "Byron"}, {"name": "The Wheelwrights"}],
        "abstract": "<jats:title>Abstract</jats:title><jats:p>Water &amp; <jats:italic>wheels"
        "</jats:italic>, p &lt; 0.05</jats:p>",
        "issued": {"date-parts": [[2024, 5]]},
        "license": [{"URL": "https://creativecommons.org/licenses/by/4.0/"}],
        "link": [
            {"URL": "https://free.example/xml", "content-type": "text/xml"},
            {"URL": "https://free.example/pdf", "content-type": "application/pdf"},
        ],
        "container-title": ["Journal of Mills"],
        "is-referenced-by-count": 7,
        "type": "journal-article",
    }


def _arxiv(server: ProviderServer, asked: Mapping[str, str]) -> bytes:
    start, size = int(asked["start"]), int(asked["max_results"])
    assert 1 <= size <= 2000
    assert asked["search_query"].startswith("all:")
    entries = server.page(start, size, arxiv_entry)
    return arxiv_feed(entries, len(server.works))


def arxiv_feed(entries: list[str], total: int) -> bytes:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" '
        'xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" '
        'xmlns:arxiv="http://arxiv.org/schemas/atom"><title>ArXiv Query: all:x</title>'
        f"<id>http://arxiv.org/api/x</id><opensearch:totalResults>{total}"
        f"</opensearch:totalResults>{''.join(entries)}</feed>"
    ).encode()


def arxiv_entry(work: Work) -> str:
    page = f"http://arxiv.org/abs/{work.arxiv}v2"
    return (
        f"<entry><id>{page}</id><title>{escape(work.name)}</title>"
        "<published>2024-01-31T18:00:00Z</published><summary>  Water turns\n wheels, $a&lt;b$.\n"
        "</summary><author><name>Ada Byron</name><arxiv:affiliation>A Mill</arxiv:affiliation>"
        "</author><author><name>Émilie du Châtelet</name></author>"
        f"<arxiv:doi>{work.doi}</arxiv:doi><arxiv:comment>3 pages</arxiv:comment>"
        f'<link href="{page}" rel="alternate" type="text/html"/><link title="pdf" '
        f'href="{page.replace("abs", "pdf")}" rel="related" type="application/pdf"/></entry>'
    )


def _searxng(server: ProviderServer, asked: Mapping[str, str]) -> bytes:
    assert asked["format"] == "json"
    start = (int(asked["pageno"]) - 1) * SEARXNG_PAGE
    results = server.page(start, SEARXNG_PAGE, searxng_row)
    return as_json({"query": asked["q"], "results": results, "unresponsive_engines": []}).body


def searxng_row(work: Work) -> dict[str, Any]:
    return {
        "url": f"https://site.example/{work.number}?utm_source=x",
        "title": work.name,
        "content": "Water turns wheels.",
        "engine": "duckduckgo",
        "engines": ["duckduckgo", "brave"],
        "score": 1.5,
        "publishedDate": "2024-01-31T00:00:00",
    }


_ANSWERS: dict[str, Callable[[ProviderServer, Mapping[str, str]], bytes]] = {
    "openalex": _openalex,
    "semantic_scholar": _scholar,
    "crossref": _crossref,
    "arxiv": _arxiv,
    "searxng": _searxng,
}
