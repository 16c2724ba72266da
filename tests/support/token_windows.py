"""What a provider that counts tokens makes of the requests that reached it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ROUNDING = 1e-6


class Asked(NamedTuple):
    at: float
    """When it arrived."""
    tokens: int


def most_tokens(asked: Sequence[Asked], window: float) -> int:
    """The most tokens that any window of this length has seen."""
    some = sorted(asked)
    most = total = first = 0
    for one in some:
        total += one.tokens
        while some[first].at <= one.at - window + ROUNDING:
            total -= some[first].tokens
            first += 1
        most = max(most, total)
    return most


def window_is_kept(asked: Sequence[Asked], window: float, limit: int) -> bool:
    return most_tokens(asked, window) <= limit


def overdraft(asked: Sequence[Asked], window: float, limit: int) -> float:
    """How far a bucket that holds `limit`, and is refilled in `window` seconds, was overdrawn."""
    level, at, worst = float(limit), 0.0, 0.0
    for one in sorted(asked):
        level = min(limit, level + (one.at - at) * limit / window) - one.tokens
        at, worst = one.at, max(worst, -level)
    return worst


def refills_enough(asked: Sequence[Asked], window: float, limit: int) -> bool:
    return overdraft(asked, window, limit) <= limit * ROUNDING
