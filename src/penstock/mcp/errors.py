"""Turns errors of a tool into a code for programs and a sentence a model can act on.

The codes are those of the HTTP API.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent
from pydantic import ValidationError as InvalidArguments

from penstock.errors import (
    AnswerNotFound,
    BlobMissing,
    DocumentNotFound,
    DocumentTooLarge,
    JobNotFound,
    KeyConflict,
    LaneNotFound,
    MissingExtra,
    PayloadTooLarge,
    PenstockError,
    QueueUnavailable,
    StoreUnavailable,
    TaskNotFound,
    TaskStopped,
    Unavailable,
    ValidationError,
)

log = logging.getLogger("penstock.mcp")

T = TypeVar("T")

NOT_FOUND = (AnswerNotFound, DocumentNotFound, JobNotFound, TaskNotFound)

SOON = "nothing was stored; wait a few seconds and call again"
NAMED = 3
"""Mistakes that are told of one call."""


@dataclass(slots=True, frozen=True)
class ToolFailure:
    """The error result of a call."""

    code: str
    message: str

    def result(self) -> CallToolResult:
        return CallToolResult(
            content=[TextContent(type="text", text=f"{self.code}: {self.message}")],
            structured_content={"code": self.code, "message": self.message},
            is_error=True,
        )


class CallRefused(Exception):
    """Raised by tools, and for them: this call is answered with that failure."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.failure = ToolFailure(code, message)


def failure_of(tool: str, error: BaseException) -> ToolFailure:
    """How an error is told. What no caller could have caused is logged, and only its type told."""
    match error:
        case CallRefused():
            return error.failure
        case InvalidArguments():
            return ToolFailure("invalid", _mistakes(error))
        case PenstockError():
            told = _of_ours(error)
            if told is not None:
                return told
    # Not what it says: that may quote a document.
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("tool %s failed: %s\n%s", tool, type(error).__name__, where.rstrip())
    return ToolFailure(
        "internal",
        f"something went wrong here ({type(error).__name__}); calling again may not help, the "
        "server's log says more",
    )


async def in_protocol(work: Awaitable[T], missing: str, **data: str) -> T:
    """What `work` gives. What goes wrong is told as an error of the protocol: outside of tools
    there is nothing else to tell it with. `missing` is said of what is not there."""
    try:
        return await work
    except MCPError:
        raise
    except NOT_FOUND:
        raise MCPError(INVALID_PARAMS, missing, data or None) from None
    except Exception as error:
        failure = failure_of("request", error)
        theirs = isinstance(error, CallRefused | ValidationError)
        code = INVALID_PARAMS if theirs else INTERNAL_ERROR
        raise MCPError(code, failure.message, {"code": failure.code, **data}) from None


def _of_ours(error: PenstockError) -> ToolFailure | None:
    said = str(error)
    match error:
        case DocumentNotFound():
            return ToolFailure("not-found", f"{said}; list_documents names those there are")
        case TaskNotFound():
            return ToolFailure("task-not-found", f"{said}; list_tasks names the tasks there are")
        case AnswerNotFound():
            return ToolFailure("answer-not-found", f"{said}; give the answer_id that ask has told")
        case TaskStopped():
            return ToolFailure("task-stopped", f"{error.task!r} is stopped; call resume_task first")
        case JobNotFound() | LaneNotFound():
            return ToolFailure("not-found", said)
        case KeyConflict():
            return ToolFailure("key-conflict", said)
        case PayloadTooLarge() | DocumentTooLarge():
            return ToolFailure("too-large", f"{said}; send less at a time")
        case ValidationError():
            return ToolFailure("invalid", said)
        case MissingExtra():
            return ToolFailure("not-installed", f"{said}, where the server runs")
        case BlobMissing():
            return ToolFailure("original-gone", said)
        # What these say names addresses that are no caller's business.
        case QueueUnavailable():
            log.info("a tool could not reach the queue: %s", said)
            return ToolFailure("queue-unavailable", f"the queue cannot be reached now; {SOON}")
        case StoreUnavailable():
            log.info("a tool could not reach the store: %s", said)
            return ToolFailure("store-unavailable", f"the store cannot be reached now; {SOON}")
        case Unavailable():
            log.info("a tool could not reach a service: %s", said)
            return ToolFailure("unavailable", f"a service this needs cannot be reached now; {SOON}")
    return None


def _mistakes(error: InvalidArguments) -> str:
    """What is wrong with which argument; not the value, which may be anything and of any size."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found]
    more = "" if len(told) <= NAMED else f"; and {len(told) - NAMED} more"
    return "; ".join(told[:NAMED]) + more
