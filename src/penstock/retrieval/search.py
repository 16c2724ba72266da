"""Search: a question in, ranked passages out, with explanations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from penstock.errors import PenstockError, ValidationError
from penstock.model import document as model
from penstock.model.document import DocumentRef
from penstock.ports.documents import DocumentQuery, DocumentStore, Findings, Place, Scope
from penstock.retrieval.fusion import DEPTH, Fused, RankedHit, Weights, fuse
from penstock.retrieval.query import Query, WeighedQuery, query_terms, weigh
from penstock.retrieval.relevance import Cutoff, relevant
from penstock.retrieval.snippet import snippet
from penstock.retrieval.terms import index_terms

MAX_HITS = 100

EmbedQuestion = Callable[[str], Awaitable[bytes]]


@dataclass(slots=True, frozen=True)
class Passage:
    """A chunk that answers, and where it is."""

    document: DocumentRef
    title: str
    source: str
    chunk: int
    """Its place among the document's chunks, from 0."""
    text: str
    start: int
    end: int
    """Where it is in the document's text."""
    pages: tuple[int, int] | None
    section: tuple[str, ...]
    snippet: str
    marks: tuple[tuple[int, int], ...]
    """Where words of the question are in the snippet."""
    score: float
    why: Fused
    """Both ranks and scores."""
    page_starts: tuple[int, ...] = ()
    """Where in the document's text each of its pages after the first begins."""


@dataclass(slots=True, frozen=True)
class SearchResult:
    passages: list[Passage]
    mode: str
    """hybrid, or text: without vectors, and `note` says why."""
    note: str = ""
    """Also what of the question was not looked for."""

    def as_dict(self) -> dict[str, Any]:
        """A JSON-ready form; what `--json` prints."""
        passages = []
        for passage in self.passages:
            fields = asdict(passage)
            tenant, collection, document_id = fields.pop("document")
            del fields["why"]["id"]  # a row of the store
            place = {"document": document_id, "collection": collection, "tenant": tenant}
            passages.append({**place, **fields})
        return {"mode": self.mode, "note": self.note, "passages": passages}


async def search(
    documents: DocumentStore,
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
    findings = await documents.find(wanted)
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

    def passages() -> list[Passage]:
        held = weighed.weights
        kept = relevant(ranked, weighed, terms_of, cutoff or Cutoff())
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
        document=document.ref,
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
        why=why,
        page_starts=chunk.page_starts,
    )
