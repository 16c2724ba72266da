"""What was measured, and whether it meets its target. How it is written down: `rendering.py`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


@dataclass(slots=True, frozen=True)
class Figure:
    """One contender's figure: the median of its runs, and the least and the most of them."""

    who: str
    value: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, who: str, values: Sequence[float]) -> Figure:
        return cls(who, statistics.median(values), min(values), max(values), len(values))


class Better(Enum):
    MORE = "more"
    LESS = "less"


@dataclass(slots=True, frozen=True)
class TimesThePeer:
    """At least this many times as good as the peer."""

    factor: float

    def __str__(self) -> str:
        return f">= {self.factor:g}x the peer"


@dataclass(slots=True, frozen=True)
class AtMost:
    value: float
    unit: str

    def __str__(self) -> str:
        return f"<= {self.value:g} {self.unit}"


@dataclass(slots=True, frozen=True)
class AtLeast:
    value: float
    unit: str

    def __str__(self) -> str:
        return f">= {self.value:g} {self.unit}"


Target = TimesThePeer | AtMost | AtLeast


def parse_target(text: str) -> Target:
    """What `str` made of a target."""
    sign, value, unit = (text + " ").split(" ", 2)
    if unit.strip() == "the peer":
        return TimesThePeer(float(value.removesuffix("x")))
    return (AtMost if sign == "<=" else AtLeast)(float(value), unit.strip())


Cell = Figure | str
"""A figure, or in words what was seen instead, or why nothing was."""


class Verdict(Enum):
    MET = "met"
    MISSED = "MISSED"
    NOT_MEASURED = "NOT MEASURED"
    NO_TARGET = "-"


@dataclass(slots=True, frozen=True)
class Result:
    """One line of the report."""

    benchmark: str
    what: str
    unit: str
    ours: Figure | None
    peer: Figure | None = None
    better: Better = Better.MORE
    target: Target | None = None
    note: str = ""
    peers: Mapping[str, Cell] = field(default_factory=dict)
    """Where several peers were measured: each by its name. `peer` is then the best of them."""
    series: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """What it was seen in, for a plot: points (x, y), by name."""

    @classmethod
    def beside(
        cls,
        benchmark: str,
        what: str,
        unit: str,
        ours: Cell,
        peers: Mapping[str, Cell],
        better: Better,
        target: Target | None = None,
        note: str = "",
    ) -> Result:
        """Of several peers. What kept us from being measured goes into the note."""
        figures = [cell for cell in peers.values() if isinstance(cell, Figure)]
        pick = max if better is Better.MORE else min
        best = pick(figures, key=lambda figure: figure.value) if figures else None
        if isinstance(ours, str):
            note = f"{ours}. {note}".strip()
        figure = ours if isinstance(ours, Figure) else None
        return cls(benchmark, what, unit, figure, best, better, target, note, peers)

    @property
    def ratio(self) -> float | None:
        """How many times as good as the peer we are; None without a peer, or with a zero."""
        if self.ours is None or self.peer is None:
            return None
        ours, peer = self.ours.value, self.peer.value
        if self.better is Better.LESS:
            ours, peer = peer, ours
        return ours / peer if peer else None

    @property
    def verdict(self) -> Verdict:
        if self.ours is None:
            return Verdict.NOT_MEASURED
        match self.target:
            case None:
                return Verdict.NO_TARGET
            case TimesThePeer(factor):
                # A peer that was not measured may be the best of them.
                missing = any(isinstance(cell, str) for cell in self.peers.values())
                if self.ratio is None or missing:
                    return Verdict.NOT_MEASURED
                return Verdict.MET if self.ratio >= factor else Verdict.MISSED
            case AtMost(value):
                return Verdict.MET if self.ours.value <= value else Verdict.MISSED
            case AtLeast(value):
                return Verdict.MET if self.ours.value >= value else Verdict.MISSED

    @property
    def good(self) -> bool:
        return self.verdict in (Verdict.MET, Verdict.NO_TARGET)
