"""Rejects new work when too much is queued."""

from __future__ import annotations

from penstock.api.queue_depth import Depth
from penstock.server.problems import busy

FULL_SECONDS = 5.0
"""What a caller is told to wait."""


class Admission(Depth):
    """See `Depth`; whoever finds no room is told so."""

    async def check(self, tenant: str) -> None:
        """A Problem (503) where the queue is full, or the tenant's share of it. Counts one more."""
        if (why := await self.full(tenant)) is not None:
            raise busy("queue-full", why, FULL_SECONDS)
