"""Errors of the services: documents, research, answers, intake; and of schedules. They are imported
from `penstock.errors`, which loads them when one is first asked for."""

from __future__ import annotations

from penstock.errors import (
    HttpError,
    LogStopped,
    PenstockError,
    PermanentError,
    RateLimited,
    ValidationError,
)


class IntakeError(PenstockError):
    """Messages cannot be read, and trying again does not change it. None is lost by it."""

    exit_code = 4


class ScheduleNotFound(PenstockError):
    """There is no such schedule, or it is another tenant's."""

    code = "schedule-not-found"
    http_status = 404
    exit_code = 3

    def __init__(self, name: str) -> None:
        super().__init__(f"no schedule {name!r}; `penstock schedules` lists those that are there")


class ScheduleInCode(PenstockError):
    """The schedule of this name is in the code of the app, and cannot be changed elsewhere."""

    code = "schedule-in-code"
    http_status = 409

    def __init__(self, name: str) -> None:
        super().__init__(
            f"schedule {name!r} is in the code (`@app.job` with every= or cron=): change it there, "
            "or use another name"
        )


class ScheduleChanged(PenstockError):
    """Somebody else changed the schedule meanwhile; nothing was stored."""

    code = "schedule-changed"
    http_status = 409

    def __init__(self, name: str) -> None:
        super().__init__(f"schedule {name!r} was changed by somebody else meanwhile; try again")


class DocumentNotFound(PenstockError):
    """There is no such document, or it is another tenant's."""

    code = "not-found"
    http_status = 404
    exit_code = 3

    def __init__(self, document_id: str) -> None:
        super().__init__(f"no document {document_id!r}")


class TaskNotFound(PenstockError):
    """There is no such research task, or it is another tenant's."""

    code = "task-not-found"
    http_status = 404
    exit_code = 3

    def __init__(self, task_id: str) -> None:
        super().__init__(f"no task {task_id!r}")


class AnswerNotFound(PenstockError):
    """There is no such answer, or it is another tenant's."""

    code = "answer-not-found"
    http_status = 404
    exit_code = 3

    def __init__(self, answer_id: str) -> None:
        super().__init__(f"no answer {answer_id!r}")


class ToolNotFound(PenstockError):
    """The app has no such tool, or the caller may not call it."""

    code = "tool-not-found"
    http_status = 404
    exit_code = 3

    def __init__(self, name: str, there: list[str]) -> None:
        known = f"there are: {', '.join(there[:20])}" if there else "there are none"
        super().__init__(f"no tool {name!r}; {known}")


class ModelReplaced(PenstockError):
    """The documents are embedded by another model than this process is configured for."""


class TaskStopped(LogStopped):
    """The research task has been stopped and takes no searches; nothing was stored."""

    code = "task-stopped"

    def __init__(self, task: str) -> None:
        super().__init__(task)
        self.task = task

    def __str__(self) -> str:
        return f"task {self.task!r} is stopped and takes no searches; resume it first"


class Blocked(RateLimited):
    """A search engine shows a CAPTCHA, or refuses, instead of results. It is left alone, by all
    processes, for `retry_after` seconds; nothing is done to get around it."""

    def __init__(self, engine: str, why: str, retry_after: float | None = None) -> None:
        super().__init__(f"{engine} has blocked us: {why}", retry_after)
        self.engine = engine


class BrowserLost(PenstockError):
    """The browser, or its tab, ended before a page was read. Retried, in a new browser; it says
    nothing of the search engine."""


class ModelError(PenstockError):
    """A language model answered, but with nothing that can be used: empty, cut short, malformed.

    Retried, because the same question may be answered otherwise.
    """


class CutShort(ModelError):
    """A model's answer ended for want of tokens, or was withheld from some point on: what there is
    of it is sound, and not all."""


class AmountTooLarge(ValidationError):
    """A request may use more tokens or money than its lane ever has room for."""


class AddressRefused(ValidationError):
    """An address that is not fetched: no plain http(s) URL, or not on the open internet and not
    named by the setting `fetch_allow`."""


class ParserError(PermanentError):
    """A document cannot be parsed. `reason` is one word, for programs: encrypted, corrupt, empty,
    scanned (only pictures, and `scans` is none), unknown (no format we read), unreadable (no such
    file), oversized, bomb, slow, memory, crashed.

    Never retried: the same bytes end the same way. Redrive it once the limits are higher.
    """

    stored = ("reason",)

    def __init__(
        self, message: str = "the document cannot be parsed", reason: str = "corrupt"
    ) -> None:
        super().__init__(message, reason)
        self.message = message
        self.reason = reason

    def __str__(self) -> str:
        return self.message


class DocumentTooLarge(PermanentError):
    """A document has more bytes than are accepted."""

    code = "too-large"
    http_status = 413


class RobotsRefused(PermanentError):
    """The robots.txt of a web server asks programs like this one not to fetch a page, or says
    nothing that can be read."""


class BlobMissing(PermanentError):
    """The original of a document, or the result of a step, is not in the blob store any more."""

    code = "original-gone"
    http_status = 409


class EmbedderError(PermanentError):
    """An embedder answered, but not with one sound vector of the right size for each text.

    Permanent, because the same texts would bring the same answer; nothing of it was stored.
    """


class ProviderError(PermanentError):
    """A search provider answered, but not with results in the form it documents.

    Permanent, because the same query would bring the same answer. Quotes nothing of it.
    """


class FetchError(HttpError):
    """An address that somebody named brings no document: 404, too many redirects, not for us."""
