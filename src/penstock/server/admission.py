"""Rejects new work when too much is queued."""

from __future__ import annotations

from penstock.api.queue_depth import Depth
from penstock.server.problems import busy

FULL_SECONDS = 5.0
"""Retry-After for rejected callers."""


class Admission(Depth):
    """See `Depth`; rejects callers if there is no room."""

    async def check(self, tenant: str) -> None:
        """Raise a Problem (503) if the queue, or the tenant's share of it, is full. Counts one
        more."""
        if (why := await self.full(tenant)) is not None:
            raise busy("queue-full", why, FULL_SECONDS)
