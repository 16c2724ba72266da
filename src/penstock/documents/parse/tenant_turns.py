"""Schedules the parsers: tenants in turn, and for each tenant first come, first served.

So a tenant with many or slow documents delays itself, and others by one of its documents at most.
After its turn a tenant moves to the end of the round; one without work leaves the round, and joins
at the end again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

Waiting = Callable[[], AbstractAsyncContextManager[object]]
"""Context manager around the time spent waiting; not entered without a wait."""


class Turns:
    """Grants at most `size` turns at a time."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}
        """Waiting callers by tenant, in the order of the round; never empty."""

    @property
    def waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    @asynccontextmanager
    async def turn(self, tenant: str, waiting: Waiting = nullcontext) -> AsyncIterator[None]:
        """Hold a turn inside the block. It is returned however the block ends, even if the wait is
        cancelled just as it is granted."""
        place = self._ask(tenant)
        try:
            if not place.done():
                async with waiting():
                    await place
            yield
        finally:
            self._leave(tenant, place)

    def _ask(self, tenant: str) -> asyncio.Future[None]:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._free:  # then nobody waits
            self._free -= 1
            place.set_result(None)
        else:
            self._lines.setdefault(tenant, deque()).append(place)
        return place

    def _leave(self, tenant: str, place: asyncio.Future[None]) -> None:
        line = self._lines.get(tenant)
        if line is not None and place in line:  # it never had its turn
            line.remove(place)
            if not line:
                del self._lines[tenant]
        else:
            self._next()

    def _next(self) -> None:
        """Pass a finished turn to the first in the round."""
        if not self._lines:
            self._free += 1
            return
        tenant = next(iter(self._lines))
        line = self._lines.pop(tenant)
        line.popleft().set_result(None)
        if line:
            self._lines[tenant] = line
