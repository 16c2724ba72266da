"""Durations of runs, as past ones tell them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.model.tally import DurationHistogram, Tally
from penstock.ports.backlog import PAST_RUNS, Backlog, PastRun
from penstock.ports.operators import ProcessInfo

GOLDEN = (math.sqrt(5) - 1) / 2
ENOUGH = 20
"""Runs of a kind in a lane; with fewer, those of the kind in all lanes are taken."""
UNKNOWN_SECONDS = 1.0
"""A run of a kind of which none is known."""
UNKNOWN_FACTOR = 3.0
"""And how much longer, or shorter, it may be."""
CONFIDENCE = 1.96
"""Standard errors within which nineteen in twenty lie."""
LEAST_DOUBT = 0.02
QUANTILES = 100
"""Durations that stand for a histogram."""


@dataclass(slots=True)
class Durations:
    """Durations of a kind of runs. They are drawn evenly from past ones and in the same order each
    time, so that a forecast of the same backlog is the same."""

    seconds: Sequence[float]
    """Sorted."""
    known: int = 0
    """Runs that they come from."""
    extra: float = 0.0
    """Further runs that a job takes, on average: retries."""
    _place: float = 0.5
    _owed: float = 0.0

    @property
    def mean(self) -> float:
        return sum(self.seconds) / len(self.seconds)

    def draw(self) -> float:
        self._place = (self._place + GOLDEN) % 1.0
        return self.seconds[int(self._place * len(self.seconds))]

    def left(self, elapsed: float) -> float:
        """What is left of a run that takes longer than this already."""
        first = bisect_right(self.seconds, elapsed)
        if first == len(self.seconds):
            return 0.0
        self._place = (self._place + GOLDEN) % 1.0
        longer = len(self.seconds) - first
        return self.seconds[first + int(self._place * longer)] - elapsed

    def again(self) -> bool:
        """Whether the run that ends now has to be made again."""
        if not self.extra:
            return False
        self._owed += self.extra / (1 + self.extra)
        if self._owed < 1:
            return False
        self._owed -= 1
        return True

    def doubt(self, jobs: int) -> float:
        """By which share the sum of so many more may differ from what these tell."""
        if not self.known:
            return UNKNOWN_FACTOR - 1
        mean = self.mean
        if not mean:
            return LEAST_DOUBT
        variance = sum((one - mean) ** 2 for one in self.seconds) / len(self.seconds)
        spread = math.sqrt(variance * (1 / self.known + 1 / max(1, jobs))) / mean
        return max(LEAST_DOUBT, CONFIDENCE * spread)

    def times(self, factor: float) -> Durations:
        """The same, all of them so many times as long."""
        return Durations([one * factor for one in self.seconds], self.known, self.extra)


class PastDurations:
    """Durations by kind and lane: of the newest completed jobs; else as the live processes have
    counted them."""

    def __init__(self, backlog: Backlog, processes: Iterable[ProcessInfo]) -> None:
        self._by_lane: dict[tuple[str, str], list[PastRun]] = defaultdict(list)
        self._by_kind: dict[str, list[PastRun]] = defaultdict(list)
        self._past = backlog.past
        for one in backlog.past:
            self._by_lane[one.kind, one.lane].append(one)
            self._by_kind[one.kind].append(one)
        self._tally = sum((Tally.from_status(one.status) for one in processes), Tally())

    def of(self, kind: str, lane: str) -> Durations:
        runs = self._by_lane.get((kind, lane), [])
        if len(runs) < ENOUGH:
            runs = self._by_kind.get(kind, [])
        if runs:
            extra = sum(one.attempts for one in runs) / len(runs) - 1
            return Durations(sorted(one.seconds for one in runs), len(runs), max(0.0, extra))
        counted = self._tally.kinds.get(kind)
        if counted is not None and (known := sum(counted.run.counts)):
            return Durations(_spread(counted.run), known)
        return Durations([UNKNOWN_SECONDS])

    def since(self, lane: str, at: float) -> list[PastRun] | None:
        """Those in a lane that have ended since then; None: there may be more than are known."""
        if len(self._past) >= PAST_RUNS // 2 and min(one.ended_at for one in self._past) > at:
            return None
        return [one for one in self._past if one.lane == lane and one.ended_at >= at]


def _spread(histogram: DurationHistogram) -> list[float]:
    """Durations that are counted by size, as if evenly spread inside their bounds, and with the
    mean that they had."""
    even = [histogram.quantile((n + 0.5) / QUANTILES) or 0.0 for n in range(QUANTILES)]
    mean = histogram.seconds / sum(histogram.counts)
    factor = mean * QUANTILES / sum(even) if sum(even) else 1.0
    return [one * factor for one in even]
