"""Listeners for wake-ups, the same for every queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from penstock.ports.queue import Topic


class Listener:
    """See `penstock.ports.queue.Wakeup`."""

    __slots__ = ("_event", "_listeners")

    def __init__(self, listeners: set[Listener]) -> None:
        self._event = asyncio.Event()
        self._listeners = listeners
        listeners.add(self)

    def ring(self) -> None:
        self._event.set()

    async def wait(self, timeout: float | None) -> bool:
        if not self._event.is_set():
            try:
                async with asyncio.timeout(timeout):
                    await self._event.wait()
            except TimeoutError:
                return False
        self._event.clear()
        return True

    def close(self) -> None:
        self._listeners.discard(self)


class Listeners:
    """The listeners of this process, by topic."""

    def __init__(self) -> None:
        self._listeners: dict[Topic, set[Listener]] = {topic: set() for topic in Topic}

    def listen(self, topic: Topic) -> Listener:
        return Listener(self._listeners[topic])

    def ring(self, topics: Iterable[Topic]) -> None:
        """Wake who listens in this process."""
        for topic in topics:
            for listener in self._listeners[topic]:
                listener.ring()
