"""Penstock: a durable job queue with fenced leases, embedded or on a server."""

import importlib
import typing

from penstock.errors import (
    AddressRefused,
    AnswerNotFound,
    AuthenticationError,
    BlobMissing,
    Blocked,
    BrowserLost,
    ConfigError,
    CutShort,
    DamagedRow,
    DeadlineExceeded,
    DocumentNotFound,
    DocumentTooLarge,
    EmbedderError,
    FetchError,
    HttpError,
    IntakeError,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobTimeout,
    KeyConflict,
    LaneBusy,
    LaneNotFound,
    LifespanError,
    MissingExtra,
    ModelError,
    ModelReplaced,
    ParentEnded,
    ParserError,
    PayloadTooLarge,
    PenstockError,
    PermanentError,
    ProviderError,
    QueueError,
    QueueUnavailable,
    QueueUnusable,
    RateLimited,
    ReleasedTooOften,
    ResultTooLarge,
    RobotsRefused,
    RunLater,
    StoreUnavailable,
    TaskNotFound,
    TaskStopped,
    TooSlow,
    Unavailable,
    ValidationError,
    WaitTimeout,
)
from penstock.model.answer import Answer, AnswerState
from penstock.model.change import Change
from penstock.model.document import Document, DocumentState
from penstock.model.job import Job, JobState, Priority
from penstock.model.lane import LaneConfig
from penstock.ports.queue import FeedEntry, JobFilter, Stopped
from penstock.text.user_agent import VERSION as _VERSION

if typing.TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.engine.context import JobContext
    from penstock.engine.orchestrator import JobOrchestrator
else:
    _ENGINE = {
        "JobContext": "penstock.engine.context",
        "JobOrchestrator": "penstock.engine.orchestrator",
        "Penstock": "penstock.app",
    }

    def __getattr__(name: str) -> typing.Any:
        """The engine is loaded when it is first asked for: most commands start without it."""
        if name not in _ENGINE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(importlib.import_module(_ENGINE[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *_ENGINE})


__version__ = _VERSION

__all__ = [
    "AddressRefused",
    "Answer",
    "AnswerNotFound",
    "AnswerState",
    "AuthenticationError",
    "BlobMissing",
    "Blocked",
    "BrowserLost",
    "Change",
    "ConfigError",
    "CutShort",
    "DamagedRow",
    "DeadlineExceeded",
    "Document",
    "DocumentNotFound",
    "DocumentState",
    "DocumentTooLarge",
    "EmbedderError",
    "FeedEntry",
    "FetchError",
    "HttpError",
    "IntakeError",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobFailed",
    "JobFilter",
    "JobNotFound",
    "JobOrchestrator",
    "JobState",
    "JobTimeout",
    "KeyConflict",
    "LaneBusy",
    "LaneConfig",
    "LaneNotFound",
    "LifespanError",
    "MissingExtra",
    "ModelError",
    "ModelReplaced",
    "ParentEnded",
    "ParserError",
    "PayloadTooLarge",
    "Penstock",
    "PenstockError",
    "PermanentError",
    "Priority",
    "ProviderError",
    "QueueError",
    "QueueUnavailable",
    "QueueUnusable",
    "RateLimited",
    "ReleasedTooOften",
    "ResultTooLarge",
    "RobotsRefused",
    "RunLater",
    "Stopped",
    "StoreUnavailable",
    "TaskNotFound",
    "TaskStopped",
    "TooSlow",
    "Unavailable",
    "ValidationError",
    "WaitTimeout",
    "__version__",
]
