"""A step: a named part of a job whose result is recorded once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

STEP_RESULT_LIMIT = 1_048_576
"""Bytes of JSON."""
EVENT_LIMIT = 10_000
"""Events that one job emits, at most."""


@dataclass(slots=True, frozen=True)
class Step:
    """A step of a job as it is stored."""

    name: str
    occurrence: int
    """Which call of this name with these arguments it was in its run: 1, 2 ..."""
    arguments: str
    """A hash of the arguments."""
    attempts: int
    """How often its function was called, over all runs of the job."""
    version: str
    """The version of the handler that made the record; empty where it declares none."""
    lane: str | None
    started_at: float
    """When its function was last called."""
    finished_at: float | None
    """When its result was recorded; None: it has none yet."""
    result: Any = None

    @property
    def recorded(self) -> bool:
        """Whether it has a result, so that it is not done again."""
        return self.finished_at is not None

    def as_dict(self) -> dict[str, Any]:
        """The step as JSON has it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def step_key(name: str, arguments: str, occurrence: int) -> str:
    """What tells a step from all others of its job, the same in every run."""
    return short_hash("\x1f".join((name, arguments, str(occurrence))))


def short_hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
