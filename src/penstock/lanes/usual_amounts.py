"""The usual amount of a kind: what 99 of 100 of its requests have used at most.

A request that says nothing of its amount reserves it. It is learnt, in a lane that counts, from
requests that said nothing either, once their use is told. For each kind a lane keeps how many told
theirs, and the largest hundredth of them, in generations: the one that grows, and the one before.

Lua has a twin of it (`adapters/redis/lua/common/usual_amounts.lua`); a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.model.amounts import Amounts

GENERATION = 500
"""Requests after which older ones are forgotten: those of the generation before last."""
LARGEST = 6
"""Kept of a generation: one more than a hundredth, so that the last of them is the p99."""
USUAL_KINDS = 16
"""Of a lane; of more, those that told their use last."""


def usual(known: Sequence[list[Any]], kind: str) -> Amounts | None:
    """What a request of this kind reserves; None: nothing is known of it. `known` is of a lane: for
    each kind [kind, generation, the one before], and of a generation [how many, the largest tokens,
    input, output, cost]."""
    for name, *generations in known:
        if name == kind:
            told = [one for one in generations if one[0]]
            return Amounts(*(max(one[n][one[0] // 100] for one in told) for n in range(1, 5)))
    return None


def learn(known: list[list[Any]], kind: str, used: Amounts) -> None:
    """A request of this kind has used so much."""
    row: list[Any] = [kind, _empty(), _empty()]
    for one in known:
        if one[0] == kind:
            known.remove(row := one)
            break
    known.append(row)
    del known[:-USUAL_KINDS]
    if row[1][0] == GENERATION:
        row[1], row[2] = _empty(), row[1]
    row[1][0] += 1
    for n, amount in enumerate(used):
        row[1][1 + n] = sorted([*row[1][1 + n], amount], reverse=True)[:LARGEST]


def _empty() -> list[Any]:
    return [0, [], [], [], []]
