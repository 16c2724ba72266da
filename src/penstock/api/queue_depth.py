"""Queue depth limits: beyond them new work is rejected."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.app import Penstock

LOOK_SECONDS = 1.0
SHARE = 4
"""A fifth of the time is spent on counting, at most, however large the queue is."""
REMEMBERED = 1000
"""Tenants whose jobs were counted; the newest."""
ALL = None
"""Instead of a tenant."""


@dataclass(slots=True)
class _Count:
    queued: int
    good_until: float


class Depth:
    """Counts the queue once a second at most, and what it lets pass meanwhile. A tenant's own jobs
    are counted only where it could have too many: where there are as many in all."""

    def __init__(self, app: Penstock, most: int, most_per_tenant: int | None = None) -> None:
        self._app = app
        self.most = most
        self._most_per_tenant = most if most_per_tenant is None else min(most, most_per_tenant)
        self._counts: OrderedDict[str | None, _Count] = OrderedDict()
        self._looking = asyncio.Lock()

    @property
    def queued(self) -> int:
        """As far as is known."""
        return self._counts[ALL].queued if ALL in self._counts else 0

    async def full(self, tenant: str) -> str | None:
        """Why there is no room for one more job of a tenant; None where there is, and then it
        counts."""
        together = await self._count(ALL)
        if together.queued >= self.most:
            return f"{together.queued:,} jobs are queued, and {self.most:,} is the limit"
        if together.queued >= self._most_per_tenant:
            own = await self._count(tenant)
            if own.queued >= self._most_per_tenant:
                limit = f"{self._most_per_tenant:,} is the limit of a tenant"
                return f"{own.queued:,} jobs of this tenant are queued, and {limit}"
            own.queued += 1
        together.queued += 1
        return None

    async def _count(self, tenant: str | None) -> _Count:
        if (known := self._known(tenant)) is not None:
            return known
        async with self._looking:
            if (known := self._known(tenant)) is not None:
                return known
            begun = time.monotonic()
            queued = await self._app.queue.queued(tenant)
            took = time.monotonic() - begun
            found = _Count(queued, time.monotonic() + max(LOOK_SECONDS, SHARE * took))
            self._counts[tenant] = found
            self._counts.move_to_end(tenant)
            while len(self._counts) > REMEMBERED:
                self._counts.popitem(last=False)
            return found

    def _known(self, tenant: str | None) -> _Count | None:
        known = self._counts.get(tenant)
        return known if known is not None and time.monotonic() < known.good_until else None
