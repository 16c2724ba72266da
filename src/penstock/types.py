"""The types that public methods return, apart from those in `penstock` itself."""

from penstock.answers.service import Answers
from penstock.answers.views import AnswerView
from penstock.documents.download import Brought
from penstock.documents.service import Documents
from penstock.engine.enqueuer import EnqueueOptions
from penstock.engine.job_lanes import JobLanes
from penstock.engine.job_logger import JobLogger
from penstock.engine.ticker import PeriodicKind
from penstock.model.access import ApiKey, Caller, KeyScope, Secret
from penstock.model.answer import Answer, AnswerState
from penstock.model.change import Change
from penstock.model.document import Document, DocumentRef, DocumentState, StoredChunk
from penstock.model.research import ResearchTask
from penstock.model.schedule import ScheduleInfo
from penstock.model.step import ReceiptDetails, Step
from penstock.outbound.fetch import JobFetch
from penstock.outbound.http import JobHttp
from penstock.ports.blobs import Blob
from penstock.ports.lanes import LaneInfo, LearntLimit
from penstock.ports.operators import DeadGroup, KindCounts, ProcessInfo
from penstock.ports.queue import FeedEntry, Stopped
from penstock.ports.receipts import Receipt, ReceiptAnswer, ReceiptRequest, Receipts, Usage
from penstock.research.service import Research
from penstock.retrieval.search import SearchResult
from penstock.wire.tasks import PageText, Queued, Resumed, StoppedTask, TaskLine, TaskView
from penstock.wiring.handles import (
    AsyncJobHandle,
    HandleOptions,
    JobHandle,
    Payload,
    Registration,
    SyncJobHandle,
)
from penstock.wiring.job_ref import JobRef
from penstock.wiring.keys import ApiKeys
from penstock.wiring.schedules import Schedules, SyncSchedules
from penstock.wiring.sync import SyncPenstock

__all__ = [
    "Answer",
    "AnswerState",
    "AnswerView",
    "Answers",
    "ApiKey",
    "ApiKeys",
    "AsyncJobHandle",
    "Blob",
    "Brought",
    "Caller",
    "Change",
    "DeadGroup",
    "Document",
    "DocumentRef",
    "DocumentState",
    "Documents",
    "EnqueueOptions",
    "FeedEntry",
    "HandleOptions",
    "JobFetch",
    "JobHandle",
    "JobHttp",
    "JobLanes",
    "JobLogger",
    "JobRef",
    "KeyScope",
    "KindCounts",
    "LaneInfo",
    "LearntLimit",
    "PageText",
    "Payload",
    "PeriodicKind",
    "ProcessInfo",
    "Queued",
    "Receipt",
    "ReceiptAnswer",
    "ReceiptDetails",
    "ReceiptRequest",
    "Receipts",
    "Registration",
    "Research",
    "ResearchTask",
    "Resumed",
    "ScheduleInfo",
    "Schedules",
    "SearchResult",
    "Secret",
    "Step",
    "Stopped",
    "StoppedTask",
    "StoredChunk",
    "SyncJobHandle",
    "SyncPenstock",
    "SyncSchedules",
    "TaskLine",
    "TaskView",
    "Usage",
]
