"""Caches figures of the whole queue for concurrent callers."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from penstock.api.attention import QueueOutlook, look

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.ports.operators import KindCounts

LOOK_SECONDS = 1.0
SHARE = 4
"""Counting reads every job: on a large queue it may take at most a fifth of the time."""
REMEMBERED = 1000
"""Maximum tenants whose counts are cached; the most recent ones."""


class QueueCache:
    def __init__(self, app: Penstock) -> None:
        self._app = app
        self._lock = asyncio.Lock()
        self.forecasting = asyncio.Lock()
        """Forecasts read every job, and are not cached: they are made one at a time."""
        self._outlook: tuple[float, QueueOutlook] | None = None
        self._counts: OrderedDict[str, tuple[float, list[KindCounts]]] = OrderedDict()

    async def outlook(self) -> QueueOutlook:
        """Return the queue as operators see it, at most a second old unless it is large."""
        async with self._lock:
            begun = time.monotonic()
            if self._outlook is None or self._outlook[0] < begun:
                seen = await look(self._app.queue, self._app.queue.now())
                self._outlook = _good_until(begun), seen
            return self._outlook[1]

    async def counts(self, tenant: str) -> list[KindCounts]:
        """Return the jobs of a tenant, likewise."""
        async with self._lock:
            begun = time.monotonic()
            known = self._counts.get(tenant)
            if known is None or known[0] < begun:
                found = await self._app.counts(tenant)
                known = self._counts[tenant] = _good_until(begun), found
                self._counts.move_to_end(tenant)
                if len(self._counts) > REMEMBERED:
                    self._counts.popitem(last=False)
            return known[1]


def _good_until(begun: float) -> float:
    now = time.monotonic()
    return now + max(LOOK_SECONDS, SHARE * (now - begun))
