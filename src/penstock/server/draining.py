"""When the server is told to stop, whoever waits is answered at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from penstock.tasks import end_tasks

T = TypeVar("T")


class Draining:
    """Set once, by the first signal."""

    def __init__(self) -> None:
        self.begun = False
        # One for each that waits: callbacks of one future that thousands share are a list, and
        # to take one out of it goes through all.
        self._waiting: set[asyncio.Future[None]] = set()

    def begin(self) -> None:
        self.begun = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def first(self, task: asyncio.Task[Any], timeout: float | None = None) -> bool:
        """Whether `task` is done before the server is told to stop, and in time. It goes on
        otherwise."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.begun:
            told.set_result(None)
        self._waiting.add(told)
        try:
            await asyncio.wait([task, told], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.discard(told)
        return task.done()

    async def unless(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What `work` gives; None when the server is told to stop before that, and `work` is
        then cancelled: only waits go in here."""
        task = asyncio.create_task(work)
        try:
            return task.result() if await self.first(task) else None
        finally:
            if not task.done():
                await end_tasks([task])
