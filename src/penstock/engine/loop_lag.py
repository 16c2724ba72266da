"""Measures event-loop lag, caused by handlers that block."""

from __future__ import annotations

import asyncio
from collections import deque

from penstock import runtime
from penstock.engine.background import Service

PAUSE = 0.25
"""Between two looks; what blocks the loop for less is seen in part."""
RECENT = 40
"""Looks that are remembered: 10 seconds of them."""


class LoopLag(Service):
    """Looks four times a second how late the event loop is."""

    name = "lag"

    def __init__(self) -> None:
        self._late: deque[float] = deque([0.0], maxlen=RECENT)
        self.turns = 0
        """Looks that were made: while the event loop is blocked there are none."""

    @property
    def longest(self) -> float:
        """Seconds that the event loop was late, at most, of late."""
        return round(max(self._late.copy()), 4)  # the copy, because another thread may ask

    async def run(self) -> None:
        while True:
            due = runtime.monotonic() + PAUSE
            await asyncio.sleep(PAUSE)
            self.turns += 1
            self._late.append(max(0.0, runtime.monotonic() - due))
