"""A simulated service that takes so many requests at a time, and another number later: what is too
many it answers 429, or makes wait."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Phase = tuple[float, int]
"""Seconds, and how many requests at a time are served meanwhile."""
ANSWER_SECONDS = 0.1
REFUSAL_SECONDS = 0.002
TRIP_SECONDS = 0.005
"""From the end of a request to the start of the next."""


@dataclass(slots=True)
class Tally:
    """What came of a simulated lane."""

    served: int = 0
    refused: int = 0
    seconds: float = 0.0
    """That the served requests took, in all."""
    values: list[tuple[float, int]] = field(default_factory=list)
    """(when, requests at a time) after each change."""

    @property
    def errors(self) -> float:
        return self.refused / max(1, self.served + self.refused)


def simulate(
    phases: Sequence[Phase],
    ended: Callable[[float, float, bool, int], int],
    first: int,
    *,
    queues: bool = False,
    spread: float = 0.3,
    seed: int = 1,
) -> Tally:
    """Have as many requests under way as allowed for, until all phases are over. `ended(now, took,
    ok, in_flight)` learns of each end, and says how many are allowed from then on. With `queues`
    requests that are too many wait at the service, else they are refused."""
    chance, tally = random.Random(seed), Tally(values=[(0.0, first)])
    ends = [sum(seconds for seconds, _ in phases[: n + 1]) for n in range(len(phases))]
    events: list[tuple[float, int, str, float]] = []
    allowed, in_flight, working, number = first, 0, 0, 0
    waiting: list[float] = []

    def push(at: float, what: str, begun: float) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (at, number, what, begun))

    def limit(now: float) -> int:
        place = next((n for n, end in enumerate(ends) if now < end), len(ends) - 1)
        return phases[place][1]

    def work(begun: float, now: float) -> None:
        nonlocal working
        working += 1
        push(now + ANSWER_SECONDS * chance.lognormvariate(-(spread**2) / 2, spread), "end", begun)

    def begin(now: float) -> None:
        if working < limit(now):
            work(now, now)
        elif queues:
            waiting.append(now)
        else:
            push(now + REFUSAL_SECONDS, "refuse", now)

    while in_flight < allowed:
        in_flight += 1
        begin(0.0)
    while events:
        now, _, what, begun = heapq.heappop(events)
        if now > ends[-1]:
            break
        if what in ("end", "refuse"):
            working -= what == "end"
            while waiting and working < limit(now):
                work(waiting.pop(0), now)
            push(now + TRIP_SECONDS, "heard" if what == "end" else "heard of refusal", begun)
            continue
        ok, took = what == "heard", now - TRIP_SECONDS - begun
        tally.served += ok
        tally.refused += not ok
        tally.seconds += took if ok else 0.0
        before = allowed
        allowed = ended(now, took, ok, in_flight)
        if allowed != before:
            tally.values.append((now, allowed))
        in_flight -= 1
        while in_flight < allowed:
            in_flight += 1
            begin(now)
    return tally


def best_fixed(phases: Sequence[Phase], *, queues: bool = False, spread: float = 0.3) -> Tally:
    """What the best value of each phase serves, had it been known."""
    whole = Tally()
    for phase in phases:
        value = phase[1]
        told = simulate([phase], lambda *_, value=value: value, value, queues=queues, spread=spread)
        whole.served += told.served
        whole.refused += told.refused
        whole.seconds += told.seconds
    return whole
