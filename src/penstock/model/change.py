"""The ordered log of something watched, such as a research task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, frozen=True)
class Change:
    """One entry of a log. Versions of one log count 1, 2, 3 ... without a gap."""

    log: str
    version: int
    at: float
    what: str
    """Of a job: queued, progress, retry, released, completed, failed, cancelled, redriven or
    discarded. Of the log: stopped, resumed, or whatever was noted."""
    job_id: str
    """Empty in an entry that tells of no job."""
    data: dict[str, Any]
