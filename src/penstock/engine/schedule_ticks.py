"""Enqueues the jobs of schedules that are rows, one for each tick.

Every worker process tries, whatever kinds it handles. The job is stored and its row moved on in one
transaction, which fails for all but the first.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from penstock import runtime
from penstock.engine.schedule import Schedule, newest, schedule_of
from penstock.errors import ConfigError, KeyConflict, ScheduleChanged
from penstock.model.ids import new_id
from penstock.model.job import Priority
from penstock.model.tick import schedule_tick_id, schedule_tick_key
from penstock.ports.queue import UNKNOWN_LANE, JobQueue, NewJob, NewJobs
from penstock.ports.schedules import ScheduleRow, ScheduleTick

log = logging.getLogger("penstock")

MOST = 200
"""Rows in one look."""
TOGETHER = 20
"""Ticks that are enqueued at a time; a queue may store them in one commit."""
PAUSE_SECONDS = 1.0
"""Before the next look if nothing that is due can be enqueued here."""


class ScheduleTicks:
    """The due ticks, as this process enqueues them."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._refused: set[str] = set()
        """Revisions of rows whose ticks cannot be computed here."""

    async def enqueue_due(self) -> float:
        """Enqueue what is due, or some of it; how many seconds to wait before the next look."""
        found = await self._queue.schedules.due(self._queue.now(), MOST + len(self._refused))
        rows = [row for row in found if row.revision not in self._refused]
        # Other processes have found the same: who begins elsewhere seldom comes too late.
        rows.sort(key=lambda _: runtime.uniform(0.0, 1.0))
        for first in range(0, len(rows), TOGETHER):
            async with asyncio.TaskGroup() as group:
                for row in rows[first : first + TOGETHER]:
                    group.create_task(self._enqueue(row))
        return 0.0 if rows else PAUSE_SECONDS

    async def _enqueue(self, row: ScheduleRow) -> None:
        now = self._queue.now()
        try:
            schedule = schedule_of(row.name, row.every_seconds, row.cron, row.timezone)
            next_at = schedule.after(now)
        except ConfigError as error:
            log.error("no tick of schedule %r can be enqueued here: %s", row.name, error)
            self._refused.add(row.revision)
            return
        moved = replace(row, next_at=next_at, counted_at=now, revision=new_id())
        tick = due_tick(row, schedule, now)
        if tick is None or await self._goes_on(row):
            await self._queue.schedules.put(moved, row.revision)
            return
        job_id = schedule_tick_id(row.tenant, row.name, tick)
        key = schedule_tick_key(row.name, tick)
        # Whoever claims it knows its lane, its timeout and its retries.
        job = NewJob(job_id, row.payload, key, UNKNOWN_LANE)
        batch = NewJobs(
            row.kind,
            [job],
            tenant=row.tenant,
            priority=Priority(row.priority),
            tick=ScheduleTick(replace(moved, last_at=tick, last_job=job_id), row.revision),
        )
        try:
            await self._queue.enqueue(batch)
        except ScheduleChanged:
            log.debug("a tick of schedule %r was enqueued by another process", row.name)
        except KeyConflict as error:
            # It has a job of another payload, from before the clock was set back or the schedule
            # was changed; or somebody gave its key to a job of their own.
            log.warning("skipped a tick of schedule %r: %s", row.name, error)
            await self._queue.schedules.put(moved, row.revision)

    async def _goes_on(self, row: ScheduleRow) -> bool:
        """Whether the job of an earlier tick is unfinished, and a tick is to be skipped for it."""
        if row.overlap or row.last_job is None:
            return False
        return not await self._queue.finished([row.last_job])


def due_tick(row: ScheduleRow, schedule: Schedule, now: float) -> float | None:
    """The tick to enqueue: the newest that has not been looked at, unless it is too late for it.
    None also if the row was counted while the clock was ahead."""
    if row.next_at is None or row.next_at > now:
        return None
    oldest = now - row.catch_up
    newer = newest(schedule, max(row.next_at, oldest), now)
    if newer is not None:
        return newer
    return row.next_at if row.next_at >= oldest else None
