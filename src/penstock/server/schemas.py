"""Wire schemas, with the names of the library."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from penstock.documents.names import KEY_LIMIT, METADATA_LIMIT
from penstock.engine.handlers import KIND

MAX_KEYS = 100
"""Of the metadata of one document."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=240)]
Kind = Annotated[str, StringConstraints(pattern=f"^{KIND.pattern}$")]
Plain = Annotated[str, StringConstraints(pattern=r"^[^\x00]{1,512}$")]
"""PostgreSQL has no text with a NUL."""
TITLE_LIMIT = 1000
Title = Annotated[str, StringConstraints(max_length=TITLE_LIMIT)]
"""Of which the library keeps as much as it shows."""
PriorityName = Literal["high", "medium", "low"]
State = Literal["queued", "running", "completed", "failed", "cancelled"]
Metadata = dict[str, Any]
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


class JobOut(BaseModel):
    id: str
    kind: str
    state: State
    tenant: str
    priority: PriorityName
    lane: str | None
    key: str | None
    log: str | None
    parent_id: str | None
    rerun_of: str | None = Field(description="The job that it repeats.")
    payload: dict[str, Any]
    enqueued_at: float
    run_at: float
    started_at: float | None
    finished_at: float | None
    deadline: float | None
    timeout: float | None
    max_retries: int | None
    attempts: int
    releases: int = Field(description="How often it was put back without spending an attempt.")
    progress: float = Field(description="From 0 to 1.")
    message: str
    result: Any = None
    error: dict[str, Any] | None = Field(
        description="Of a failed job, or one that waits for its next run: type, message, "
        "retryable, place, its cause or context, the members of a group. Null while it runs."
    )
    history: list[dict[str, Any]]
    lines: list[dict[str, Any]] = Field(
        description="What its handler logged, the last 64 KiB: at, attempt, level, message."
    )
    waiting_for: str | None = Field(description="Why a queued job is not running; null at first.")


class JobPage(BaseModel):
    jobs: list[JobOut]
    next: str | None = Field(description="Give it as `before` for the next page.")


class Refusal(BaseModel):
    id: str
    why: str


class ChangeOutcome(BaseModel):
    refused: list[Refusal] = Field(
        alias="not", description="Of the `ids` that were given, those that are as they were."
    )


class Cancelled(ChangeOutcome):
    cancelled: int


class Redriven(ChangeOutcome):
    redriven: int
    count: int = Field(description="The same.")
    ids: list[str]


class Discarded(ChangeOutcome):
    discarded: int
    count: int = Field(description="The same.")
    ids: list[str]


class DocumentOut(BaseModel):
    id: str
    collection: str
    tenant: str
    generation: int = Field(description="Of two uploads the later has the greater one.")
    state: Literal["processing", "completed", "failed"]
    stage: str = Field(description="`waiting`, what is being done with it, or `done`.")
    progress: float = Field(description="From 0 to 1.")
    message: str
    live: bool = Field(description="Whether a version of it can be found now.")
    title: str
    mime: str
    size: int
    source: str
    metadata: Metadata
    chunks: int
    masked: dict[str, int] = Field(description="Kinds of personal data, and how often each.")
    error: dict[str, Any] | None
    accepted_at: float
    started_at: float | None
    finished_at: float | None
    remote: bool = Field(description="Whether its original is still to be fetched.")
    charset: str = Field(description="The encoding of its text, where a server has named one.")
    reading: dict[str, str] = Field(
        description="Of a page of the web: whether its `text` is the main one or the whole, and"
        " what it says of itself: language, author, date."
    )


class AddedDocuments(BaseModel):
    documents: list[DocumentOut]


class DocumentPage(AddedDocuments):
    next: int | None = Field(description="Give it as `before` for the next page.")


class ChunkOut(BaseModel):
    ordinal: int
    text: str
    start: int
    end: int
    tokens: int
    pages: list[int] | None = Field(description="First and last page, where it has pages.")
    section: list[str]
    script: str
    page_starts: list[int] = Field(
        description="Where in the document's text each of its pages after the first begins."
    )


class Chunks(BaseModel):
    chunks: list[ChunkOut]


class Upserted(BaseModel):
    document: DocumentOut
    job: str | None = Field(description="The job that is at work on it.")


class PassageOut(BaseModel):
    document: str
    collection: str
    tenant: str
    title: str
    source: str
    chunk: int
    text: str
    start: int
    end: int
    pages: list[int] | None = Field(description="First and last page, where it has pages.")
    section: list[str]
    snippet: str
    marks: list[list[int]] = Field(description="Where in the snippet words match: start, end.")
    score: float
    why: dict[str, Any] | None = Field(None, description="With `explain` only.")
    page_starts: list[int] = Field(
        description="Where in the document's text each of its pages after the first begins."
    )


class Found(BaseModel):
    mode: Literal["hybrid", "text"]
    note: str
    passages: list[PassageOut]


Much = Annotated[int, Field(ge=1, le=10**9)]
Long = Annotated[float, Field(ge=1e-6, le=1e9)]


class Limits(RequestBody):
    """Limits of a lane; null: as configured."""

    requests_per_interval: Much | None = None
    interval_seconds: Long | None = None
    min_interval_seconds: Annotated[float, Field(ge=0, le=1e9)] | None = None
    max_parallel: Much | None = None
    requests_per_day: Much | None = None


class LaneOut(BaseModel):
    name: str
    parent: str | None
    spacing: float = Field(description="Seconds from one start to the next.")
    configured_spacing: float | None = Field(
        description="Without the slow-down after repeated 429; null: it is not slowed down."
    )
    max_parallel: int
    in_flight: int
    waiting: int
    breaker: Literal["closed", "suspect", "open"]
    retry_at: float | None
    failing_since: float | None = Field(description="Of the breaker, while it is not closed.")
    blocked_until: float | None
    blocked_why: str | None
    per_day: int | None
    used_today: int
    limits: Limits | None = Field(description="What an operator has given it.")
    overridden: bool = Field(description="Whether it has limits other than configured.")


class Lanes(BaseModel):
    lanes: list[LaneOut]


class PeriodicOut(BaseModel):
    kind: str
    schedule: str
    last: float | None = Field(description="The last tick that was enqueued.")
    next: float
    unfinished: int
    processes: int


class PeriodicKinds(BaseModel):
    periodic: list[PeriodicOut]


class Alive(BaseModel):
    status: Literal["ok"]


class Ready(BaseModel):
    status: Literal["ready", "not ready"]
    checks: dict[str, str]
