"""The ordered log of something watched, such as a research task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, frozen=True)
class Change:
    """One entry of a task's log. Versions of one log count 1, 2, 3 ... without a gap."""

    task: str
    version: int
    at: float
    what: str
    """queued, progress, retry, released, completed, failed, cancelled, redriven or discarded"""
    job_id: str
    data: dict[str, Any]
