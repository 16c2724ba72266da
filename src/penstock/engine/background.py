"""Services: what a worker process does in the background, each with the same `start` and `stop`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from penstock.aio import end_tasks
from penstock.errors import QueueError, StoreUnavailable

log = logging.getLogger("penstock")


class Service:
    """A task that runs from `start` to `stop`."""

    name = ""
    task: asyncio.Task[None] | None = None
    """Made by `start`."""

    def start(self) -> None:
        self.task = asyncio.create_task(self.run(), name=f"penstock-{self.name}")

    async def stop(self) -> None:
        """End the task; harmless if it was never started."""
        if self.task is not None:
            await end_tasks([self.task])

    async def run(self) -> None:
        """The service itself. It ends by being cancelled, at any await."""
        raise NotImplementedError


class Repeated(Service):
    """Does the same thing over and over, with a pause of some seconds. While the queue cannot be
    reached it has to wait; other errors are logged. Neither ends it."""

    def __init__(self, name: str, do: Callable[[], Awaitable[None]], pause: float) -> None:
        self.name = name
        self._do = do
        self._pause = pause

    async def run(self) -> None:
        while True:
            try:
                await self._do()
            except* (QueueError, StoreUnavailable) as errors:
                log.debug("%s postponed: %s", self.name, errors.exceptions)
            except* Exception:
                log.exception("unexpected error in %s", self.name)
            await asyncio.sleep(self._pause)
