"""Lane operations of a queue: permits, reports of how requests went, views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.model.lane import LaneLimits

if TYPE_CHECKING:
    from penstock.model.amounts import Amounts


class News(Enum):
    SUCCESS = "success"
    UNAVAILABLE = "unavailable"
    """A connection error, time-out or 5xx."""
    RATE_LIMITED = "rate limited"
    REFUSED = "refused"
    """401 or 403."""


class Report(NamedTuple):
    """The report of a request to its lane."""

    news: News
    retry_after: float | None = None
    lane: str | None = None
    """Where it happened, if not in the job's own lane."""
    address: str | None = None
    """host:port of what could not be reached."""
    told: bool = False
    """The lane knows already: the permit it happened under has come back with it."""
    resets_after: float | None = None
    """Rate limited: in how many seconds the provider's count starts anew, if it said so."""
    took: float | None = None
    """Seconds from the start of the request to its end, where the lane learns from that."""
    left: tuple[float, float, float, float, float] | None = None
    """There too, what the provider said is left: requests, and for how many seconds; tokens, and
    for how many seconds; below 0: it said nothing. And the tokens of this request, or 0."""


class ErrorReports(Protocol):
    """The reports by which lanes have learnt of errors: `penstock.lanes.reports.LaneReports`."""

    def note(self, error: BaseException, report: Report | None) -> None: ...

    def of(self, error: BaseException) -> Report | None: ...

    def pass_on(self, error: BaseException, other: BaseException) -> None: ...


class PermitRequest(NamedTuple):
    """A job, or a service, asks for the right to make one request."""

    lane: str
    ref: int
    """Negative, and new for each request of any process: see `new_ref`."""
    rate_only: bool
    """The job holds a slot of this lane already."""
    patience: float
    """Seconds it is worth waiting for the start."""
    job: int = 0
    """The job that asks (its seq): where it holds a slot already, it takes none. Negative, and new
    like a ref: a visit to a service. 0: nobody who holds a slot."""
    slot_only: bool = False
    """It makes no request: a job that has begun wants a slot of its lane again, to go on."""
    lead: float = 0.0
    """A start sooner than in so many seconds would be over before the answer is there."""
    question: bool = False
    """Somebody waits for the answer: jobs leave it a slot."""
    slack: float = 0.0
    """Seconds that the start may be late: the process has been late for others."""
    amount: Amounts | None = None
    """What it may use at most of what its lane counts; None: what is usual of its kind."""
    kind: str = ""
    """Of the job that asks."""


class Permit(NamedTuple):
    """The right to make one request in a lane, from `start_at` on."""

    lane: str
    ref: int
    start_at: float
    void_at: float = float("inf")
    """A request made later than this needs another permit."""
    timeout: float | None = None
    """The lane's limit for one request."""
    trial: bool = False
    """The lane's breaker is open, and this is the one try."""


RATE = "its rate"
"""Why a lane gives no permit: nothing but time helps."""


class Busy(NamedTuple):
    """Why a lane gives no permit."""

    lane: str
    until: float | None
    """When to ask again; None: when a slot is given back."""
    why: str
    give_up: bool = False
    """The lane is in trouble: nobody waits for it inside a job, however soon it may be tried."""
    refused: bool = False
    """It asks for more than the lane ever has."""


class Returned(NamedTuple):
    """A permit that is no longer needed, and how the request of this job went."""

    permit: Permit
    report: Report | None
    job: int
    """The job's seq, with the token and the id of its lease; 0: nobody's. Negative: a visit's."""
    token: int
    id: str = ""
    used: Amounts | None = None
    """What it has used of what its lane counts; None: what was reserved stands."""
    started: bool = False
    """That was reserved with the start of the job, and not with this permit."""


@dataclass(slots=True, frozen=True)
class LearntLimit:
    """The number of requests at a time that a lane has learnt to have."""

    max_parallel: int
    why: str
    since: float
    least: int
    most: int
    told: int | None = None
    """As many as the provider said are left, where these are fewer."""


@dataclass(slots=True, frozen=True)
class LaneInfo:
    """A lane, as shown to people."""

    name: str
    parent: str | None
    spacing: float
    """Seconds between starts now, slow-down included."""
    max_parallel: int
    in_flight: int
    waiting: int
    """Jobs in its line."""
    breaker: str
    """closed, suspect or open"""
    retry_at: float | None
    blocked_until: float | None
    """None also while only a person can lift the block; then there is a `blocked_why`."""
    blocked_why: str | None
    per_day: int | None
    used_today: int
    failing_since: float | None = None
    """When the first request of the present trouble failed; None while its breaker is closed."""
    limits: LaneLimits | None = None
    """What an operator has given it. The limits in force are those above."""
    overridden: bool = False
    """Whether there is anything of that kind."""
    probe_ok: bool | None = None
    """What the last probe found while it was in trouble; None: it was not probed."""
    configured_spacing: float | None = None
    """Seconds between starts without the slow-down; None: it is not slowed down."""
    learnt: LearntLimit | None = None
    """Where `max_parallel` is learnt: what it is by that, unless an operator has limited it."""
    usual_tokens: Mapping[str, int] | None = None
    """What a request that says nothing of its amount reserves, by kind: the p99 of their real use.
    None: nothing has been learnt of any."""


class LaneCommand(Enum):
    """An operator's command to a lane."""

    PAUSE = "pause"
    RESUME = "resume"
    """Lift a pause or a block."""
    RESET = "reset"
    """Resume, close the breaker, forget slow-downs."""
