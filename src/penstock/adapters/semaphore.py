"""A fair semaphore that knows how many wait for it."""

from __future__ import annotations

import asyncio
from typing import Literal


class CountingSemaphore(asyncio.Semaphore):
    """A semaphore that knows how many wait for it."""

    waiting = 0

    async def acquire(self) -> Literal[True]:
        self.waiting += 1
        try:
            return await super().acquire()
        finally:
            self.waiting -= 1
