"""Schemas of operators' data on the wire."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from penstock.server.schemas import LaneOut, State


class KindOut(BaseModel):
    kind: str
    states: dict[State, int] = Field(description="How many are in each; all states are there.")
    oldest_queued_at: float | None


class ProcessOut(BaseModel):
    id: str
    host: str
    pid: int
    state: str = Field(description="`running`, `draining`, `degraded` or `gone`.")
    kinds: list[str]
    max_workers: int
    busy: int
    parked: int = Field(description="Jobs that wait for others or for permits, without a worker.")
    stuck: int = Field(description="Workers whose thread runs past its timeout.")
    blocked_by: str | None = Field(
        description="The job that blocks its event loop, or has done so within the last minute."
    )
    blocked_seconds: float | None = Field(
        description="For how long it did; null while it lasts, or where none did."
    )
    joined_at: float
    heartbeat_at: float
    lease_until: float


class AttentionOut(BaseModel):
    what: str = Field(description="One of a few words, such as `breaker open`.")
    subject: str = Field(description="The lane, kind or worker process it is about.")
    since: float | None = Field(description="Null where that is not known.")
    todo: str = Field(description="What to do, in one sentence.")


class Overview(BaseModel):
    tenant: str
    states: dict[State, int] = Field(description="Jobs of the tenant.")
    kinds: list[KindOut]
    oldest_queued_seconds: float | None
    processes: list[ProcessOut] | None = Field(
        description="The worker processes. This and what follows is for admins, of all tenants; "
        "null for others."
    )
    lanes: list[LaneOut] | None = Field(description="Those in trouble.")
    unhandled_kinds: list[str] | None = Field(
        description="With queued jobs that no worker process handles."
    )
    attention: list[AttentionOut] | None = Field(description="The worst first.")


class DeadGroupOut(BaseModel):
    kind: str
    error_type: str
    count: int
    first_at: float = Field(description="When the first of those that are left failed.")
    last_at: float
    message: str = Field(description="What the last one said.")
    newest_id: str


class DeadGroups(BaseModel):
    groups: list[DeadGroupOut]


class ActionOut(BaseModel):
    id: str
    at: float
    tenant: str
    key_id: str | None = Field(description="Null: nobody in particular, on the server's machine.")
    key_name: str
    action: str = Field(description="What was done: `jobs.cancel`, `lane.pause` and so on.")
    subject: str = Field(description="To what; `?` where there was none of that name.")
    detail: dict[str, Any] = Field(description="Figures, filters, limits; no payloads.")
    outcome: Literal["begun", "done", "partial", "failed"]


class ActionPage(BaseModel):
    actions: list[ActionOut]
    next: str | None = Field(description="Give it as `before` for the next page.")


class LaneHistory(BaseModel):
    lane: str
    in_flight: list[int]
    waiting: list[int]


class HistoryOut(BaseModel):
    """Columns of one length, the oldest sample first."""

    at: list[float] = Field(description="Seconds since 1970.")
    completed: list[float] = Field(description="Runs a second that ended so.")
    failed: list[float]
    retried: list[float]
    wait_p50: list[float | None] = Field(
        description="Seconds from being due to the start, of half of them; null where none ended."
    )
    wait_p95: list[float | None]
    run_p50: list[float | None] = Field(description="Seconds that a run took.")
    run_p95: list[float | None]
    busy: list[int] = Field(description="Jobs that run.")
    workers: list[int]
    lanes: list[LaneHistory] = Field(description="Those with most to do.")
