"""Every error Penstock raises on purpose.

PenstockError
├── ConfigError                 a setting is missing or wrong
├── QueueError
│   ├── QueueUnavailable        cannot be reached now; nothing was stored; try again
│   └── QueueUnusable           corrupt, not ours, or made by a newer Penstock; a person must act
├── JobNotFound
├── KeyConflict                 same idempotency key, another payload
├── WaitTimeout
├── RunLater                    raised by a handler: run me later, this run does not count
├── JobTimeout                  a run took longer than the job's timeout; retried
└── PermanentError              never retried
    ├── ValidationError         the payload does not fit the handler, or is not JSON
    │   └── PayloadTooLarge
    ├── ResultTooLarge
    ├── ParserError
    ├── AuthenticationError
    ├── DeadlineExceeded        the job's absolute deadline has passed
    └── ReleasedTooOften        asked to be run later more often than allowed
"""

from __future__ import annotations

from typing import Any


class PenstockError(Exception):
    """Base of all errors of this package."""


class ConfigError(PenstockError):
    """A setting is missing or wrong; the message names it and says what to do."""


class QueueError(PenstockError):
    """The queue could not do what was asked."""


class QueueUnavailable(QueueError):
    """The queue cannot be reached or written now. Nothing was stored; try again later."""


class QueueUnusable(QueueError):
    """The queue is corrupt, not a Penstock queue, or made by a newer Penstock."""


class JobNotFound(PenstockError):
    """No job with that id (or not for this tenant)."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"no job with id {job_id!r}")
        self.job_id = job_id


class KeyConflict(PenstockError):
    """The idempotency key is already used for a job with another payload."""

    def __init__(self, key: str, job_id: str) -> None:
        super().__init__(
            f"key {key!r} already belongs to job {job_id} with another payload; "
            "use another key, or the same payload"
        )
        self.key = key
        self.job_id = job_id


class WaitTimeout(PenstockError, TimeoutError):
    """The job was not finished within the time given to wait; it goes on."""


class RunLater(PenstockError):
    """Raise in a handler to be run again after `delay` seconds without spending an attempt."""

    def __init__(self, delay: float = 1.0, reason: str = "") -> None:
        if not 0 <= delay <= 366 * 86400:
            raise ValueError(f"delay must be between 0 s and a year, not {delay!r}")
        super().__init__(reason or f"run again in {delay:g} s")
        self.delay = float(delay)
        self.reason = reason


class Unavailable(PenstockError):
    """Raise when a dependency cannot be reached, times out or answers 5xx.

    If others find the same, it is an outage of the lane and the job has spent no attempt.
    """

    lane: str | None = None
    """Where it happened; set by the permit it happened under."""
    address: str | None = None
    """host:port of what could not be reached, for the probe."""
    status: int | None = None
    """The HTTP status, if there was an answer."""


class RateLimited(Unavailable):
    """Raise when a dependency answers 429: the whole lane pauses for `retry_after` seconds."""

    def __init__(self, message: str = "rate limited", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LaneBusy(PenstockError):
    """A lane will not give a permit soon. Let it pass: the engine runs the job again when the
    lane has room, and counts no attempt."""

    def __init__(self, lane: str, until: float, why: str) -> None:
        super().__init__(f"lane {lane} is busy: {why}")
        self.lane = lane
        self.until = until


class JobTimeout(PenstockError, TimeoutError):
    """One run of a job took longer than its timeout."""


class PermanentError(PenstockError):
    """Trying again cannot help: the job becomes a dead letter at once.

    Any exception with a class attribute `retryable = False` is treated the same way.
    """

    retryable = False


class ValidationError(PermanentError, ValueError):
    """The payload does not fit the handler's signature, or is not JSON."""


class PayloadTooLarge(ValidationError):
    """The payload is over the limit; store the data elsewhere and enqueue a reference."""


class ResultTooLarge(PermanentError):
    """The handler's result is over the limit; store it elsewhere and return a reference."""


class ParserError(PermanentError):
    """A document cannot be parsed."""


class AuthenticationError(PermanentError):
    """Credentials were refused. Three in a row block the lane, so that nothing dies of it."""

    lane: str | None = None


class HttpError(PermanentError):
    """An HTTP answer that trying again does not change: 4xx, a body too large, a bad URL."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class DeadlineExceeded(PermanentError, TimeoutError):
    """The job's absolute deadline has passed."""


class ReleasedTooOften(PermanentError):
    """The job asked to be run later more often than allowed."""


def is_permanent(error: BaseException, permanent: tuple[type[BaseException], ...] = ()) -> bool:
    """Whether retrying after `error` is pointless: marked so by its class or by the handler."""
    return getattr(error, "retryable", True) is False or isinstance(error, permanent)


def describe(error: BaseException, *, retryable: bool) -> dict[str, Any]:
    """The stored form of an error; bounded, so that a huge message cannot bloat the queue."""
    message = str(error) or type(error).__name__
    if len(message) > 4000:
        message = message[:4000] + f"... ({len(message)} characters)"
    return {"type": type(error).__name__, "message": message, "retryable": retryable}
