"""The bounded queue between the dispatcher and the workers of a process."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from penstock import runtime
from penstock.ports.queue import Lease

Place = asyncio.Future[None]
"""A worker's place that a job wants which has waited for others; done when it has it."""


class InternalQueue(asyncio.Queue[Lease | Place]):
    """An asyncio.Queue that knows how long its jobs have waited. Jobs that come back from waiting
    for others are served first, and do not count: they have been claimed long since."""

    def _init(self, maxsize: int) -> None:
        self._waiting: deque[tuple[float, Lease]] = deque()
        self._in_lanes: deque[tuple[float, Lease]] = deque()
        """These go before others: their permits are for now."""
        self._coming_back: deque[Place] = deque()

    def qsize(self) -> int:
        return len(self._waiting) + len(self._in_lanes)

    def empty(self) -> bool:
        return not (self._waiting or self._in_lanes or self._coming_back)

    @property
    def coming_back(self) -> int:
        """How many jobs wait for a worker's place."""
        return len(self._coming_back)

    def come_back(self) -> Place:
        """Ask for the place of the next worker that is free."""
        place: Place = asyncio.get_running_loop().create_future()
        self._coming_back.append(place)
        self._wakeup_next(self._getters)  # type: ignore[attr-defined]
        return place

    def withdraw(self, place: Place) -> None:
        """The place is not wanted any more."""
        self._coming_back.remove(place)

    def _put(self, item: Any) -> None:  # a lease: places are asked for by `come_back`
        (self._in_lanes if item.lane else self._waiting).append((runtime.monotonic(), item))

    def _get(self) -> Lease | Place:
        if self._coming_back:
            return self._coming_back.popleft()
        return (self._in_lanes or self._waiting).popleft()[1]

    def waiting(self) -> list[Lease]:
        return [lease for _, lease in (*self._in_lanes, *self._waiting)]

    def oldest_age(self) -> float | None:
        """Seconds the job that came first has waited; None when empty."""
        heads = [waiting[0][0] for waiting in (self._in_lanes, self._waiting) if waiting]
        return runtime.monotonic() - min(heads) if heads else None

    def take_older(self, seconds: float) -> list[Lease]:
        """Remove and return the jobs that have waited that long."""
        before = runtime.monotonic() - seconds
        taken = []
        for waiting in (self._in_lanes, self._waiting):
            while waiting and waiting[0][0] <= before:
                taken.append(waiting.popleft()[1])
                self._wakeup_next(self._putters)  # type: ignore[attr-defined]
        return taken
