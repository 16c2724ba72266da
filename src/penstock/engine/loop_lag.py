"""How late the event loop is: what every handler that does not suspend costs all others."""

from __future__ import annotations

import asyncio
import time
from collections import deque

RECENT = 20
"""Sleeps that are remembered: 10 seconds of them, at half a second each."""


class LoopLag:
    def __init__(self) -> None:
        self._late: deque[float] = deque([0.0], maxlen=RECENT)

    @property
    def longest(self) -> float:
        """Seconds that the event loop was late, at most, of late."""
        return round(max(self._late.copy()), 4)  # the copy, because another thread may ask

    async def sleep(self, seconds: float) -> None:
        """Sleep, and notice how much longer it took."""
        due = time.monotonic() + seconds
        await asyncio.sleep(seconds)
        self._late.append(max(0.0, time.monotonic() - due))
