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

    def qsize(self) -> int:
        return len(self._waiting)

    def empty(self) -> bool:
        return not self._waiting

    def _put(self, item: Lease) -> None:
        entry = (time.monotonic(), item)
        if item.lane:  # its permit is for now
            self._waiting.appendleft(entry)
        else:
            self._waiting.append(entry)

    def _get(self) -> Lease:
        return self._waiting.popleft()[1]

    def waiting(self) -> list[Lease]:
        return [lease for _, lease in self._waiting]

    def oldest_age(self) -> float | None:
        """Seconds the first in line has waited; None when empty."""
        return time.monotonic() - self._waiting[0][0] if self._waiting else None

    def take_older(self, seconds: float) -> list[Lease]:
        """Remove and return the jobs that have waited that long."""
        before = time.monotonic() - seconds
        taken = []
        while self._waiting and self._waiting[0][0] <= before:
            taken.append(self.get_nowait())
        return taken
