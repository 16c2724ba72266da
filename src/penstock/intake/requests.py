"""Requests that a message can carry, as JSON."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic import ValidationError as Invalid

from penstock.engine.handlers import KIND
from penstock.errors import ValidationError
from penstock.intake.record import MessageRecord, MessageRefused
from penstock.research.service import (
    MAX_QUERIES,
    MAX_RESULTS,
    MAX_SECONDS,
    QUERY_LIMIT,
    QUESTION_LIMIT,
)
from penstock.text.json_text import value_of

Name = Annotated[str, StringConstraints(min_length=1, max_length=240)]
Query = Annotated[str, StringConstraints(min_length=1, max_length=QUERY_LIMIT)]
PriorityName = Literal["high", "medium", "low"]


class IntakeRequest(BaseModel):
    """Base of requests: unknown fields and values of the wrong type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class DocumentRequest(IntakeRequest):
    """Make a document searchable."""

    kind: Literal["document"]
    text: str | None = None
    url: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    id: Name | None = None
    title: Annotated[str, StringConstraints(max_length=1000)] = ""
    collection: Name = "default"
    metadata: dict[str, Any] = Field(default_factory=dict)
    priority: PriorityName = "medium"


class IngestRequest(IntakeRequest):
    """Enqueue the job of an accepted document; published by the server (`produce`)."""

    kind: Literal["ingest"]
    id: Name
    collection: Name
    generation: Annotated[int, Field(ge=0, lt=2**63)]
    tenant: Name
    priority: PriorityName = "medium"


class DeleteRequest(IntakeRequest):
    """Delete a document; no error if there is none."""

    kind: Literal["delete"]
    id: Name
    collection: Name = "default"


class SearchRequest(IntakeRequest):
    """Create a research task."""

    kind: Literal["search"]
    question: Annotated[str, StringConstraints(min_length=1, max_length=QUESTION_LIMIT)]
    queries: list[Query] | None = Field(None, min_length=1, max_length=MAX_QUERIES)
    max_results: int = Field(10, ge=1, le=MAX_RESULTS)
    providers: list[Name] | None = Field(None, min_length=1, max_length=20)
    budget_pages: int | None = Field(None, ge=0, le=1_000_000)
    budget_seconds: float | None = Field(None, gt=0, le=MAX_SECONDS)
    priority: PriorityName = "medium"


class JobRequest(IntakeRequest):
    """Enqueue a job."""

    kind: Literal["job"]
    job: Annotated[str, StringConstraints(pattern=f"^{KIND.pattern}$")]
    payload: dict[str, Any] = Field(default_factory=dict)
    log: Annotated[str, StringConstraints(min_length=1, max_length=512)] | None = None
    priority: PriorityName = "medium"


Request = DocumentRequest | IngestRequest | DeleteRequest | SearchRequest | JobRequest
KINDS: dict[str, type[Request]] = {
    "document": DocumentRequest,
    "ingest": IngestRequest,
    "delete": DeleteRequest,
    "search": SearchRequest,
    "job": JobRequest,
}


def read(record: MessageRecord, accept: Collection[str], most_bytes: int) -> Request:
    """Parse the request of a message. MessageRefused says what is wrong, without quoting it."""
    if record.headers is None:
        raise MessageRefused("header", "the name of a header is not UTF-8")
    if record.value is None:
        raise MessageRefused(
            "empty", "the message has no value; a document is removed by kind: delete"
        )
    if len(record.value) > most_bytes:
        size = len(record.value)
        raise MessageRefused(
            "too-large", f"the message is {size:,} bytes, the limit is {most_bytes:,}"
        )
    try:
        given = value_of(record.value, "the message")
    except ValidationError as error:
        raise MessageRefused("not-json", str(error)) from None
    kind = given.get("kind") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise MessageRefused("invalid", f"kind must be one of {', '.join(KINDS)}")
    if kind not in accept:
        raise MessageRefused(
            "not-accepted", f"{kind} is not accepted here; there are: {_and(accept)}"
        )
    return _checked(given, KINDS[kind])


def _checked(given: dict[str, Any], model: type[Request]) -> Request:
    try:
        request = model.model_validate(given)
    except Invalid as error:
        told = error.errors(include_url=False, include_input=False, include_context=False)
        raise MessageRefused("invalid", "; ".join(_what(one, model) for one in told[:3])) from None
    if isinstance(request, DocumentRequest) and (request.text is None) == (request.url is None):
        raise MessageRefused("invalid", "a document has either a text or a url")
    return request


def _what(error: Any, model: type[BaseModel]) -> str:
    if error["type"] == "extra_forbidden":
        return f"there is a field too many; there are: {_and(model.model_fields)}"
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}"


def _and(words: Collection[str]) -> str:
    return ", ".join(words)
