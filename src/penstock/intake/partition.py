"""Processes the messages of one partition in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from penstock.intake.record import MessageRecord

Receive = Callable[[MessageRecord, asyncio.Event], Awaitable[None]]
"""Processes a message; returns once it need not be read again. The event is set when its line
ends."""
FULL = 32
"""Waiting messages at which a line is full."""
LOW = 8
"""Waiting messages at which a full line has room again."""


class Left(Exception):
    """A message was not started before its line ended: the next reader of the partition gets it."""


class MessageLine:
    """Processes messages in order, one at a time, up to the offset `end`."""

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
        """Whether the end was reached: of the partition, as far as Kafka has reported, or of a
        drain."""
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
        """Raise the exception that ended the line, if any."""
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
        """End the line: let the message in progress be stored within `grace` seconds, and leave the
        waiting ones to the next reader of the partition."""
        self._ending.set()
        self._arrived.set()
        await asyncio.wait([self._task], timeout=grace)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)  # `check` tells of them
