"""A lane as stored: its configured limits, and the state that all processes share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from penstock.model.lane import LaneConfig, LaneLimits

DAY = 86400.0
SLOWED_SPACING = 0.02


@dataclass(slots=True)
class LaneState:
    """Limits, and what has been made of them so far. One row, changed only inside the
    transaction that read it."""

    name: str
    parent: str | None
    spacing: float
    tolerance: float
    """A start that is later than this is void: it would crowd the next one."""
    max_parallel: int
    per_day: int | None = None
    timeout: float | None = None
    breaker_first: float = 1.0
    breaker_cap: float = 300.0
    next_start: float = 0.0
    day: int = 0
    used_today: int = 0
    day_offset: float = 0.0
    """When the provider's day begins, in seconds after midnight UTC."""
    slowdown: float = 1.0
    """Times the spacing; doubled by repeated 429s, halved by sustained success."""
    limited: int = 0
    """429s without many successes between."""
    praised: int = 0
    """Successes since the last 429, or since the slow-down last changed."""
    credentials: int = 1
    """Whether requests carry a key, so that refusals (401, 403) may mean that it is no good."""
    refusers: str = "[]"
    """Runs that were refused, with no success between: [[job, token], ...]."""
    blocked_until: float = 0.0
    blocked_why: str | None = None
    """rate limited, credentials, paused"""
    step: int = 0
    """How far up the ladder the breaker is; 0: closed."""
    retry_at: float = 0.0
    trial: int | None = None
    """The job making the one try while the breaker is open."""
    trial_holder: int | None = None
    """The member it is made by; permits of two members can have the same number."""
    last_trial: int | None = None
    tried: str = "[]"
    """The jobs that failed in this outage; the next try is made with another."""
    doubted: str = "[]"
    """Jobs that failed while, as it turned out, others did not: next time it is their own."""
    suspect: int | None = None
    """The job whose failure may be the lane's fault or its own."""
    suspect_token: int = 0
    suspect_failures: int = 0
    """Runs of it that have failed since it is under suspicion; the token is the last one's."""
    suspect_at: float = 0.0
    address: str | None = None
    """Where the dependency was last not reached, as host:port."""
    probe_ok: int | None = None
    """How the last probe went, since the trouble began."""
    limits: str | None = None
    """What an operator has given it, as JSON; the limits above are those in force."""
    amounts: str | None = None
    """The limits of its amounts, as JSON; see `penstock.lanes.amounts`."""
    used: str | None = None
    """What of them is used, there too. None where nobody has used any."""
    auto: str | None = None
    """The bounds of what it learns of `max_parallel`, as JSON; see `penstock.lanes.learnt`."""
    learnt: str | None = None
    """What it has learnt, there too. None where it has not."""
    learnt_parallel: int | None = None
    """What follows from that for `max_parallel`, above, where no operator limits it."""
    asked_until: float = 0.0
    """Until then jobs leave a slot to questions; see `penstock.lanes.permit`."""
    touched_at: float = 0.0
    """When the row was last written."""
    in_flight: int = 0
    """Slots taken. Counted from the slots themselves, so it cannot drift."""
    asking: int = 0
    """Of those, by questions; counted too."""
    use: Any = None
    """What `used` says, once it was read; `keep` writes it down."""

    def keep(self) -> None:
        """Have `used` say what has been made of it, before the row is saved."""
        if self.use is not None and self.use.changed:
            self.used = self.use.text()

    @property
    def outage(self) -> str:
        """Why nothing starts while the breaker is open."""
        seen = self.address is not None and self.probe_ok == 0
        return "its breaker is open" + (f" (cannot reach {self.address})" if seen else "")

    @property
    def pace(self) -> float:
        """Seconds between starts now. A lane without a rate gets one when it has to slow down."""
        if self.slowdown == 1:
            return self.spacing
        return (self.spacing or SLOWED_SPACING) * self.slowdown

    @property
    def knows(self) -> bool:
        """Whether it has any of `KNOWN`."""
        return self.used is not None or self.learnt is not None

    @property
    def open(self) -> bool:
        return self.step > 0

    def free_slots(self) -> int:
        return max(0, self.max_parallel - self.in_flight)

    def slots_for_jobs(self, now: float) -> int:
        """Free slots, without the one that jobs leave to questions."""
        free = self.free_slots()
        if self.asked_until > now:
            free = min(free, self.max_parallel - 1 - (self.in_flight - self.asking))
        return max(0, free)

    def slots_for_questions(self) -> int:
        """Free slots, without the last one for jobs where there are several."""
        return max(0, min(self.free_slots(), max(1, self.max_parallel - 1) - self.asking))

    def may_start(self, now: float) -> bool:
        """Whether nothing but rate and slots can keep a request from starting."""
        if self.blocked_until > now:
            return False
        return not self.open or (self.trial is None and self.retry_at <= now)

    def day_of(self, at: float) -> int:
        """The number of the day, as the provider counts, that `at` is in."""
        return int((at - self.day_offset) // DAY)

    def day_after(self, at: float) -> float:
        """When the day that `at` is in ends."""
        return (self.day_of(at) + 1) * DAY + self.day_offset

    def left_today(self, now: float) -> float:
        """Requests left of the daily limit of the day that `now` is in."""
        if self.per_day is None:
            return float("inf")
        today = self.day_of(now)
        return (
            0 if today < self.day else self.per_day - (self.used_today if self.day == today else 0)
        )


CONFIGURED = frozenset(
    {
        *("name", "parent", "spacing", "tolerance", "max_parallel", "per_day", "timeout"),
        *("breaker_first", "breaker_cap", "credentials", "limits", "amounts", "auto"),
    }
)
"""What nothing that happens in a lane changes."""
KNOWN = ("used", "learnt", "learnt_parallel")
"""What is written only where a lane has any of it."""
APART = ("touched_at", *KNOWN)
"""What every write of a row sets to its own time, and what few lanes have."""
COUNTED = frozenset({"in_flight", "asking", "use"})
"""What is counted or worked on, and so not stored."""
QUESTIONS = "?"
"""Behind a lane's name: where the slots of its questions are stored once more, to be counted."""
OWN = {
    "spacing": "own_spacing",
    "tolerance": "own_tolerance",
    "max_parallel": "own_parallel",
    "per_day": "own_per_day",
}
"""Limits, and where a lane's row keeps what an operator has given instead, or nothing."""


def own_limits(limits: LaneLimits | None) -> dict[str, Any]:
    """What an operator has given a lane, as its row keeps it."""
    none: dict[str, Any] = {"limits": None, **dict.fromkeys(OWN.values())}
    if limits is None:
        return none
    config = limits.config
    return {
        "limits": json.dumps(limits.given()),
        "own_spacing": config.spacing if limits.paced else None,
        "own_tolerance": config.tolerance if limits.paced else None,
        "own_parallel": config.max_parallel,
        "own_per_day": config.requests_per_day,
    }


def limits_of(name: str, config: LaneConfig) -> dict[str, Any]:
    """What is configured of a lane, as its row keeps it."""
    amounts = None
    if config.has_amounts:
        from penstock.lanes.amounts import text_of

        amounts = text_of(config)
    auto = None
    if config.is_auto:
        from penstock.lanes import learnt

        auto = learnt.text_of(config)
    return {
        "name": name,
        "parent": config.parent,
        "spacing": config.spacing,
        "tolerance": config.tolerance,
        "max_parallel": config.parallel,
        "per_day": config.requests_per_day,
        "timeout": config.timeout_seconds,
        "breaker_first": config.breaker_first_seconds,
        "breaker_cap": config.breaker_cap_seconds,
        "credentials": int(config.credentials),
        "health_url": config.health_url,
        "probe_seconds": config.probe_seconds,
        "amounts": amounts,
        "auto": auto,
    }
