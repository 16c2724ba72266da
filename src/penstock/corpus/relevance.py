"""Which hits have anything to do with the question. The best of a corpus in which nothing has are
still its best, so order alone does not tell.

A hit is relevant that holds enough of the question's words, the rare ones counting most, or whose
vector is near enough. How the limits were found: docs/decisions/0059-relevance.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from penstock.corpus.fusion import Fused
from penstock.corpus.query import WeighedQuery
from penstock.corpus.terms import index_terms

OFFLINE_SIMILARITY = 0.18
"""For the offline embedder. Others have a range of their own, and so need a limit of their own."""


@dataclass(frozen=True, slots=True)
class Cutoff:
    """What a hit needs at least: either is enough."""

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
    hits: Iterable[Fused], query: WeighedQuery, text: Callable[[str], str], cutoff: Cutoff
) -> Iterator[Fused]:
    """Of these hits those that pass, with their coverage; `text` gives that of a hit by its id."""
    for hit in hits:
        looked_at = replace(hit, coverage=query.coverage(set(index_terms(text(hit.id)))))
        if cutoff.passes(looked_at):
            yield looked_at
