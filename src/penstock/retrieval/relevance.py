"""Decides which hits are relevant to the question; rank alone does not tell.

A hit is relevant that holds enough of the question's words, the rare ones counting most, or whose
vector is near enough. How the limits were found: docs/decisions/0059-relevance.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from penstock.retrieval.fusion import Fused
from penstock.retrieval.query import WeighedQuery

OFFLINE_SIMILARITY = 0.18
"""For the offline embedder. Others have a range of their own, and so need a limit of their own."""


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The minimum a hit needs: either is enough."""

    coverage: float = 0.15
    """0: every hit is relevant."""
    similarity: float | None = OFFLINE_SIMILARITY
    """Cosine. None: not known for this embedder, so whatever vectors find is relevant."""

    def passes(self, hit: Fused) -> bool:
        if (hit.coverage or 0.0) >= self.coverage:
            return True
        if hit.vector_score is None:
            return False
        return self.similarity is None or hit.vector_score >= self.similarity


def relevant(
    hits: Iterable[Fused],
    query: WeighedQuery,
    terms: Callable[[str], Collection[str]],
    cutoff: Cutoff,
) -> Iterator[Fused]:
    """Those of the hits that pass, with their coverage; `terms` gives those of a hit by its id."""
    for hit in hits:
        # Of what words have not found there is no need to look which it holds.
        share = 0.0 if hit.text_rank is None else query.coverage(terms(hit.id))
        looked_at = replace(hit, coverage=share)
        if cutoff.passes(looked_at):
            yield looked_at
