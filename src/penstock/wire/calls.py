"""Tools of an app, and calls of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.model.job import Job, JobState
from penstock.model.question import JobQuestion
from penstock.wire.view import WireView, described

if TYPE_CHECKING:
    from penstock.engine.tools import AppTool


described(JobQuestion)


@dataclass(slots=True, frozen=True)
class ToolLine(WireView):
    """A tool of the app."""

    name: str
    title: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of the arguments."""
    result: dict[str, Any]
    """JSON schema of the result; what is no object is its `result`."""
    read_only: bool
    """A key needs only the scope `read`."""
    repeatable: bool
    """The same call, made again, changes nothing more."""


@dataclass(slots=True, frozen=True)
class ToolList(WireView):
    tools: Sequence[ToolLine]


@dataclass(slots=True, frozen=True)
class CallView(WireView):
    """A call of a tool, which is a job."""

    id: str
    tool: str
    state: JobState
    progress: float
    """From 0 to 1."""
    message: str
    """How far it is, in words of the tool."""
    result: Any
    """What the tool has returned; null until then."""
    error: str | None
    """Why it failed, or what ended its last run."""
    waiting_for: str | None
    """Of a queued call: what it waits for."""
    question: JobQuestion | None
    """What it asks a person; `POST /v1/calls/ID/answer` answers."""
    enqueued_at: float
    finished_at: float | None


def tool_line(tool: AppTool) -> ToolLine:
    return ToolLine(
        tool.name,
        tool.title,
        tool.description,
        tool.parameters,
        tool.result,
        tool.read_only,
        tool.repeatable,
    )


def call_view(job: Job, question: JobQuestion | None = None) -> CallView:
    return CallView(
        id=job.id,
        tool=job.kind,
        state=job.state,
        progress=job.progress,
        message=job.message,
        result=job.result,
        error=None if job.error is None else error_line(job),
        waiting_for=job.waiting_for,
        question=question,
        enqueued_at=job.enqueued_at,
        finished_at=job.finished_at,
    )


def error_line(job: Job) -> str:
    """The error of a job in one line."""
    error = job.error
    return "" if error is None else f"{error.get('type', 'Error')}: {error.get('message', '')}"
