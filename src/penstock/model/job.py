"""A job, its states and its priorities."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, Literal

from penstock.errors import DamagedRow, ValidationError, describe

PAYLOAD_LIMIT = 256 * 1024
RESULT_LIMIT = 1024 * 1024
RELEASE_LIMIT = 1000
HISTORY_LIMIT = 100
"""Past runs kept per job; older ones are dropped from the middle, the first is kept."""

DEFAULT_TIMEOUT = 60.0
DEFAULT_MAX_RETRIES = 3

TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
"""Names of tools; the jobs of a tool have it as their kind."""

PriorityName = Literal["high", "medium", "low"]


class JobState(StrEnum):
    """Where a job stands. `queued` also covers scheduled jobs and those waiting for a retry."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def finished(self) -> bool:
        return self in FINISHED


FINISHED = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


class Priority(IntEnum):
    """Lower runs first."""

    HIGH = 10
    MEDIUM = 50
    LOW = 90

    @classmethod
    def parse(cls, value: str | int | Priority) -> Priority:
        """The priority called `value` ("high", "medium", "low", or 10, 50, 90)."""
        try:
            return cls[value.upper()] if isinstance(value, str) else cls(value)
        except (KeyError, ValueError):
            raise ValidationError(f"priority must be high, medium or low, not {value!r}") from None


class Record(dict[str, Any]):
    """A dict whose entries can also be read as attributes: `error["type"]` is `error.type`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def parse_history(text: str) -> list[Record]:
    """The stored history of a job."""
    if text == "[]":
        return []
    try:
        records = [Record(record) for record in json.loads(text)]
    except (ValueError, TypeError):
        error = Record(describe(DamagedRow(), retryable=False))
        return [Record(attempt=None, outcome="failed", finished_at=0.0, error=error)]
    for record in records:
        if record.get("error"):
            record["error"] = Record(record["error"])
    return records


@dataclass(slots=True)
class Job:
    """One durable unit of work, as it stood when it was read. Times are seconds since 1970.

    A snapshot: changing it changes nothing. (Not frozen: that makes it three times slower to
    create, and batches create many.)
    """

    id: str
    kind: str
    payload: dict[str, Any]
    state: JobState
    tenant: str = "default"
    priority: Priority = Priority.MEDIUM
    lane: str | None = None
    key: str | None = None
    debounce_key: str | None = None
    """Under which enqueueing again replaces its payload, until it is claimed."""
    log: str | None = None
    parent_id: str | None = None
    rerun_of: str | None = None
    """The job that it repeats, of which nothing but this is known here."""
    enqueued_at: float = 0.0
    run_at: float = 0.0
    started_at: float | None = None
    finished_at: float | None = None
    deadline: float | None = None
    timeout: float | None = None
    """Seconds one run may take; None until a process that knows the kind has seen the job."""
    max_retries: int | None = None
    attempts: int = 0
    """Runs started since the job was enqueued or redriven, the present one included."""
    releases: int = 0
    """How often it was put back without spending an attempt."""
    progress: float = 0.0
    """From 0 to 1."""
    message: str = ""
    result: Any = None
    error: Record | None = None
    """What ended it, or its last run if it waits for the next one. None while it runs: what ended
    earlier runs is in its history."""
    history: list[Record] = field(default_factory=list)
    """A record per run that did not complete, and per redrive: attempt, outcome (retry, failed,
    lost, released, handed back, redriven), started_at, finished_at, process, error, traceback."""
    lines: list[Record] = field(default_factory=list)
    """What its handler has logged with `ctx.log`, the last 64 KiB: at, attempt, level, message."""
    waiting_for: str | None = None
    """For a queued job: what it waits for, in words."""

    def as_dict(self) -> dict[str, Any]:
        """Its fields, with the priority by name; what `--json` prints."""
        known = {name: getattr(self, name) for name in self.__slots__}
        return known | {"priority": self.priority.name.lower()}
