"""Looks when the next schedule that is a row is due, and has its job enqueued then."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.ports.queue import JobQueue, Topic

if TYPE_CHECKING:
    from penstock.engine.schedule_ticks import ScheduleTicks

LEAST_SECONDS, LONGEST_SECONDS = 0.05, 10.0
"""Between two looks. The longest, because clocks are set and wake-ups get lost."""


class ScheduleWatch:
    """A chore that never ends: it may be cancelled at any time, and called again after an error."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._ticks: ScheduleTicks | None = None

    async def __call__(self) -> None:
        listener = self._queue.listen(Topic.SCHEDULED)
        try:
            while True:
                pause = await self._look()
                if pause and await listener.wait(min(pause, LONGEST_SECONDS)):
                    # Where no topic can be told from another, there are very many wake-ups.
                    await asyncio.sleep(LEAST_SECONDS)
        finally:
            listener.close()

    async def _look(self) -> float:
        """Have enqueued what is due; how many seconds nothing will be."""
        now = self._queue.now()
        at = await self._queue.next_schedule(now)
        if at is None or at > now:
            return LONGEST_SECONDS if at is None else at - now
        if self._ticks is None:
            from penstock.engine.schedule_ticks import ScheduleTicks  # most queues have none

            self._ticks = ScheduleTicks(self._queue)
        return await self._ticks.enqueue_due()
