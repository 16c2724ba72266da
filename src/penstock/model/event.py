"""An entry of a job's events: what its followers are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

EventKind = Literal["emitted", "step", "receipt", "progress", "end"]


@dataclass(slots=True, frozen=True)
class JobEvent:
    """Something that has happened in a job.

    `kind` says what `data` has: what the handler gave to `ctx.emit` ("emitted"); name, occurrence,
    lane, attempts and seconds of a step or wait that was recorded ("step"), or of a call that left
    a receipt ("receipt"); fraction and message ("progress"); state, result and error ("end").
    """

    position: int
    """Where it stands among the events of the job: follow on after it."""
    kind: EventKind
    at: float
    """When, in seconds since 1970."""
    data: Any

    def as_dict(self) -> dict[str, Any]:
        """The event as JSON has it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
