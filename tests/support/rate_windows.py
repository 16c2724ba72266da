"""How a server would judge its callers: by the times at which requests came and went."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median


def most_in_window(times: Iterable[float], seconds: float) -> int:
    """The most that any window [t, t + seconds) holds."""
    ordered = sorted(times)
    return max(
        (bisect_left(ordered, first + seconds) - n for n, first in enumerate(ordered)), default=0
    )


def usual_in_window(times: Iterable[float], seconds: float) -> float:
    """What half of the windows that begin with one hold at most. A server that stood still for a
    moment sees those that came meanwhile together, and so has some fuller ones."""
    ordered = sorted(times)
    return median(bisect_left(ordered, first + seconds) - n for n, first in enumerate(ordered))


def least_gap(times: Iterable[float]) -> float:
    """The shortest time from one to the next."""
    ordered = sorted(times)
    return min(
        (later - earlier for earlier, later in pairwise(ordered)),
        default=float("inf"),
    )


def most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    """The most spans (from, to) that share a moment; one that ends as another starts does not."""
    edges = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most
