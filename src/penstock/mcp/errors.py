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
    DocumentNotFound,
    DocumentTooLarge,
    JobNotFound,
    MissingExtra,
    PayloadTooLarge,
    PenstockError,
    TaskNotFound,
    TaskStopped,
    ValidationError,
)

log = logging.getLogger("penstock.mcp")

T = TypeVar("T")

NOT_FOUND = (AnswerNotFound, DocumentNotFound, JobNotFound, TaskNotFound)

SOON = "nothing was stored; wait a few seconds and call again"
ADVICE: dict[type[PenstockError], str] = {
    DocumentNotFound: "; list_documents names those there are",
    TaskNotFound: "; list_tasks names the tasks there are",
    AnswerNotFound: "; give the answer_id that ask has told",
    JobNotFound: "; give the call_id that a tool has told",
    PayloadTooLarge: "; send less at a time",
    DocumentTooLarge: "; send less at a time",
    MissingExtra: ", where the server runs",
}
"""Advice for a model, appended to the message of an error."""
NAMED = 3
"""Maximum mistakes reported for one call."""


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
    """Raised by tools, and on their behalf: the call ends with that failure."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.failure = ToolFailure(code, message)


def failure_of(tool: str, error: BaseException) -> ToolFailure:
    """Convert an error to a failure. Errors that no caller could have caused are logged, and only
    their type is reported."""
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
        f"internal error ({type(error).__name__}); calling again may not help, the "
        "server's log says more",
    )


async def in_protocol(work: Awaitable[T], missing: str, **data: str) -> T:
    """Await `work`; errors become errors of the protocol, since outside of tools there is nothing
    else. `missing` is the message if something is not found."""
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
    if error.http_status == 500:
        return None
    if error.http_status == 503:
        log.info("a tool could not reach what it needs: %s", error)
        return ToolFailure(error.code, f"{error.public}; {SOON}")
    if isinstance(error, TaskStopped):
        return ToolFailure(error.code, f"{error.task!r} is stopped; call resume_task first")
    advice = next((said for kind, said in ADVICE.items() if isinstance(error, kind)), "")
    return ToolFailure(error.code, f"{error.public or error}{advice}")


def _mistakes(error: InvalidArguments) -> str:
    """Describe which arguments are wrong, without their values, which may be anything of any
    size."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found]
    more = "" if len(told) <= NAMED else f"; and {len(told) - NAMED} more"
    return "; ".join(told[:NAMED]) + more
