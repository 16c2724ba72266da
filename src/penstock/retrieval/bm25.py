"""BM25 as FTS5 computes it, for stores whose full-text search lacks it.

PostgreSQL finds the chunks that hold a term but weighs all terms alike; the store takes the few
hundred that hold the most weight and orders them by this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SATURATION = 1.2
LENGTH_SHARE = 0.75


def bm25(terms: Sequence[str], weights: Mapping[str, float], mean_length: float) -> float:
    """The score of a chunk with these `index_terms` for a query's `weights`; higher is better.

    `mean_length` is the mean number of terms of the corpus's chunks.
    """
    counts = dict.fromkeys(weights, 0)
    for term in terms:
        if term in counts:
            counts[term] += 1
    relative = len(terms) / mean_length if mean_length > 0 else 1.0
    damping = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * relative)
    return sum(
        weights[term] * count * (SATURATION + 1) / (count + damping)
        for term, count in counts.items()
    )
