"""Tools for operators: why jobs wait, what failed, retry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field, RootModel

from penstock.api.overview import lane_view
from penstock.api.tenant_view import dead_letters
from penstock.mcp.errors import CallRefused
from penstock.mcp.results import Fitted, ToolResult, fitting, more
from penstock.mcp.tool_view import ReadAccess, WriteAccess
from penstock.mcp.tools.define import define
from penstock.model.access import KeyScope
from penstock.research.job_ids import log_of
from penstock.wire.jobs import ChangedJobs
from penstock.wire.operators import LaneList, LaneView
from penstock.wire.view import WireView, made

MAX_LISTED = 100
NAMED = 100
"""Maximum ids of redriven jobs in a result."""

Kind = Annotated[
    str | None,
    Field(max_length=200, description="Only jobs of this kind, or a pattern: `ingest.*`."),
]
ErrorType = Annotated[
    str | None,
    Field(max_length=240, description="Only jobs that failed with this error: `FetchError`."),
]


@dataclass(slots=True, frozen=True)
class DeadLetter(WireView):
    """A job that failed permanently."""

    id: str
    """Pass it to `redrive`."""
    kind: str
    lane: str | None
    """The external service it needs."""
    log: str | None
    """The log it reports to, such as that of a task."""
    attempts: int
    finished_at: float | None
    """When it failed, in seconds since 1970."""
    error: Mapping[str, Any]
    """Type, message and details."""


@dataclass(frozen=True, kw_only=True)
class DeadLetterList(Fitted):
    dead_letters: Sequence[DeadLetter]
    """Newest first."""

    def in_words(self) -> str:
        if not self.dead_letters:
            return "There are no dead letters: no job has failed permanently."
        lines = [
            f"{one.id} {one.kind}, {one.attempts} attempts: "
            f"{one.error.get('type', '')}: {one.error.get('message', '')}"
            for one in self.dead_letters
        ]
        return "\n".join(lines) + more(self.cursor)


@dataclass(slots=True, frozen=True)
class RedriveResult(ChangedJobs, ToolResult):
    """Jobs that were queued again; at most a hundred ids."""

    def in_words(self) -> str:
        return f"{self.count} dead letters are queued again, with fresh retries."


@dataclass(slots=True, frozen=True)
class LaneStatus(LaneList, Fitted):
    """The external services in use. Breaker `open`: the service is down and retried automatically.
    Blocked by `credentials`: a person must act."""

    def in_words(self) -> str:
        if not self.lanes:
            return "No lane is in use: nothing outside has been asked yet."
        return "\n".join(map(_line, self.lanes)) + more(self.cursor)


def _line(lane: LaneView) -> str:
    line = f"{lane.name}: {lane.waiting} waiting, {lane.in_flight} of {lane.max_parallel} in flight"
    if lane.learnt is not None:
        line += f", learnt: {lane.learnt.why}"
    if lane.breaker != "closed":
        line += f", breaker {lane.breaker}"
    if lane.blocked_why:
        line += f", blocked: {lane.blocked_why}"
    if lane.per_day is not None:
        line += f", {lane.used_today} of {lane.per_day} requests used today"
    return line


async def list_dead_letters(
    tenant_view: ReadAccess,
    kind: Kind = None,
    error_type: ErrorType = None,
    task_id: Annotated[
        str | None, Field(max_length=64, description="Only jobs of this research task.")
    ] = None,
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="Maximum items.")] = 20,
    cursor: Annotated[str | None, Field(max_length=64)] = None,
) -> Annotated[CallToolResult, RootModel[DeadLetterList]]:
    """List jobs that failed permanently, and why. They stay failed until they are redriven. Look
    here when pages or documents are missing and get_status does not say why. The rest of a task
    continues without them."""

    where = dead_letters(kind, error_type, None if task_id is None else log_of(task_id))

    async def ask(count: int) -> DeadLetterList:
        found = await tenant_view.jobs(where, count + 1, cursor)
        shown = found[:count]
        return DeadLetterList(
            dead_letters=[made(DeadLetter, job, error=job.error or {}) for job in shown],
            cursor=shown[-1].id if len(found) > count else None,
        )

    return (await fitting(ask, limit)).result()


async def redrive(
    tenant_view: WriteAccess,
    ids: Annotated[
        list[Annotated[str, Field(max_length=64)]] | None,
        Field(max_length=1000, description="From list_dead_letters."),
    ] = None,
    kind: Kind = None,
    error_type: ErrorType = None,
    everything: Annotated[bool, Field(description="All dead letters.")] = False,
) -> Annotated[CallToolResult, RootModel[RedriveResult]]:
    """Retry failed jobs, with fresh attempts. Do it once their cause is fixed: a page that does not
    exist fails again. Select jobs by `ids`, `kind` or `error_type`, or set `everything`."""
    if all(one is None for one in (ids, kind, error_type)) != everything:
        raise CallRefused("invalid", "say which: ids, kind or error_type; or everything=true alone")
    await tenant_view.admit()
    again = await tenant_view.redrive(dead_letters(kind, error_type, None, ids))
    return RedriveResult(len(again), again[:NAMED], []).result()


async def lane_status(
    tenant_view: ReadAccess,
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="Maximum items.")] = 50,
    cursor: Annotated[str | None, Field(max_length=512)] = None,
) -> Annotated[CallToolResult, RootModel[LaneStatus]]:
    """Show the external services in use (lanes): how many jobs wait for each, the rate limit of
    each, and which are down (`breaker` open) or blocked. Use it to explain why a task takes long.
    Waiting costs nothing: jobs of a lane that is down wait, lose no attempts, and resume
    automatically once it is back."""
    hosts = KeyScope.ADMIN in tenant_view.caller.scopes
    seen = sorted(await tenant_view.lanes(hosts=hosts), key=lambda lane: lane.name)
    left = [lane for lane in seen if cursor is None or lane.name > cursor]

    async def ask(count: int) -> LaneStatus:
        shown = left[:count]
        return LaneStatus(
            lanes=[lane_view(lane) for lane in shown],
            cursor=shown[-1].name if len(left) > count else None,
        )

    return (await fitting(ask, limit)).result()


TOOLS = (
    define(lane_status, "Show outside services", reads=True),
    define(list_dead_letters, "List failed jobs", reads=True),
    define(redrive, "Try failed jobs again", repeatable=True, outside=True),
)
