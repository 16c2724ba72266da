"""Fuses keyword and vector ranks into one order.

1. A hit's text share is its BM25 score over that of a passage that holds every term of the question
   once, unknown terms included: about 1 for a full match, about 0 where only a name is shared.
2. Its score is that share plus 0.2 of the square of its vector's place between the worst and the
   best: words decide where they match, vectors order what words leave open, and of those only the
   near ones count.
3. A passage in another script than the question cannot hold its words; it is taken to have 0.9 of
   the second best share, and 0.1 of the lead of its vector over the best in the question's script.
   So its vector decides, unless one passage stands out by its words.

How these were found, and what else was tried: docs/decisions/0017-fusion.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from penstock.retrieval.query import WeighedQuery

DEPTH = 100
"""How many hits to ask each side for; with 20 the gain over the better side shrank by a quarter."""
OTHER_SCRIPT = 0.9
"""Less than 1, or more of the second best's words would lift others past it."""


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A chunk found by one side. Scores: BM25 (not negated) or cosine; higher is better."""

    id: str
    score: float
    script: str


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the two rankings. For an embedder better than the offline one raise `vector`."""

    text: float = 1.0
    vector: float = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Ranks and scores that put a hit in its place. Ranks start at 1; None: not found so."""

    score: float
    text_rank: int | None
    text_score: float | None
    text_share: float
    vector_rank: int | None
    vector_score: float | None
    other_script: bool
    coverage: float | None = None
    """How much of the question's words it holds; see `relevance`. None: not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused(Ranks):
    """A hit in its final place."""

    id: str

    @property
    def ranks(self) -> Ranks:
        return Ranks(**{one.name: getattr(self, one.name) for one in fields(Ranks)})


def fuse(
    text_hits: Sequence[RankedHit],
    vector_hits: Sequence[RankedHit],
    query: WeighedQuery,
    limit: int = 10,
    weights: Weights | None = None,
) -> list[Fused]:
    """The best `limit` of both sides, best first, always in the same order for the same input.

    Either side may be empty; the order is then the other's. A score that is not a number says
    nothing: that hit is left out of its side. A negative text score is a ValueError: FTS5's
    `bm25()` has to be negated.
    """
    if any(hit.score < 0 for hit in text_hits):
        raise ValueError("text scores must not be negative: negate what FTS5's bm25() gives")
    weights = weights or Weights()
    text, vector = _ranked(text_hits), _ranked(vector_hits)
    ideal = query.ideal or 1.0
    shares = {id_: hit.score / ideal for id_, (_, hit) in text.items()}
    places = _places(vector)
    expected = OTHER_SCRIPT * _second_best(list(shares.values()))
    own_best = max(
        (place for id_, place in places.items() if not _foreign(vector[id_][1], query)), default=0.0
    )
    fused = []
    for id_, hit in {id_: hit for id_, (_, hit) in (*text.items(), *vector.items())}.items():
        text_rank, text_hit = text.get(id_, (None, None))
        vector_rank, vector_hit = vector.get(id_, (None, None))
        place = places.get(id_, 0.0)
        share = shares.get(id_, 0.0)
        if foreign := _foreign(hit, query):
            lead = weights.vector / 2 * (place - own_best)
            share = max(share, expected + lead) if vector_hit else share
        fused.append(
            Fused(
                id=id_,
                score=weights.text * share + weights.vector * place**2,
                text_rank=text_rank,
                text_score=text_hit.score if text_hit else None,
                text_share=share,
                vector_rank=vector_rank,
                vector_score=vector_hit.score if vector_hit else None,
                other_script=foreign,
            )
        )
    fused.sort(key=_order)
    return fused[:limit]


def _places(vector: Mapping[str, tuple[int, RankedHit]]) -> dict[str, float]:
    """Where each vector score is between the worst (0) and the best (1), because embedders differ
    in the range of their cosines."""
    scores = [hit.score for _, hit in vector.values()]
    worst = min(scores, default=0.0)
    spread = max(scores, default=0.0) - worst or 1.0
    return {id_: (hit.score - worst) / spread for id_, (_, hit) in vector.items()}


def _foreign(hit: RankedHit, query: WeighedQuery) -> bool:
    """Whether both have a script, and not the same."""
    return bool(hit.script and query.query.script) and hit.script != query.query.script


def _second_best(shares: Sequence[float]) -> float:
    """Of shares in falling order; the only one if there is one."""
    return shares[min(1, len(shares) - 1)] if shares else 0.0


def _order(hit: Fused) -> tuple[float, float, float, str]:
    return (-hit.score, hit.text_rank or math.inf, hit.vector_rank or math.inf, hit.id)


def _ranked(hits: Iterable[RankedHit]) -> dict[str, tuple[int, RankedHit]]:
    """Hits by id with their rank, best first; each id once."""
    sound = sorted(
        (hit for hit in hits if math.isfinite(hit.score)), key=lambda hit: (-hit.score, hit.id)
    )
    best: dict[str, RankedHit] = {}
    for hit in sound:
        best.setdefault(hit.id, hit)
    return {id_: (rank, hit) for rank, (id_, hit) in enumerate(best.items(), 1)}
