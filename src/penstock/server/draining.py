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
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def begun(self) -> bool:
        return self._begun.done()

    def begin(self) -> None:
        if not self._begun.done():
            self._begun.set_result(None)

    async def first(self, task: asyncio.Task[Any], timeout: float | None = None) -> bool:
        """Whether `task` is done before the server is told to stop, and in time. It goes on
        otherwise."""
        await asyncio.wait(
            [task, self._begun], timeout=timeout, return_when=asyncio.FIRST_COMPLETED
        )
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
