"""Request bodies, with the names of the library. Responses are in `penstock.wire`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from penstock.answers.phases import MAX_SECONDS as MAX_ANSWER_SECONDS
from penstock.answers.service import LEAST_SECONDS, MAX_COLLECTIONS
from penstock.answers.service import QUESTION_LIMIT as ASK_LIMIT
from penstock.documents.document_names import KEY_LIMIT, METADATA_LIMIT
from penstock.engine.handlers import KIND
from penstock.model.job import PriorityName
from penstock.research.service import (
    MAX_QUERIES,
    MAX_RESULTS,
    MAX_SECONDS,
    QUERY_LIMIT,
    QUESTION_LIMIT,
)
from penstock.wire.tasks import Mode

MAX_KEYS = 100
"""Of the metadata of one document."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=240)]
Kind = Annotated[str, StringConstraints(pattern=f"^{KIND.pattern}$")]
Plain = Annotated[str, StringConstraints(pattern=r"^[^\x00]{1,512}$")]
"""PostgreSQL has no text with a NUL."""
TITLE_LIMIT = 1000
Title = Annotated[str, StringConstraints(max_length=TITLE_LIMIT)]
"""Of which the library keeps as much as it shows."""
MetadataKey = Annotated[str, StringConstraints(min_length=1, max_length=KEY_LIMIT)]
Said = Annotated[
    dict[MetadataKey, Any],
    Field(max_length=MAX_KEYS, description=f"Up to {METADATA_LIMIT:,} bytes as JSON."),
]
"""Metadata that a caller sends."""


class RequestBody(BaseModel):
    """A request body: an unknown field is an error, and so is a value of another type, such as 0
    for false."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewJobBody(RequestBody):
    kind: Kind
    payload: dict[str, Any] = Field(default_factory=dict)
    key: Annotated[str, StringConstraints(min_length=1, max_length=512)] | None = Field(
        None, description="The same key is the same job, for a tenant and kind."
    )
    priority: PriorityName = "medium"
    delay: float | None = Field(None, ge=0, le=366 * 86400, description="Seconds; not before.")
    run_at: float | None = Field(None, ge=0, le=2**33, description="Seconds since 1970.")
    deadline: float | None = Field(None, ge=0, le=2**33, description="Seconds since 1970.")
    timeout: float | None = Field(
        None, gt=0, le=30 * 86400, description="Seconds a run may take; null: as its kind has it."
    )
    max_retries: int | None = Field(None, ge=0, le=1000, description="Null: as its kind has it.")
    log: Annotated[str, StringConstraints(min_length=1, max_length=512)] | None = Field(
        None, description="The log that its changes go to."
    )


class SignalBody(RequestBody):
    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    payload: Any = None
    key: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="The same key is the same signal, for a job."
    )


class NewDocument(RequestBody):
    text: str | None = Field(None, description="The text itself; or `url`.")
    url: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    id: Name | None = None
    title: Title = ""
    collection: Name = "default"
    metadata: Said = Field(default_factory=dict)
    priority: PriorityName = "medium"
    retry: bool = Field(False, description="Try again where the same content has failed before.")


class Upsert(RequestBody):
    text: str
    title: Title = ""
    metadata: Said = Field(default_factory=dict)


class Question(RequestBody):
    question: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
    collections: list[Name] | None = Field(None, max_length=100)
    documents: list[Name] | None = Field(None, max_length=1000)
    metadata: Said = Field(default_factory=dict)
    limit: int = Field(10, ge=1, le=100)
    explain: bool = False


Query = Annotated[str, StringConstraints(min_length=1, max_length=QUERY_LIMIT)]
Provider = Annotated[str, StringConstraints(min_length=1, max_length=240)]
Moment = Annotated[float, Field(ge=0, le=2**33, description="Seconds since 1970.")]


class JobSelector(RequestBody):
    """Jobs; every part that is given must match."""

    ids: list[Plain] | None = Field(None, max_length=10_000)
    kind: Plain | None = None
    error_type: Plain | None = None
    log: Plain | None = None
    parent: Plain | None = None
    lane: Plain | None = None
    priority: PriorityName | None = None
    enqueued_after: Moment | None = None
    enqueued_before: Moment | None = None
    all: bool = Field(False, description="Say so when nothing else is given.")


Much = Annotated[int, Field(ge=1, le=10**9)]
Long = Annotated[float, Field(ge=1e-6, le=1e9)]


class Limits(RequestBody):
    """Limits of a lane; null: as configured."""

    requests_per_interval: Much | None = None
    interval_seconds: Long | None = None
    min_interval_seconds: Annotated[float, Field(ge=0, le=1e9)] | None = None
    max_parallel: Much | None = None
    requests_per_day: Much | None = None


class NewTask(RequestBody):
    question: Annotated[str, StringConstraints(min_length=1, max_length=QUESTION_LIMIT)]
    budget_pages: int | None = Field(
        None, ge=0, le=1_000_000, description="Pages that may be read for it."
    )
    budget_seconds: float | None = Field(
        None, gt=0, le=MAX_SECONDS, description="For how long it may search, pauses left out."
    )


class NewSearches(RequestBody):
    queries: list[Query] = Field(min_length=1, max_length=MAX_QUERIES)
    max_results_per_query: int = Field(10, ge=1, le=MAX_RESULTS)
    priority: PriorityName = "medium"
    providers: list[Provider] | None = Field(
        None, min_length=1, max_length=20, description="Who is asked; else all that are set up."
    )


class StopTask(RequestBody):
    mode: Mode = Field(
        "graceful",
        description="`graceful`: running searches finish, with their pages, and are stored. "
        "`immediate`: they do not.",
    )


class Ask(RequestBody):
    question: Annotated[str, StringConstraints(min_length=1, max_length=ASK_LIMIT)]
    sources: Literal["documents", "web"] = Field(
        "documents", description="`web`: providers are asked too, and the pages they name are read."
    )
    collections: list[Name] | None = Field(
        None, min_length=1, max_length=MAX_COLLECTIONS, description="Only these; else all."
    )
    seconds: float | None = Field(
        None,
        ge=LEAST_SECONDS,
        le=MAX_ANSWER_SECONDS,
        description="It is answered in this time; else in `answer_seconds`.",
    )
