"""The pace of a stretch: how fast jobs of one kind, lane and band have started lately."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

LEAST_STARTS = 20
"""Starts from which a pace is known."""
MOST_STARTS = 1024
"""The newest are kept; of what is counted in windows, those of the span."""
STEADY = 0.1
"""Two halves that differ by more, and more than chance would have it, are not one pace."""


@dataclass(slots=True)
class StretchPace:
    """Starts since a stretch has settled down."""

    since: float
    seconds: float
    """It has to be watched for so long."""
    span: float
    """Where amounts are counted in windows, so many seconds are looked back upon, exactly: starts
    come in the same rhythm as they leave the window. Else 0."""
    starts: deque[tuple[float, float]] = field(default_factory=deque)
    """When, and the tokens."""

    def of(self, now: float, *, weighed: bool) -> float | None:
        """Starts a second, or tokens a second if `weighed`; None: it is not known yet. What is not
        the same pace any more is forgotten."""
        most = math.inf if self.span else MOST_STARTS
        while self.starts and (len(self.starts) > most or self._past(now)):
            self.starts.popleft()
        if len(self.starts) < LEAST_STARTS or now - self.since < self.seconds:
            return None
        if self.span:
            return sum(weight if weighed else 1.0 for _, weight in self.starts) / self.span
        times = [at for at, _ in self.starts]
        half = len(times) // 2
        first, last = _rate(times[: half + 1]), _rate(times[half:])
        if not first or not last:
            return None
        if abs(last / first - 1) > max(STEADY, 3 / math.sqrt(half)):
            for _ in range(half):
                self.starts.popleft()
            return None
        rate = _rate(times)
        if now - times[-1] > max(LEAST_STARTS / rate, self.seconds / 4):
            self.starts.clear()
            self.since = now
            return None
        return rate

    def _past(self, now: float) -> bool:
        return self.span > 0 and self.starts[0][0] <= now - self.span

    def shift(self, seconds: float) -> None:
        """So much time was passed by."""
        self.since += seconds
        self.starts = deque((at + seconds, weight) for at, weight in self.starts)


def _rate(times: Sequence[float]) -> float:
    return (len(times) - 1) / (times[-1] - times[0]) if times[-1] > times[0] else 0.0
