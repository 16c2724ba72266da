"""Request bodies, with the names of the library. Responses are in `penstock.wire`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from penstock.answers.phases import MAX_SECONDS as MAX_ANSWER_SECONDS
from penstock.answers.service import LEAST_SECONDS, MAX_COLLECTIONS
from penstock.answers.service import QUESTION_LIMIT as ASK_LIMIT
from penstock.documents.document_names import KEY_LIMIT, METADATA_LIMIT
from penstock.engine.handlers import KIND
from penstock.model.budget import MOST_COST, MOST_TOKENS, Period
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
"""Maximum keys of a document's metadata."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=240)]
Kind = Annotated[str, StringConstraints(pattern=f"^{KIND.pattern}$")]
Plain = Annotated[str, StringConstraints(pattern=r"^[^\x00]{1,512}$")]
"""Text without NUL, which PostgreSQL cannot store."""
TITLE_LIMIT = 1000
Title = Annotated[str, StringConstraints(max_length=TITLE_LIMIT)]
"""A title; the library keeps as much as it shows."""
MetadataKey = Annotated[str, StringConstraints(min_length=1, max_length=KEY_LIMIT)]
Said = Annotated[
    dict[MetadataKey, Any],
    Field(max_length=MAX_KEYS, description=f"Up to {METADATA_LIMIT:,} bytes as JSON."),
]
"""Metadata from a caller."""


class RequestBody(BaseModel):
    """Base of request bodies: unknown fields are errors, and so are values of another type, such as
    0 for false."""

    model_config = ConfigDict(extra="forbid", strict=True)
    optional: ClassVar[bool] = False
    """Whether it may be left out."""


class NewJobBody(RequestBody):
    kind: Kind
    payload: dict[str, Any] = Field(default_factory=dict)
    key: Annotated[str, StringConstraints(min_length=1, max_length=512)] | None = Field(
        None, description="Idempotency key, per tenant and kind."
    )
    priority: PriorityName = "medium"
    delay: float | None = Field(
        None, ge=0, le=366 * 86400, description="Seconds to wait before it may start."
    )
    run_at: float | None = Field(None, ge=0, le=2**33, description="Seconds since 1970.")
    deadline: float | None = Field(None, ge=0, le=2**33, description="Seconds since 1970.")
    timeout: float | None = Field(
        None,
        gt=0,
        le=30 * 86400,
        description="Timeout of a run in seconds; null: that of its kind.",
    )
    max_retries: int | None = Field(None, ge=0, le=1000, description="Null: that of its kind.")
    log: Annotated[str, StringConstraints(min_length=1, max_length=512)] | None = Field(
        None, description="Log that its changes are written to."
    )
    debounce: Annotated[float, Field(gt=0, le=366 * 86400)] | None = Field(
        None, description="Seconds after the last job with its `debounce_key`, one for all of them."
    )
    debounce_key: Annotated[str, StringConstraints(min_length=1, max_length=512)] | None = Field(
        None, description="What `debounce` goes by, per tenant and kind."
    )
    max_wait: Annotated[float, Field(gt=0, le=366 * 86400)] | None = Field(
        None, description="Seconds it is put off at most; null: ten times `debounce`."
    )
    unique_for: Annotated[float, Field(gt=0, le=366 * 86400)] | None = Field(
        None, description="Seconds in which an equal one gives the first one's job."
    )
    unique_key: Annotated[str, StringConstraints(min_length=1, max_length=512)] | None = Field(
        None, description="What is equal for `unique_for`; null: the same payload."
    )


class ScheduleBody(RequestBody):
    kind: Kind
    payload: dict[str, Any] = Field(default_factory=dict)
    cron: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="A cron expression: `0 3 * * *`; or `every`."
    )
    every: float | None = Field(
        None, ge=1, le=366 * 86400, description="Seconds between two ticks; or `cron`."
    )
    timezone: Annotated[str, StringConstraints(min_length=1, max_length=100)] = Field(
        "UTC", description="Of `cron`, such as `Europe/Zurich`."
    )
    priority: PriorityName = "medium"
    overlap: bool = Field(
        False,
        description="Enqueue a tick although the job of the last one has not finished.",
    )
    catch_up: float | None = Field(
        None,
        ge=1,
        le=366 * 86400,
        description="Seconds for which a tick that nobody was there for is made up; null: 3600.",
    )


class SignalBody(RequestBody):
    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    payload: Any = Field(
        True, description="Any JSON value but null, which `ctx.wait_for` returns after its timeout."
    )
    key: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="The same key is the same signal, for a job."
    )


class AnswerBody(RequestBody):
    question: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(
        description="`id` of the question."
    )
    content: dict[str, Any] = Field(default_factory=dict, description="As its schema says.")
    decline: bool = Field(False, description="Do not answer: the tool goes on without.")


class RerunBody(RequestBody):
    optional = True
    from_step: Annotated[str, StringConstraints(min_length=1, max_length=220)] | None = Field(
        None,
        description="Take over what was recorded before this step; `name#3`: before the third.",
    )


class NewDocument(RequestBody):
    text: str | None = Field(None, description="The text itself; or `url`.")
    url: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    id: Name | None = None
    title: Title = ""
    collection: Name = "default"
    metadata: Said = Field(default_factory=dict)
    priority: PriorityName = "medium"
    retry: bool = Field(False, description="Retry if the same content has failed before.")


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
    """Selects jobs; all given filters must match."""

    ids: list[Plain] | None = Field(None, max_length=10_000)
    kind: Plain | None = None
    error_type: Plain | None = None
    log: Plain | None = None
    parent: Plain | None = None
    lane: Plain | None = None
    priority: PriorityName | None = None
    enqueued_after: Moment | None = None
    enqueued_before: Moment | None = None
    all: bool = Field(False, description="Required if there are no other filters.")


Much = Annotated[int, Field(ge=1, le=10**9)]
Long = Annotated[float, Field(ge=1e-6, le=1e9)]


class Limits(RequestBody):
    """Limits of a lane; null: as configured."""

    requests_per_interval: Much | None = None
    interval_seconds: Long | None = None
    min_interval_seconds: Annotated[float, Field(ge=0, le=1e9)] | None = None
    max_parallel: Much | None = None
    requests_per_day: Much | None = None


class NewBudget(RequestBody):
    """Limits of what is spent in a period: money, tokens, or both."""

    cost: float | None = Field(None, ge=0, le=MOST_COST, description="In your prices' currency.")
    tokens: int | None = Field(None, ge=0, le=MOST_TOKENS)
    per: Period = "day"
    timezone: Annotated[str, StringConstraints(max_length=100)] = Field(
        "UTC", description="Whose days, weeks and months these are: Europe/Berlin."
    )


class NewTask(RequestBody):
    question: Annotated[str, StringConstraints(min_length=1, max_length=QUESTION_LIMIT)]
    budget_pages: int | None = Field(None, ge=0, le=1_000_000, description="Maximum pages to read.")
    budget_seconds: float | None = Field(
        None, gt=0, le=MAX_SECONDS, description="Maximum time to search, without pauses."
    )


class NewSearches(RequestBody):
    queries: list[Query] = Field(min_length=1, max_length=MAX_QUERIES)
    max_results_per_query: int = Field(10, ge=1, le=MAX_RESULTS)
    priority: PriorityName = "medium"
    providers: list[Provider] | None = Field(
        None, min_length=1, max_length=20, description="Default: all configured providers."
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
        "documents", description="`web`: also search providers, and read the pages they find."
    )
    collections: list[Name] | None = Field(
        None, min_length=1, max_length=MAX_COLLECTIONS, description="Default: all."
    )
    seconds: float | None = Field(
        None,
        ge=LEAST_SECONDS,
        le=MAX_ANSWER_SECONDS,
        description="Time limit; default: `answer_seconds`.",
    )
