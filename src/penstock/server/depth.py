"""With too much queued, new work is refused rather than promised."""

from __future__ import annotations

from penstock.depth import Depth
from penstock.server.problems import busy

FULL_SECONDS = 5.0
"""What a caller is told to wait."""


class Door(Depth):
    """See `Depth`; whoever finds no room is told so."""

    async def check(self) -> None:
        """A Problem (503) where the queue is full. Counts one more."""
        if not await self.room():
            raise busy(
                "queue-full",
                f"{self.queued:,} jobs are queued, and {self.most:,} is the limit",
                FULL_SECONDS,
            )
