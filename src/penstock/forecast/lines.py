"""Lines of a forecast: groups of jobs that are alike, in the order in which a claim finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count

from penstock.model.amounts import NOTHING, Amounts
from penstock.ports.backlog import WaitingJobs

SEARCH = 60
"""Halvings of a line's turns until the one is found before which so many jobs stand."""


@dataclass(slots=True, eq=False)
class JobGroup:
    """Jobs that are alike, and where the next of them stands."""

    kind: str
    lane: str
    tenant: str
    band: int
    count: int
    turn: float = 0.0
    step: float = 0.0
    amount: Amounts = NOTHING
    """What each reserves."""

    @classmethod
    def of(cls, jobs: WaitingJobs, lane: str, count: int | None = None) -> JobGroup:
        """They stand in line as they do in the queue; in a band, one after another or in turns."""
        wide = jobs.last - jobs.first
        return cls(
            jobs.kind,
            lane,
            jobs.tenant,
            jobs.band,
            jobs.size if count is None else count,
            jobs.first,
            wide / (jobs.size - 1) if jobs.size > 1 else 0.0,
            Amounts(*(round(part / jobs.size) for part in jobs.amount)),
        )

    def before(self, turn: float) -> int:
        """How many of them stand at this turn or before it."""
        if self.turn > turn:
            return 0
        return min(self.count, int((turn - self.turn) / self.step) + 1 if self.step else self.count)


@dataclass(slots=True, eq=False)
class VirtualLine:
    """The jobs of one kind that wait in one lane, or without one."""

    lane: str
    kind: str
    groups: list[tuple[int, float, int, JobGroup]] = field(default_factory=list)
    """A heap: the first in line is the first."""
    waiting: int = 0
    _numbers: count[int] = field(default_factory=count)

    def join(self, groups: Iterable[JobGroup]) -> None:
        for group in groups:
            if group.count:
                self.groups.append((group.band, group.turn, next(self._numbers), group))
                self.waiting += group.count
        heapify(self.groups)

    @property
    def place(self) -> tuple[int, float]:
        """The place of the first in line."""
        return self.groups[0][:2]

    @property
    def first(self) -> JobGroup:
        return self.groups[0][3]

    def take(self) -> JobGroup:
        """Take the first in line."""
        _, _, number, group = heappop(self.groups)
        group.count -= 1
        group.turn += group.step
        self.waiting -= 1
        if group.count:
            heappush(self.groups, (group.band, group.turn, number, group))
        return group

    def band(self, band: int) -> list[JobGroup]:
        return [group for of, _, _, group in self.groups if of == band]

    def take_many(
        self, band: int, wanted: float, weigh: Callable[[JobGroup], float] = lambda _: 1.0
    ) -> list[tuple[JobGroup, int]]:
        """Take so many of a band, the first in line first, or all there are; or as many as weigh so
        much together, but for what one of a group weighs."""
        groups = self.band(band)
        wanted = min(wanted, sum(group.count * weigh(group) for group in groups))
        low = min((group.turn for group in groups), default=0.0) - 1.0
        high = max((group.turn + group.step * group.count for group in groups), default=0.0)
        for _ in range(SEARCH):
            middle = (low + high) / 2
            if sum(group.before(middle) * weigh(group) for group in groups) > wanted:
                high = middle
            else:
                low = middle
        found = []
        rest = wanted - sum(group.before(low) * weigh(group) for group in groups)
        for group in groups:
            many = group.before(low)
            more = min(group.count - many, int(rest / weigh(group)))  # several stand at one turn
            rest -= more * weigh(group)
            if many + more:
                found.append((group, many + more))
        for group, many in found:
            group.count -= many
            group.turn += group.step * many
            self.waiting -= many
        self.groups = [
            (group.band, group.turn, number, group)
            for _, _, number, group in self.groups
            if group.count
        ]
        heapify(self.groups)
        return found
