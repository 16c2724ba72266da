"""Search: a question in, ranked passages out, with explanations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from penstock.errors import PenstockError, ValidationError
from penstock.model import document as model
from penstock.ports.documents import DocumentQuery, Findings, Place, Scope
from penstock.retrieval.fusion import DEPTH, Fused, RankedHit, Ranks, Weights, fuse
from penstock.retrieval.query import Query, WeighedQuery, query_terms, weigh
from penstock.retrieval.relevance import Cutoff, relevant
from penstock.retrieval.snippet import snippet
from penstock.retrieval.stop_words import language
from penstock.retrieval.terms import index_terms

MAX_HITS = 100

EmbedQuestion = Callable[[str], Awaitable[bytes]]


@dataclass(slots=True, frozen=True)
class Quote:
    """Text of a document, and where it is."""

    text: str
    document: str
    """Its id."""
    collection: str
    title: str
    source: str
    """Where it came from: an address or a file name."""
    pages: tuple[int, int] | None
    """First and last page, where it has pages."""
    section: tuple[str, ...]
    """The headings above it."""
    start: int
    """Where in the document's text it begins ..."""
    end: int
    """... and ends."""
    score: float
    """The greater the better, among those of one question."""


@dataclass(slots=True, frozen=True)
class Passage(Quote):
    """A chunk that answers, and where it is."""

    tenant: str
    chunk: int
    """Its place among the document's chunks, from 0."""
    snippet: str
    marks: tuple[tuple[int, int], ...]
    """Where in the snippet words of the question are: start, end."""
    why: Ranks
    """Both ranks and scores; over HTTP with `explain` only."""
    page_starts: tuple[int, ...] = ()
    """Where in the document's text each of its pages after the first begins."""


@dataclass(slots=True, frozen=True)
class SearchResult:
    passages: list[Passage]
    """The best first."""
    mode: Literal["hybrid", "text"]
    """`text`: found by their words alone, and `note` says why."""
    note: str = ""
    """Also what of the question was not looked for."""


async def search(
    find: Callable[[DocumentQuery], Awaitable[Findings]],
    question: str,
    scope: Scope,
    *,
    model: str,
    embed: EmbedQuestion,
    limit: int = 10,
    weights: Weights | None = None,
    cutoff: Cutoff | None = None,
    until: float | None = None,
) -> SearchResult:
    """The passages that answer best, of those that have to do with the question. Where it cannot
    be embedded, those whose words match best. Nobody waits for it after `until`, on the clock of
    the event loop."""
    if not question.strip():
        raise ValidationError("the question is empty")
    if not 0 < limit <= MAX_HITS:
        raise ValidationError(f"limit must be between 1 and {MAX_HITS}, not {limit}")
    query = query_terms(question)
    vector, note = None, ""
    try:
        vector = await embed(question)
    except PenstockError as error:
        note = f"without vectors: {error}"
    weighing = _Weighing(query)
    left = None if until is None else max(0.0, until - asyncio.get_running_loop().time())
    wanted = DocumentQuery(scope, query.terms, weighing, vector, model, DEPTH, left)
    findings = await find(wanted)
    weighed = weighing.weighed
    ranked = fuse(
        _hits(findings.text, findings, 0.0),
        _hits(findings.vector, findings, -1.0),
        weighed,
        2 * DEPTH,
        weights,
    )

    def place_of(id_: str) -> Place:
        return findings.places[int(id_)]

    def terms_of(id_: str) -> set[str]:
        return set(index_terms(place_of(id_).chunk.text))

    def language_of(id_: str) -> str:
        return language(place_of(id_).chunk.text)

    def passages() -> list[Passage]:
        held = weighed.weights
        kept = relevant(ranked, weighed, terms_of, language_of, cutoff or Cutoff())
        return [_passage(one, place_of(one.id), held) for one in islice(kept, limit)]

    # A hundred chunks in which every word matches are tens of milliseconds of work.
    found = await asyncio.to_thread(passages)
    return SearchResult(found, "text" if vector is None else "hybrid", note)


class _Weighing:
    """Weighs the question with the corpus's own numbers, and remembers what came of it."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self.weighed: WeighedQuery = weigh(query, {}, 0)

    def __call__(self, frequencies: Mapping[str, int], total: int) -> Sequence[str]:
        self.weighed = weigh(self._query, frequencies, total)
        return self.weighed.asked


def _hits(hits: Sequence[model.Hit], findings: Findings, least: float) -> list[RankedHit]:
    # FTS5 gives a little less than nothing to terms that nearly every chunk holds.
    return [
        RankedHit(str(hit.chunk), max(least, hit.score), findings.places[hit.chunk].chunk.script)
        for hit in hits
    ]


def _passage(why: Fused, place: Place, weights: Mapping[str, float]) -> Passage:
    chunk, document = place
    shown = snippet(chunk.text, weights)
    return Passage(
        document=document.id,
        collection=document.collection,
        tenant=document.tenant,
        title=document.title,
        source=document.source,
        chunk=chunk.ordinal,
        text=chunk.text,
        start=chunk.start,
        end=chunk.end,
        pages=chunk.pages,
        section=chunk.section,
        snippet=shown.text,
        marks=shown.marks,
        score=why.score,
        why=why.ranks,
        page_starts=chunk.page_starts,
    )
