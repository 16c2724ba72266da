"""How much is queued: with too much of it, new work is put off rather than promised."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from penstock.model.job import JobState

if TYPE_CHECKING:
    from penstock.app import Penstock

LOOK_SECONDS = 1.0


class Depth:
    """Counts the queue once a second at most, and what it lets pass meanwhile."""

    def __init__(self, app: Penstock, most: int) -> None:
        self._app = app
        self.most = most
        self.queued = 0
        """As far as is known."""
        self._look_at = 0.0
        self._looking = asyncio.Lock()

    async def room(self) -> bool:
        """Whether there is room for one more, which then counts."""
        if time.monotonic() >= self._look_at:
            async with self._looking:
                if time.monotonic() >= self._look_at:
                    await self._look()
        if self.queued >= self.most:
            return False
        self.queued += 1
        return True

    async def _look(self) -> None:
        counts = await self._app.counts()
        self.queued = sum(one.states.get(JobState.QUEUED, 0) for one in counts)
        self._look_at = time.monotonic() + LOOK_SECONDS
