"""Tracks whether the queue is reachable, and how long exchanges with it take."""

from __future__ import annotations

import logging

from penstock.errors import QueueError

log = logging.getLogger("penstock")

DEGRADED_AFTER = 3


class QueueHealth:
    """Kept by the dispatcher; for the status of the process."""

    def __init__(self) -> None:
        self.trips = 0
        self.trip_seconds = 0.0
        """What its trips to the queue took together."""
        self.failures = 0
        """In a row."""
        self.degraded: str | None = None
        """Why the queue cannot be reached, after three failures in a row."""

    def reached(self) -> None:
        if self.degraded is not None:
            log.warning("the queue is reachable again")
        self.failures, self.degraded = 0, None

    def failed(self, error: Exception) -> None:
        self.failures += 1
        if self.failures == 1 and not isinstance(error, QueueError):
            log.error("unexpected error talking to the queue", exc_info=error)
        if self.failures == DEGRADED_AFTER:
            ours = isinstance(error, QueueError)
            self.degraded = str(error) if ours else type(error).__name__
            log.error("the queue is unreachable, retrying: %s", self.degraded)
