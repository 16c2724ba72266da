"""Every error Penstock raises on purpose, each with its code, HTTP status and exit code.

PenstockError
├── ConfigError                 a setting is missing or wrong
│   └── MissingExtra            an optional part of the package is not installed
├── LifespanError               the app's lifespan failed to start, so no job is run
├── QueueError
│   ├── QueueUnavailable        cannot be reached now; nothing was stored; try again
│   └── QueueUnusable           corrupt, not ours, or made by a newer Penstock; a person must act
├── StoreUnavailable            the documents cannot be reached now
├── IntakeError                 messages cannot be read; a person must act
├── JobNotFound
├── LaneNotFound
├── BudgetNotFound
├── DocumentNotFound
├── TaskNotFound
├── AnswerNotFound
├── ToolNotFound
├── ScheduleNotFound
├── ScheduleInCode              it is in the code, so it is changed there
├── ScheduleChanged             by somebody else meanwhile; nothing was stored
├── ModelReplaced               the store's vectors are made by another model by now
├── KeyConflict                 same idempotency key, another payload
├── LogStopped                  the log takes no jobs until it is reopened
│   └── TaskStopped             the research task takes no searches until it is resumed
├── ParentEnded                 the run that would enqueue a child is over
├── JobEnded                    a job that has finished takes no signals
├── LeaseLost                   the run that would record a step holds the job no more
├── JobFailed                   what `app.result` was asked for is not there: the job failed
│   └── JobCancelled            or was cancelled
├── WaitTimeout
├── TooSlow                     a follower of a feed has not kept up
├── RunLater                    raised by a handler: run me later, this run does not count
├── Unavailable                 a dependency cannot be reached: the lane's fault or the job's
│   └── RateLimited             it said to come back later
│       └── Blocked             a search engine wants no programs, or no more of them
├── LaneBusy                    no permit soon; the job is released and waits for the lane
│   └── BudgetReached           a budget is spent; the job is released and waits for that
├── BrowserLost                 the browser ended before the page was read; retried
├── ModelError                  a language model's answer is of no use; retried
│   └── CutShort                it ended before its end
├── JobTimeout                  a run took longer than the job's timeout; retried
└── PermanentError              never retried
    ├── ValidationError         a payload does not fit its handler, or a value is malformed
    │   ├── PayloadTooLarge
    │   ├── AmountTooLarge      a request is larger than its lane ever has room for
    │   └── AddressRefused      an address that is not fetched: not http(s), or not public
    ├── ResultTooLarge
    ├── StepMismatch            a strict step was recorded with other arguments
    ├── SuspensionSwallowed     a handler has caught what was to suspend its job
    ├── SignalLimit             a job has got as many signals as it may
    ├── StepLimit               a job has recorded as many steps, or as many bytes, as it may
    ├── DamagedRow              what the queue has stored of a job cannot be read
    ├── ParserError             a document cannot be parsed; `reason` says why
    ├── DocumentTooLarge
    ├── RobotsRefused           the robots.txt of a web server asks not to fetch a page
    ├── BlobMissing             an original is not in the blob store any more
    ├── EmbedderError           an embedder's answer is not one vector for each text
    ├── ProviderError           a search provider's answer is not what it documents
    ├── AuthenticationError
    ├── HttpError               4xx and the like: trying again does not change it
    │   └── FetchError          an address that others named brings no document
    ├── DeadlineExceeded        the job's absolute deadline has passed
    └── ReleasedTooOften        asked to be run later more often than allowed

Suspended is a BaseException: it unwinds a handler that sleeps or waits for a signal.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.text.normalize import storable

if TYPE_CHECKING:
    from penstock.errors.services import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """The errors of services: an app of jobs alone needs none of them."""
        services = import_module("penstock.errors.services")
        if name.startswith("_") or not hasattr(services, name):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(services, name)


class PenstockError(Exception):
    """Base of all errors of this package. Each class says how it is reported."""

    code: ClassVar[str] = "internal"
    """In answers over HTTP and MCP."""
    http_status: ClassVar[int] = 500
    """500: no caller could have caused it, so its type alone is told."""
    exit_code: ClassVar[int] = 2
    """Of a command that ends with it."""
    stored: ClassVar[tuple[str, ...]] = ()
    """Attributes that are stored with it, because what to do about it depends on them."""
    public: ClassVar[str] = ""
    """Told to remote callers instead of the message, which names addresses that are no business of
    theirs. Empty: the message itself."""


class ConfigError(PenstockError):
    """A setting is missing or wrong; the message names it and says what to do."""

    def __init__(self, message: str = "", *, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting
        """Which one, where it is known: `max_workers`, `llm.models.plan`."""


class LifespanError(PenstockError):
    """The app's lifespan raised before it yielded. Its error is the cause; no job was run."""

    exit_code = 1


class MissingExtra(ConfigError):
    """An optional part of the package is not installed; the message says how to install it."""

    code = "not-installed"
    http_status = 501


class QueueError(PenstockError):
    """The queue could not do what was asked."""

    exit_code = 4


class QueueUnavailable(QueueError):
    """The queue cannot be reached or written now. Nothing was stored; try again later."""

    code = "queue-unavailable"
    http_status = 503
    public = "the queue is unreachable"


class QueueUnusable(QueueError):
    """The queue is corrupt, not a Penstock queue, or made by a newer Penstock."""


class StoreUnavailable(PenstockError):
    """The store of documents cannot be reached or written now; try again later."""

    code = "store-unavailable"
    http_status = 503
    exit_code = 4
    public = "the store is unreachable"

    address: str | None = None
    """host:port of what could not be reached, where it is a server of its own."""


class JobNotFound(PenstockError):
    """No job with that id (or not for this tenant)."""

    code = "not-found"
    http_status = 404
    exit_code = 3

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        return f"no job with id {self.job_id!r}"


class BudgetNotFound(PenstockError):
    """This payer has no budget."""

    code = "not-found"
    http_status = 404
    exit_code = 3

    def __init__(self, payer: str) -> None:
        super().__init__(payer)
        self.payer = payer

    def __str__(self) -> str:
        return f"{self.payer} has no budget; `penstock budgets` lists those that there are"


class LaneNotFound(PenstockError):
    """No lane of that name is in use."""

    code = "not-found"
    http_status = 404
    exit_code = 3

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"no lane {self.name!r} is in use; `penstock lanes` lists those that are"


class KeyConflict(PenstockError):
    """The idempotency key is already used for a job with another payload."""

    code = "key-conflict"
    http_status = 409

    def __init__(self, key: str, job_id: str) -> None:
        super().__init__(key, job_id)
        self.key = key
        self.job_id = job_id

    def __str__(self) -> str:
        return (
            f"key {self.key!r} already belongs to job {self.job_id} with another payload; "
            "use another key, or the same payload"
        )


class LogStopped(PenstockError):
    """The log has been stopped and takes no new jobs, also from its own; nothing was stored."""

    code = "log-stopped"
    http_status = 409

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log

    def __str__(self) -> str:
        return f"log {self.log!r} is stopped and takes no jobs; reopen it first"


class ParentEnded(PenstockError):
    """The run that would enqueue a child is over, so it can enqueue no more; nothing was stored."""

    def __init__(self, parent_id: str) -> None:
        super().__init__(parent_id)
        self.parent_id = parent_id

    def __str__(self) -> str:
        return (
            f"this run of job {self.parent_id} is over (cancelled, settled, or taken over by "
            "another process), so it cannot enqueue more children; return without retrying"
        )


class JobEnded(PenstockError):
    """The job has finished, and takes no signals."""

    code = "job-ended"
    http_status = 409
    exit_code = 1

    def __init__(self, job_id: str, state: str) -> None:
        super().__init__(job_id, state)
        self.job_id = job_id
        self.state = state

    def __str__(self) -> str:
        return f"job {self.job_id} is {self.state}, and takes no signals"


class LeaseLost(PenstockError):
    """This run holds its job no more, so the step could not be recorded: the job was cancelled, or
    another process has taken it over."""

    def __init__(self, job_id: str, step: str) -> None:
        super().__init__(job_id, step)
        self.job_id = job_id
        self.step = step

    def __str__(self) -> str:
        return (
            f"step {self.step!r} was not recorded: this run of job {self.job_id} is over "
            "(cancelled, or taken over by another process); return without retrying"
        )


class JobFailed(PenstockError):
    """The job whose result was asked for has failed; `error` is what its last run raised, as
    stored: `error["type"]`, `error["message"]`, `error["retryable"]`."""

    def __init__(self, job_id: str, kind: str, error: Mapping[str, Any] | None) -> None:
        super().__init__(job_id, kind, error)
        self.job_id = job_id
        self.kind = kind
        self.error = error or {}

    def __str__(self) -> str:
        why = f"{self.error.get('type')}: {self.error.get('message')}"
        return f"job {self.job_id} ({self.kind}) failed: {why}"


class JobCancelled(JobFailed):
    """The job whose result was asked for was cancelled."""

    def __str__(self) -> str:
        return f"job {self.job_id} ({self.kind}) was cancelled"


class WaitTimeout(PenstockError, TimeoutError):
    """The job was not finished within the time given to wait; it goes on."""

    exit_code = 1


class TooSlow(PenstockError):
    """A follower of a feed has not read for so long that some entries are not at hand any more;
    follow again from the last position."""

    def __init__(self, kept: int) -> None:
        super().__init__(kept)
        self.kept = kept

    def __str__(self) -> str:
        return f"more than {self.kept} changes behind; follow again from the last position read"


class RunLater(PenstockError):
    """Raise in a handler to be run again after `delay` seconds without spending an attempt."""

    def __init__(self, delay: float = 1.0, reason: str = "") -> None:
        if not 0 <= delay <= 366 * 86400:
            raise ValueError(f"delay must be between 0 s and a year, not {delay!r}")
        super().__init__(delay, reason)
        self.delay = float(delay)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason or f"run again in {self.delay:g} s"


class Answered:
    """Of an error that stands for the answer of an HTTP server: that answer. Secrets are hidden in
    all but `response`, so it can be logged. Nothing is set where there was no answer."""

    url: str | None = None
    headers: Mapping[str, str] = MappingProxyType({})
    body: str = ""
    """Its first 4 KiB, as text."""
    response: Any = None
    """The `httpx2.Response` itself, as it came."""


class Unavailable(Answered, PenstockError):
    """Raise when a dependency cannot be reached, times out or answers 5xx.

    If others find the same, it is an outage of the lane and the job has spent no attempt.
    """

    code = "unavailable"
    http_status = 503
    public = "a required service is unreachable"

    lane: str | None = None
    """Where it happened, if not in the lane of the permit it happened under."""
    address: str | None = None
    """host:port of what could not be reached, for the probe."""
    status: int | None = None
    """The HTTP status, if there was an answer."""

    def __init__(self, *args: object, lane: str | None = None, address: str | None = None) -> None:
        super().__init__(*args)
        self.lane = lane
        self.address = address


class RateLimited(Unavailable):
    """Raise when a dependency answers 429: the whole lane pauses for `retry_after` seconds."""

    resets_after: float | None = None
    """In how many seconds the provider's count starts anew, if it said so."""

    def __init__(
        self,
        message: str = "rate limited",
        retry_after: float | None = None,
        *,
        lane: str | None = None,
    ) -> None:
        super().__init__(message, retry_after, lane=lane)
        self.message = message
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.message


class LaneBusy(PenstockError):
    """A lane will not give a permit soon. Let it pass: the engine runs the job again when the
    lane has room, and counts no attempt."""

    def __init__(self, lane: str, until: float, why: str) -> None:
        super().__init__(lane, until, why)
        self.lane = lane
        self.until = until
        self.why = why

    def __str__(self) -> str:
        return f"lane {self.lane} is busy: {self.why}"


class BudgetReached(LaneBusy):
    """A budget is spent. Let it pass: the engine runs the job again when there is something left,
    and counts no attempt."""

    def __str__(self) -> str:
        return self.why


class JobTimeout(PenstockError, TimeoutError):
    """One run of a job took longer than its timeout."""


class PermanentError(PenstockError):
    """Trying again cannot help: the job becomes a dead letter at once.

    Any exception with a class attribute `retryable = False` is treated the same way.
    """

    retryable = False


class DamagedRow(PermanentError):
    """The stored row of a job cannot be read. It is not quoted."""

    def __init__(self) -> None:
        super().__init__(
            "what is stored of this job is damaged and cannot be read; restore a backup, or "
            "discard it and enqueue it again"
        )


class ValidationError(PermanentError, ValueError):
    """A payload does not fit the handler's signature or is not JSON, or a value is malformed."""

    code = "invalid"
    http_status = 422


class PayloadTooLarge(ValidationError):
    """The payload is over the limit; store the data elsewhere and enqueue a reference."""

    code = "too-large"
    http_status = 413


class ResultTooLarge(PermanentError):
    """The handler's result is over the limit; store it elsewhere and return a reference."""


class StepMismatch(PermanentError):
    """A step called with `strict=True` has a record under its name and occurrence that was made
    with other arguments."""

    def __init__(self, step: str, occurrence: int) -> None:
        super().__init__(step, occurrence)
        self.step = step
        self.occurrence = occurrence

    def __str__(self) -> str:
        return (
            f"step {self.step!r} (occurrence {self.occurrence}) was recorded with other arguments; "
            "give the step another name, raise the handler's `version=`, or redrive the job with "
            "--from-scratch"
        )


class SuspensionSwallowed(PermanentError):
    """The handler went on although `ctx.sleep` or `ctx.wait_for` had suspended its job."""

    def __init__(self) -> None:
        super().__init__(
            "the handler caught what ctx.sleep or ctx.wait_for raised to suspend the job, and went "
            "on: catch Exception, not BaseException"
        )


class SignalLimit(PermanentError):
    """A job has got as many signals as it may."""

    code = "too-many-signals"
    http_status = 409


class EventLimit(PermanentError):
    """A job has emitted as many events as it may."""


class StepLimit(PermanentError):
    """A job may record no more steps, or no more bytes; the message names the setting."""


class AuthenticationError(Answered, PermanentError):
    """Credentials were refused. Three jobs in a row block the lane: then nothing dies of it."""

    status: int | None = None
    """The HTTP status, if there was an answer."""
    lane: str | None = None

    def __init__(self, *args: object, lane: str | None = None) -> None:
        super().__init__(*args)
        self.lane = lane


class HttpError(Answered, PermanentError):
    """An HTTP answer that trying again does not change: 4xx, a body too large, a bad URL.

    `status`, `url`, `headers`, `body` and `response` tell what the server said.
    """

    lane: str | None = None

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.message = message
        self.status = status

    def __str__(self) -> str:
        return self.message


class DeadlineExceeded(PermanentError, TimeoutError):
    """The job's absolute deadline has passed."""


class ReleasedTooOften(PermanentError):
    """The job asked to be run later more often than allowed."""


class Suspended(BaseException):
    """Unwinds a handler whose job sleeps, or waits for a signal; `finally` runs. Do not catch it:
    the job begins again at its first line when it is time, with its records."""

    def __init__(self, until: float, reason: str, signal: str | None = None) -> None:
        super().__init__(reason)
        self.until = until
        self.reason = reason
        self.signal = signal


NOT_ATTEMPTS = (LaneBusy, RunLater, QueueError, LeaseLost)
"""Errors that say nothing of what was tried: it was not, or what came of it is not known."""


def is_permanent(error: BaseException, permanent: tuple[type[BaseException], ...] = ()) -> bool:
    """Whether retrying after `error` is pointless: marked so by its class or by the handler."""
    try:
        marked = getattr(error, "retryable", True) is False
    except Exception:  # an attribute that cannot be read marks nothing
        marked = False
    return marked or isinstance(error, permanent)


def describe(error: BaseException, *, retryable: bool) -> dict[str, Any]:
    """The stored form of an error; bounded, so that a huge message cannot bloat the queue."""
    name = type(error).__name__
    try:
        message = storable(str(error)) or name
    except Exception:
        message = f"{name} (its message could not be had)"
    if len(message) > 4000:
        message = message[:4000] + f"... ({len(message)} characters)"
    described = {"type": storable(name), "message": message, "retryable": retryable}
    if isinstance(error, PenstockError):
        described |= {name: getattr(error, name) for name in error.stored}
    return described
