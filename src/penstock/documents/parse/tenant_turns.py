"""Schedules the parsers: tenants in turn, and for each tenant first come, first served.

So who brings many documents, or slow ones, waits for itself, and others for one of its documents
at most. A tenant whose turn has come goes to the end of the round; one that has nothing left to do
leaves it, and is last again when it comes back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

Waiting = Callable[[], AbstractAsyncContextManager[object]]
"""What is around the time that is spent waiting; not entered by who need not wait."""


class Turns:
    """At most `size` at a time."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}
        """Who waits, by tenant, in the order of the round; never an empty one."""

    @property
    def waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    @asynccontextmanager
    async def turn(self, tenant: str, waiting: Waiting = nullcontext) -> AsyncIterator[None]:
        """Have a turn inside. It is given back however that ends, and also when the wait for it,
        or what is around that wait, is cut short just as it was given."""
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
        """Give a turn that has ended to who is first in the round."""
        if not self._lines:
            self._free += 1
            return
        tenant = next(iter(self._lines))
        line = self._lines.pop(tenant)
        line.popleft().set_result(None)
        if line:
            self._lines[tenant] = line
