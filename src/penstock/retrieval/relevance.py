"""Tells hits that have to do with a question from those that are only the best there are.

A hit is relevant that holds enough of the question's words, the rare ones counting most, or whose
vector is near enough, or of which both are true in part. Where no document at all knows most of
these words, the question is likely about something else, and a hit needs more. How the limits were
found, and what they let through: docs/decisions/0059-relevance.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from penstock.retrieval.fusion import Fused
from penstock.retrieval.query import WeighedQuery
from penstock.retrieval.stop_words import language

OFFLINE_SIMILARITY = 0.22
"""For the offline embedder. Others have a range of their own, and so need a limit of their own."""
OFFLINE_FLOOR = 0.1
"""Where its cosines begin to say something."""
OTHER_LANGUAGE = 2 / 3
"""The part of it that is enough for a passage in another language, for which no words can speak."""
MAY_BE_UNKNOWN = 0.3
"""The part of a question's words that no document has to know. What is unknown beyond it, a hit has
to make up for."""
UNKNOWN_OTHER_SCRIPT = 0.5
"""The part of what is unknown that one in another script has to make up for, where there are some
in the question's own, which would know its words."""


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The minimum a hit needs: either, or a part of one and the rest of the other."""

    coverage: float = 0.25
    """0: every hit is relevant."""
    similarity: float | None = OFFLINE_SIMILARITY
    """Cosine. None: not known for this embedder, so whatever vectors find is relevant."""
    floor: float | None = OFFLINE_FLOOR
    """The cosine up to which texts have nothing in common. None: not known for this embedder, so
    the median of what vectors have found for the question is taken for it, and the limits hold
    whatever words are unknown."""

    @property
    def measured(self) -> bool:
        """Whether the range of the embedder's cosines is known."""
        return self.similarity is not None and self.floor is not None

    def evidence(self, hit: Fused, floor: float) -> float:
        """What speaks for a hit: 1 is enough."""
        words = (hit.coverage or 0.0) / self.coverage
        if hit.vector_score is None:
            return words
        return words + self._nearness(hit.vector_score, floor)

    def _nearness(self, cosine: float, floor: float) -> float:
        if self.similarity is None:
            return 1.0
        if self.similarity <= floor:
            return 1.0 if cosine >= self.similarity else 0.0
        return max(0.0, cosine - floor) / (self.similarity - floor)


def relevant(
    hits: Sequence[Fused],
    query: WeighedQuery,
    terms: Callable[[str], Collection[str]],
    language_of: Callable[[str], str],
    cutoff: Cutoff,
) -> Iterator[Fused]:
    """Those of the hits that pass, with their coverage; `terms` and `language_of` give those of a
    hit by its id."""
    floor = cutoff.floor
    if floor is None:
        cosines = [hit.vector_score for hit in hits if hit.vector_score is not None]
        floor = median(cosines) if cosines else 0.0
    needed = _Needed(query, hits, language_of, cutoff.measured)
    for hit in hits:
        # Of what words have not found there is no need to look which it holds.
        share = 0.0 if hit.text_rank is None else query.coverage(terms(hit.id))
        looked_at = replace(hit, coverage=share)
        if cutoff.coverage == 0.0 or needed.by(looked_at, cutoff.evidence(looked_at, floor)):
            yield looked_at


class _Needed:
    """The evidence that a hit needs, for one question."""

    def __init__(
        self,
        query: WeighedQuery,
        hits: Sequence[Fused],
        language_of: Callable[[str], str],
        measured: bool,
    ) -> None:
        unknown = query.unknown if measured else 0.0
        own_script = any(not hit.other_script for hit in hits)
        self._language = language(query.query.text)
        self._language_of = language_of
        self._enough = 1.0 + max(0.0, unknown - MAY_BE_UNKNOWN)
        self._other_script = OTHER_LANGUAGE + UNKNOWN_OTHER_SCRIPT * unknown * own_script

    def by(self, hit: Fused, evidence: float) -> bool:
        if hit.other_script:
            return evidence >= self._other_script
        if evidence >= self._enough:
            return True
        return evidence >= OTHER_LANGUAGE and self._in_another_language(hit)

    def _in_another_language(self, hit: Fused) -> bool:
        spoken = self._language_of(hit.id)
        return bool(self._language and spoken) and spoken != self._language
