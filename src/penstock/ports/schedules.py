"""The port to schedules that are rows: made and changed while everything runs.

A row says when its next tick is due. Whoever stores the job of that tick moves the row on in the
same transaction (`NewJobs.tick`), and only from the revision it has seen: so a tick makes one job,
whoever tries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

AHEAD_SECONDS = 1.0
"""A clock that was ahead by less was only read more exactly."""


@dataclass(slots=True, frozen=True)
class ScheduleRow:
    """A schedule as it is stored."""

    tenant: str
    name: str
    kind: str
    payload: str
    """JSON text."""
    cron: str | None
    every_seconds: float | None
    timezone: str
    priority: int
    overlap: bool
    catch_up: float
    next_at: float | None
    """The next tick that has not been looked at; None: it is paused."""
    counted_at: float | None
    """What the queue's clock said when that was computed."""
    last_at: float | None
    """The last tick that was enqueued."""
    last_job: str | None
    created_at: float
    changed_at: float
    revision: str
    """Another, which nobody can guess, after each change and each tick."""


class ScheduleTick(NamedTuple):
    """A tick, stored with its job."""

    row: ScheduleRow
    """As it is from then on."""
    was: str
    """The revision that it has until then."""


class ScheduleStore(Protocol):
    """Schedules that are rows."""

    async def get(self, tenant: str, name: str) -> ScheduleRow | None: ...

    async def page(
        self, tenant: str | None, after: tuple[str, str] | None, limit: int
    ) -> list[ScheduleRow]:
        """Those of a tenant or of all, by tenant and name; `after` is the last of the page
        before."""
        ...

    async def due(self, now: float, limit: int) -> list[ScheduleRow]:
        """Those whose tick has come, and those that were counted while the clock was ahead. By an
        index."""
        ...

    async def put(self, row: ScheduleRow, was: str | None) -> bool:
        """Store a row in place of the one with the revision `was`, or a new one, and wake whoever
        listens for SCHEDULED; False, and nothing is done, if that is not what is there."""
        ...

    async def remove(self, tenant: str, name: str) -> bool:
        """Delete a row; False: there is none."""
        ...
