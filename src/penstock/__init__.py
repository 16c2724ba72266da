"""Penstock: a durable job queue with fenced leases, embedded or on a server."""

from penstock.app import Penstock
from penstock.engine.context import JobContext
from penstock.engine.orchestrator import JobOrchestrator
from penstock.model.change import Change
from penstock.model.document import Document, DocumentState
from penstock.model.errors import (
    AuthenticationError,
    BlobMissing,
    ConfigError,
    DeadlineExceeded,
    DocumentNotFound,
    DocumentTooLarge,
    EmbedderError,
    HttpError,
    JobNotFound,
    JobTimeout,
    KeyConflict,
    LaneBusy,
    LaneNotFound,
    ModelError,
    ModelReplaced,
    ParserError,
    PayloadTooLarge,
    PenstockError,
    PermanentError,
    QueueError,
    QueueUnavailable,
    QueueUnusable,
    RateLimited,
    ReleasedTooOften,
    ResultTooLarge,
    RunLater,
    StoreUnavailable,
    Unavailable,
    ValidationError,
    WaitTimeout,
)
from penstock.model.job import Job, JobState, Priority
from penstock.model.lane import LaneConfig
from penstock.ports.queue import JobFilter

__version__ = "0.1.0"

__all__ = [
    "AuthenticationError",
    "BlobMissing",
    "Change",
    "ConfigError",
    "DeadlineExceeded",
    "Document",
    "DocumentNotFound",
    "DocumentState",
    "DocumentTooLarge",
    "EmbedderError",
    "HttpError",
    "Job",
    "JobContext",
    "JobFilter",
    "JobNotFound",
    "JobOrchestrator",
    "JobState",
    "JobTimeout",
    "KeyConflict",
    "LaneBusy",
    "LaneConfig",
    "LaneNotFound",
    "ModelError",
    "ModelReplaced",
    "ParserError",
    "PayloadTooLarge",
    "Penstock",
    "PenstockError",
    "PermanentError",
    "Priority",
    "QueueError",
    "QueueUnavailable",
    "QueueUnusable",
    "RateLimited",
    "ReleasedTooOften",
    "ResultTooLarge",
    "RunLater",
    "StoreUnavailable",
    "Unavailable",
    "ValidationError",
    "WaitTimeout",
    "__version__",
]
