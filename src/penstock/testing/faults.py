"""Faults of a simulation: drawn from its seed, before it begins, so that they can be left out."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class FaultKind(StrEnum):
    """The ways in which a simulated computer goes wrong."""

    CRASH = "crash"
    """A worker process is killed at any await, and started again some seconds later."""
    STOP = "stop"
    """A worker process is asked to stop, and started again."""
    FREEZE = "freeze"
    """A worker process stands still, often for longer than its lease."""
    CLIENT_FREEZE = "client freeze"
    """The process that enqueues and waits stands still."""
    SLOW_DISK = "slow disk"
    FULL_DISK = "full disk"
    LOST_WAKEUPS = "lost wake-ups"
    CLOCK_JUMP = "clock jump"
    """The clock of the computer is set ahead, and later back."""
    CLOCK_SET_BACK = "clock set back"
    """The clock of the computer is set back, for good."""
    OUTAGE = "outage"
    """A lane's dependency fails, hangs, answers 429, answers late, or answers nonsense."""

    LOST_REQUESTS = "lost requests"
    """Of a queue on a server: requests and answers get lost, and some requests are done twice."""
    LATE_REQUESTS = "late requests"
    CUT = "cut connection"
    """A worker process cannot reach the server."""
    SERVER_RESTART = "server restart"
    FAILOVER = "failover"
    """A replica takes over that lacks what was committed last."""


ON_SERVER = frozenset(
    {
        FaultKind.LOST_REQUESTS,
        FaultKind.LATE_REQUESTS,
        FaultKind.CUT,
        FaultKind.SERVER_RESTART,
        FaultKind.FAILOVER,
    }
)
"""Faults of a queue on a server only."""
IN_FILE = frozenset({FaultKind.FULL_DISK})
"""Faults of a queue in a file only."""


FAILOVER_SECONDS = 3.0
"""A replica lacks as much, at most."""
FORGOTTEN = 0.3
"""The share of failovers that forget a process which has just joined."""


@dataclass(slots=True, frozen=True)
class InjectedFault:
    at: float
    """Seconds after the beginning."""
    kind: FaultKind
    process: int
    """Which worker process, by its number; modulo how many there are."""
    seconds: float
    """How long it lasts."""
    steps: int
    """After how many callbacks a process that is killed dies; which way a dependency fails."""

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:.2f} s for {self.seconds:.2f} s"


def draw_faults(
    seed: int, kinds: Collection[FaultKind], span: float, most: int = 8
) -> Sequence[InjectedFault]:
    """The faults of a seed, in the order they happen: none to `most`, within `span` seconds."""
    chance = random.Random(f"faults {seed}")  # noqa: S311 (it is to be predictable)
    ordered = sorted(kinds)
    span *= chance.choice((0.3, 0.6, 1.0))  # many scenarios are over soon
    faults = [
        InjectedFault(
            at=chance.uniform(0.0, span),
            kind=chance.choice(ordered),
            process=chance.randrange(100),
            seconds=chance.choice((0.05, 0.5, 2.0, 5.0, 9.0)) * chance.uniform(0.5, 1.5),
            steps=chance.randrange(120),
        )
        for _ in range(chance.randrange(most + 1) if ordered else 0)
    ]
    if FaultKind.STOP in kinds:
        for fault in [one for one in faults if one.kind is FaultKind.FAILOVER]:
            if chance.random() < FORGOTTEN:
                # One joins, which the replica does not know; then another is given its number.
                stop = replace(fault, kind=FaultKind.STOP, seconds=0.05)
                lag = min(fault.seconds, FAILOVER_SECONDS)
                faults.append(replace(stop, at=fault.at + lag * chance.uniform(0.1, 0.9)))
                faults.append(replace(stop, at=fault.at + lag, process=fault.process + 1))
    return sorted(faults, key=lambda fault: fault.at)
