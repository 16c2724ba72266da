"""Statistics of a worker process since it joined: its runs by kind and outcome, how long jobs
waited for them, and how long they took."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

BOUNDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0),
)
"""Upper bounds, in seconds, of what is counted together; above them there is one more."""
MAX_KINDS = 50
MAX_STAGES = 10
"""Kinds, and stages of each, told apart by one process: it writes all of them with every renewal
of its leases."""
OTHER = "other"
"""Under which further ones are counted."""

Measure = Literal["wait", "run"]


class RunOutcome(StrEnum):
    """The outcome of a run, as it is counted."""

    COMPLETED = "completed"
    RETRY = "retry"
    """It failed, and is tried again."""
    FAILED = "failed"
    """It failed permanently: a dead letter."""
    RELEASED = "released"
    """The handler asked for it to be run later, or a lane was busy."""
    HANDED_BACK = "handed_back"
    """A stop interrupted it, or its failure was its lane's fault."""
    CANCELLED = "cancelled"
    REFUSED = "refused"
    """Its lease had been taken over, or it was cancelled: the outcome does not count."""


ENDINGS = tuple(RunOutcome)


@dataclass(slots=True)
class DurationHistogram:
    """Durations, counted by size."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0
    """All of them together."""

    def note(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += max(0.0, seconds)

    def add(self, other: DurationHistogram) -> None:
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds

    def since(self, before: DurationHistogram) -> DurationHistogram:
        counts = [max(0, a - b) for a, b in zip(self.counts, before.counts, strict=True)]
        return DurationHistogram(counts, max(0.0, self.seconds - before.seconds))

    def quantile(self, q: float) -> float | None:
        """As Prometheus has it: evenly spread inside a bound; None without any, and the highest
        bound for what lies above it."""
        total = sum(self.counts)
        if not total:
            return None
        rank, below = q * total, 0
        for i, count in enumerate(self.counts[:-1]):
            if count and below + count >= rank:
                lower = BOUNDS[i - 1] if i else 0.0
                return lower + (BOUNDS[i] - lower) * max(0.0, rank - below) / count
            below += count
        return BOUNDS[-1]


@dataclass(slots=True)
class KindTally:
    """The runs of one kind. Of those that ended by themselves (completed, retry, failed) the
    times are counted, too."""

    endings: list[int] = field(default_factory=lambda: [0] * len(ENDINGS))
    """In the order of `ENDINGS`."""
    wait: DurationHistogram = field(default_factory=DurationHistogram)
    """From when the job was due to the start of the run."""
    run: DurationHistogram = field(default_factory=DurationHistogram)
    taken_back: int = 0
    """Attempts that follow a crash of the previous worker process."""
    stages: dict[str, DurationHistogram] = field(default_factory=dict)
    """Parts of runs that the handler has named, such as `embed`."""

    def stage(self, name: str) -> DurationHistogram:
        """Where a stage is counted."""
        found = self.stages.get(name)
        if found is None:
            known = name if len(self.stages) < MAX_STAGES else OTHER
            found = self.stages.setdefault(known, DurationHistogram())
        return found

    def add(self, other: KindTally) -> None:
        self.endings = [a + b for a, b in zip(self.endings, other.endings, strict=True)]
        self.wait.add(other.wait)
        self.run.add(other.run)
        self.taken_back += other.taken_back
        for name, spread in other.stages.items():
            self.stages.setdefault(name, DurationHistogram()).add(spread)

    def since(self, before: KindTally) -> KindTally:
        endings = [max(0, a - b) for a, b in zip(self.endings, before.endings, strict=True)]
        nothing = DurationHistogram()
        return KindTally(
            endings,
            self.wait.since(before.wait),
            self.run.since(before.run),
            max(0, self.taken_back - before.taken_back),
            {name: s.since(before.stages.get(name, nothing)) for name, s in self.stages.items()},
        )


@dataclass(slots=True)
class Tally:
    """Of one process, or of several together. Only grows, for as long as its process lives."""

    kinds: dict[str, KindTally] = field(default_factory=dict)

    def of(self, kind: str) -> KindTally:
        """Where runs of this kind are counted."""
        found = self.kinds.get(kind)
        if found is None:
            name = kind if len(self.kinds) < MAX_KINDS else OTHER
            found = self.kinds.setdefault(name, KindTally())
        return found

    def count(self, outcome: str | None = None, kind: str | None = None) -> int:
        """Runs, of all outcomes or one (an `RunOutcome`), of all kinds or one."""
        which = slice(None) if outcome is None else _only(ENDINGS.index(RunOutcome(outcome)))
        return sum(sum(one.endings[which]) for one in self._of(kind))

    def quantile(self, measure: Measure, q: float, kind: str | None = None) -> float | None:
        """Seconds that the share `q` (0 to 1) of all took at most; None where there were none."""
        together = DurationHistogram()
        for one in self._of(kind):
            together.add(one.wait if measure == "wait" else one.run)
        return together.quantile(q)

    def __add__(self, other: Tally) -> Tally:
        together = Tally()
        for tally in (self, other):
            for kind, one in tally.kinds.items():
                together.kinds.setdefault(kind, KindTally()).add(one)
        return together

    def __sub__(self, before: Tally) -> Tally:
        """What came between two readings of one process; never less than nothing."""
        nothing = KindTally()
        return Tally(
            {kind: one.since(before.kinds.get(kind, nothing)) for kind, one in self.kinds.items()}
        )

    def as_status(self) -> dict[str, Any]:
        """As it stands in the status of a process. May be called from another thread while runs
        are counted: each figure is as it was at some moment of the call."""
        return {
            kind: [
                list(one.endings),
                _written(one.wait),
                _written(one.run),
                one.taken_back,
                {name: _written(stage) for name, stage in list(one.stages.items())},
            ]
            for kind, one in list(self.kinds.items())
        }

    @classmethod
    def from_status(cls, status: Mapping[str, Any]) -> Tally:
        """Of the status of a process (`ProcessInfo.status`); empty where it has none yet, and
        where it is of another version that counts otherwise."""
        read = {kind: _read(row) for kind, row in status.get("tally", {}).items()}
        return cls({kind: one for kind, one in read.items() if one is not None})

    def _of(self, kind: str | None) -> Iterable[KindTally]:
        if kind is None:
            return self.kinds.values()
        return [self.kinds[kind]] if kind in self.kinds else []


def _only(index: int) -> slice:
    return slice(index, index + 1)


def _written(spread: DurationHistogram) -> list[Any]:
    return [*spread.counts, round(spread.seconds, 6)]


def _read(row: list[Any]) -> KindTally | None:
    endings, wait, run, taken_back, stages = row
    size = len(BOUNDS) + 2
    if len(endings) != len(ENDINGS) or {len(s) for s in (wait, run, *stages.values())} != {size}:
        return None
    read = {name: DurationHistogram(stage[:-1], stage[-1]) for name, stage in stages.items()}
    return KindTally(
        endings,
        DurationHistogram(wait[:-1], wait[-1]),
        DurationHistogram(run[:-1], run[-1]),
        taken_back,
        read,
    )
