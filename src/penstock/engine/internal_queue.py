"""The bounded queue between the dispatcher and the workers of a process."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from penstock.ports.queue import Lease


class InternalQueue(asyncio.Queue[Lease]):
    """An asyncio.Queue that knows how long its jobs have waited."""

    def _init(self, maxsize: int) -> None:
        self._waiting: deque[tuple[float, Lease]] = deque()
        self._in_lanes: deque[tuple[float, Lease]] = deque()
        """These go first: their permits are for now."""

    def qsize(self) -> int:
        return len(self._waiting) + len(self._in_lanes)

    def empty(self) -> bool:
        return not self._waiting and not self._in_lanes

    def _put(self, item: Lease) -> None:
        (self._in_lanes if item.lane else self._waiting).append((time.monotonic(), item))

    def _get(self) -> Lease:
        return (self._in_lanes or self._waiting).popleft()[1]

    def waiting(self) -> list[Lease]:
        return [lease for _, lease in (*self._in_lanes, *self._waiting)]

    def oldest_age(self) -> float | None:
        """Seconds the job that came first has waited; None when empty."""
        heads = [waiting[0][0] for waiting in (self._in_lanes, self._waiting) if waiting]
        return time.monotonic() - min(heads) if heads else None

    def take_older(self, seconds: float) -> list[Lease]:
        """Remove and return the jobs that have waited that long."""
        before = time.monotonic() - seconds
        taken = []
        for waiting in (self._in_lanes, self._waiting):
            while waiting and waiting[0][0] <= before:
                taken.append(waiting.popleft()[1])
                self._wakeup_next(self._putters)  # type: ignore[attr-defined]
        return taken
