"""Contenders take turns (A B A B ...), so that a noisy moment does not favour one of them."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.contenders.base import Contender
from benchmarks.report import Figure

_numbers = itertools.count(1)
ALONE = "PENSTOCK_BENCH_ALONE"
"""Set to 1: peers are not measured; see `benchmarks.compare`."""


def in_turn(
    contenders: Sequence[Contender], measure: Callable[[Contender], float], rounds: int
) -> dict[str, Figure]:
    """Each contender's figure, by name. The first is ours."""
    values: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    alone = os.environ.get(ALONE) == "1"
    for _ in range(rounds):
        for contender in contenders:
            if alone and contender is not contenders[0]:
                values[contender.name].append(math.nan)
                continue
            values[contender.name].append(measure(contender))
    return {name: Figure.of(name, some) for name, some in values.items()}


def best(figures: Sequence[Figure]) -> Figure:
    """The fastest of several rates."""
    return max(figures, key=lambda figure: figure.value)


def fresh(folder: Path) -> Path:
    """A new empty folder."""
    path = folder / f"run-{next(_numbers)}"
    path.mkdir()
    return path


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` % of `values` do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
