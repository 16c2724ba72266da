"""The forecast of a backlog: when it is done, what it costs, and what holds it up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.forecast.holds import Hold


@dataclass(slots=True, frozen=True)
class ForecastLine:
    """The jobs of one kind in one lane, or without one."""

    lane: str | None
    kind: str
    jobs: int
    """Jobs that are done by `done_at`; with `stays`, all that there are."""
    stays: int
    """Jobs that are not done, whatever time passes; `held_by` says why."""
    done_at: float | None
    """When the last of them is done. None: none of them ever is, as things stand."""
    margin_seconds: float
    """It may be so much sooner or later."""
    per_minute: float | None
    """Starts a minute, from the first to the last."""
    held_by: Hold
    """What they wait for most of the time."""
    held_in: str | None
    """The lane that this is of: their own, or its parent."""
    tokens: int
    """What they reserve, as far as such jobs use it."""
    cost: float | None
    """Money, in the currency of the lanes. None: no job says what it costs."""


@dataclass(slots=True, frozen=True)
class Forecast:
    """When the backlog is done, as things stand: with these processes, lanes, and durations."""

    at: float
    """When it was made, in seconds since 1970, on the queue's clock."""
    jobs: int
    """Queued and running jobs."""
    stays: int
    """Of them those that are not done, whatever time passes."""
    done_at: float | None
    """When the last of the others is done. None: none of them ever is."""
    margin_seconds: float
    """It may be so much sooner or later."""
    tokens: int
    """What the jobs use, as far as they say so."""
    cost: float | None
    """Money, in the currency of the lanes. None: no job says what it costs."""
    workers: int
    """Workers in all processes that it counts with."""
    lines: Sequence[ForecastLine]
    """By kind and lane: those that are never done, then the one that is done last."""
    unknown_kinds: Sequence[str] = ()
    """Kinds of which no run is known: a second each is assumed."""
    bounds: bool = False
    """Tokens and cost are what jobs reserve, because too little is known of what they use."""
    uncounted_kinds: Sequence[str] = ()
    """Kinds that use tokens or money, which are not counted here: they reserve nothing with their
    starts, and too little is known of what their permits use."""

    @property
    def binding(self) -> ForecastLine | None:
        """The line that is done last."""
        done = [line for line in self.lines if line.done_at is not None]
        return max(done, key=lambda line: line.done_at or 0.0, default=None)


@dataclass(slots=True)
class LineOutcome:
    """The outcome of a line in one virtual run."""

    jobs: int = 0
    stays: int = 0
    first_at: float = math.inf
    last_at: float = 0.0
    done_at: float = 0.0
    tokens: float = 0.0
    cost: float = 0.0
    holds: dict[tuple[Hold, str], float] = field(default_factory=dict)


LineOutcomes = dict[tuple[str, str], LineOutcome]
"""By lane and kind."""


def combine(usual: LineOutcomes, others: Iterable[LineOutcomes], at: float) -> list[ForecastLine]:
    """Lines as the usual run has them, with the margins of the others."""
    others = list(others)
    found = [_line(key, one, [run.get(key) for run in others], at) for key, one in usual.items()]
    late = [line for line in found if line.done_at is None]
    done = [line for line in found if line.done_at is not None]
    return late + sorted(done, key=lambda line: -(line.done_at or 0.0))


def margin_of(at: float, done_at: float, others: Sequence[float]) -> float:
    """Half of what lies between a run that is slow and one that is quick; at least a hundredth of
    the time, and a second."""
    apart = max([abs(other - done_at) for other in others], default=0.0)
    return max(apart, (done_at - at) / 100, 1.0)


def _line(
    key: tuple[str, str], one: LineOutcome, others: Sequence[LineOutcome | None], at: float
) -> ForecastLine:
    lane, kind = key
    hold, where = max(one.holds, key=lambda by: one.holds[by], default=(Hold.NOTHING, ""))
    done = one.done_at or None
    took = one.last_at - one.first_at
    ends = [other.done_at for other in others if other is not None and other.done_at]
    return ForecastLine(
        lane=lane or None,
        kind=kind,
        jobs=one.jobs,
        stays=one.stays,
        done_at=done,
        margin_seconds=0.0 if done is None else margin_of(at, done, ends),
        per_minute=60 * (one.jobs - 1) / took if one.jobs > 1 and took > 0 else None,
        held_by=hold,
        held_in=where or None,
        tokens=round(one.tokens),
        cost=one.cost / 1e6 if one.cost else None,
    )
