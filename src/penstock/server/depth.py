"""How much is queued: with too much of it, new work is refused rather than promised."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from penstock.model.job import JobState
from penstock.server.problems import busy

if TYPE_CHECKING:
    from penstock.app import Penstock

LOOK_SECONDS = 1.0
FULL_SECONDS = 5.0
"""What a caller is told to wait."""


class Depth:
    """Counts the queue once a second at most, and what it lets pass meanwhile."""

    def __init__(self, app: Penstock, most: int) -> None:
        self._app = app
        self._most = most
        self._queued = 0
        self._look_at = 0.0
        self._looking = asyncio.Lock()

    async def check(self) -> None:
        """A Problem (503) where the queue is full. Counts one more."""
        if time.monotonic() >= self._look_at:
            async with self._looking:
                if time.monotonic() >= self._look_at:
                    await self._look()
        if self._queued >= self._most:
            raise busy(
                "queue-full",
                f"{self._queued:,} jobs are queued, and {self._most:,} is the limit",
                FULL_SECONDS,
            )
        self._queued += 1

    async def _look(self) -> None:
        counts = await self._app.counts()
        self._queued = sum(one.states.get(JobState.QUEUED, 0) for one in counts)
        self._look_at = time.monotonic() + LOOK_SECONDS
