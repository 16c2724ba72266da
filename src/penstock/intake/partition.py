"""Processes the messages of one partition in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from penstock.intake.record import MessageRecord

Receive = Callable[[MessageRecord, asyncio.Event], Awaitable[None]]
"""Returns once a message need not be read again. The event says that its line ends."""
FULL = 32
"""Messages that wait, at which a line takes no more."""
LOW = 8
"""At which it does again."""


class Left(Exception):
    """A message was not begun, and its line ends: it is for whoever reads the partition next."""


class MessageLine:
    """Takes messages in order, each once the one before is done with, up to the offset `end`."""

    def __init__(self, receive: Receive, end: int | None = None) -> None:
        self._receive = receive
        self._end = end
        self._waiting: deque[MessageRecord] = deque()
        self._arrived = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()
        self._ending = asyncio.Event()
        self.paused = False
        self.at_end = False
        """Of the partition, as far as Kafka has told, or of what is to be read of it."""
        self.done: int | None = None
        """The offset after the last message that need not be read again."""
        self._task = asyncio.create_task(self._work(), name="penstock-intake-line")

    def add(self, record: MessageRecord) -> None:
        self.at_end = self._end is not None and record.offset + 1 >= self._end
        if self._end is None or record.offset < self._end:
            self._waiting.append(record)
            self._arrived.set()
            if len(self._waiting) >= FULL:
                self.room.clear()

    @property
    def idle(self) -> bool:
        return not self._waiting

    def check(self) -> None:
        """Raises what has ended it."""
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def _work(self) -> None:
        while not self._ending.is_set():
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            record = self._waiting[0]
            try:
                await self._receive(record, self._ending)
            except Left:
                return
            self._waiting.popleft()
            self.done = record.offset + 1
            if len(self._waiting) <= LOW:
                self.room.set()

    async def end(self, grace: float) -> None:
        """Let the message under way be stored, for so many seconds; those that wait are left for
        whoever reads the partition next."""
        self._ending.set()
        self._arrived.set()
        await asyncio.wait([self._task], timeout=grace)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)  # `check` tells of them
