"""A step: a named part of a job whose result is recorded once."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

STEP_RESULT_LIMIT = 1_048_576
"""Bytes of JSON."""
EVENT_LIMIT = 10_000
"""Events that one job emits, at most."""


StepKind = Literal["step", "wait", "receipt"]


@dataclass(slots=True, frozen=True)
class ReceiptDetails:
    """Figures of the call behind a receipt. None: it was not told."""

    model: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    """From the call to its answer, the wait for the permit included."""
    tokens_in: int | None = None
    tokens_out: int | None = None
    price: float | None = None
    """As the answer names it, in the currency of its service."""
    too_large: bool = False
    """Its answer was too large to be recorded, and is asked for again."""
    kept: str | None = None
    """Where its answer is kept, if not with the receipt: a rerun looks there, and asks again for
    what it does not find."""
    void: bool = False
    """Made in an attempt that failed: it is not taken any more."""


@dataclass(slots=True, frozen=True)
class Step:
    """A step, a wait or a receipt of a job as it is stored."""

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
    kind: StepKind = "step"
    receipt: ReceiptDetails | None = None
    """Of a receipt, which is named for its lane."""

    @property
    def recorded(self) -> bool:
        """Whether it has a result, so that it is not done again."""
        return self.finished_at is not None

    def as_dict(self) -> dict[str, Any]:
        """The step as JSON has it."""
        return asdict(self)


def step_key(name: str, arguments: str, occurrence: int) -> str:
    """What tells a step from all others of its job, the same in every run."""
    return short_hash("\x1f".join((name, arguments, str(occurrence))))


def short_hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
