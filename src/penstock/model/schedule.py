"""A schedule as it is shown: one that is a row, or one in the code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from penstock.model.job import PriorityName


@dataclass(slots=True, frozen=True)
class ScheduleInfo:
    """When jobs of a kind are enqueued by the clock."""

    name: str
    tenant: str
    kind: str
    payload: dict[str, Any]
    schedule: str
    """In words: `every 60 s`, or `0 3 * * * (Europe/Zurich)`."""
    cron: str | None
    """None: it goes by an interval, or is in the code."""
    every: float | None
    timezone: str
    priority: PriorityName
    overlap: bool
    """Whether a tick is enqueued although the job of the last one has not finished."""
    catch_up: float | None
    """A tick that nobody was there for is made up for so many seconds; None: as the code says."""
    paused: bool
    source: Literal["row", "code"]
    """`code`: it is an option of `@app.job`, and is changed there."""
    next_at: float | None
    """The next tick, in seconds since 1970; None: it is paused, or no process works on it."""
    last_at: float | None
    """The last tick that was enqueued."""
    last_job: str | None
    """Its job."""
    created_at: float | None
    changed_at: float | None
