"""A lane: one outside dependency or scarce resource, and the limits all its users share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from penstock.errors import ConfigError

SPARE = 1.02
"""Spacing of exactly interval / n lets n + 1 starts into one window; this much more does not."""
LEAST_TOLERANCE = 0.005
"""Seconds; timers are not more exact than this on a busy machine."""
NO_HURRY = 60.0
"""Without a rate nothing is crowded by a late start."""
UNKNOWN_INTERVAL = 0.1
"""Seconds between starts where nothing is known of a lane's rate."""
UNKNOWN_PARALLEL = 2
"""Requests at a time where nothing is known of what a lane takes."""
AUTO = "auto"
"""As `max_parallel`: it is learnt."""
FIRST_PARALLEL = 4
"""Requests at a time where that is learnt, and nothing has been learnt yet."""


@dataclass(slots=True, frozen=True)
class LaneConfig:
    """The configured limits of a lane. Rate and minimum interval both apply."""

    requests_per_interval: int | None = None
    interval_seconds: float | None = None
    min_interval_seconds: float | None = None
    max_parallel: int | str | None = None
    """`auto`: learnt from how requests go, from `auto_min` to `auto_max`."""
    auto_min: int = 1
    auto_max: int = 100
    requests_per_day: int | None = None
    tokens_per_interval: int | None = None
    input_tokens_per_interval: int | None = None
    output_tokens_per_interval: int | None = None
    tokens_per_day: int | None = None
    cost_per_day: float | None = None
    window: str = "sliding"
    """How tokens of an interval are counted: `sliding`, or a `bucket` that is refilled."""
    oversized: str = "refuse"
    """A request that is larger than a limit: `refuse` it, or let it through `alone`."""
    timeout_seconds: float | None = None
    """One job's or request's limit in this lane; a job's own, if shorter, holds."""
    breaker_first_seconds: float = 1.0
    breaker_cap_seconds: float = 300.0
    """While the breaker is open, tries wait first, twice that, ... up to the cap."""
    health_url: str | None = None
    """Where a cheap probe can see whether the service is back."""
    probe_seconds: float = 3.0
    parent: str | None = None
    """A lane whose limits hold for all its children together."""
    credentials: bool = True
    """Requests carry a key: three jobs in a row that are refused (401, 403) block the lane."""
    assumed: bool = False
    """Nobody configured it: limits that the queue knows already stay as they are."""

    def __post_init__(self) -> None:
        for field in fields(self):
            check_value(field.name, getattr(self, field.name))
        rates = [name for name in (RATE[0], *TOKEN_RATES) if getattr(self, name) is not None]
        if bool(rates) != (self.interval_seconds is not None):
            raise ConfigError(f"{rates[0] if rates else RATE[0]} and interval_seconds go together")
        if self.counts_tokens and not 0.1 <= (self.interval_seconds or 0.0) <= 86400:
            raise ConfigError("tokens are counted over an interval_seconds from 0.1 to 86400")
        if self.auto_min > self.auto_max:
            raise ConfigError(f"auto_min is {self.auto_min}, more than auto_max, {self.auto_max}")

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens of an interval are limited."""
        return any(getattr(self, name) is not None for name in TOKEN_RATES)

    @property
    def has_amounts(self) -> bool:
        """Whether tokens or money are limited."""
        return self.counts_tokens or (self.tokens_per_day, self.cost_per_day) != (None, None)

    @property
    def spacing(self) -> float:
        """Seconds from one start to the next that keep both the rate and the interval."""
        if self.requests_per_interval is None or self.interval_seconds is None:
            unknown = 0.0 if self.counts_tokens else UNKNOWN_INTERVAL
            known = self.min_interval_seconds
            return SPARE * (unknown if known is None else known)
        rate = self.interval_seconds / self.requests_per_interval
        return SPARE * max(rate, self.min_interval_seconds or 0.0)

    @property
    def tolerance(self) -> float:
        """How late a start may be: half of what the spare leaves over a whole window."""
        if not self.spacing and self.interval_seconds is None:
            return NO_HURRY
        window = self.interval_seconds or self.spacing
        return max(LEAST_TOLERANCE, window * (SPARE - 1) / 2)

    @property
    def is_auto(self) -> bool:
        """Whether the lane learns how many requests at a time it takes."""
        return self.max_parallel == AUTO

    @property
    def parallel(self) -> int:
        """Requests at a time; where that is learnt, those it begins with."""
        if isinstance(self.max_parallel, int):
            return self.max_parallel
        if self.max_parallel is None:
            return UNKNOWN_PARALLEL
        return max(self.auto_min, min(FIRST_PARALLEL, self.auto_max))

    def with_changes(self, changes: Mapping[str, Any]) -> LaneConfig:
        """A rate that is given replaces a minimum interval that was not: that of a built-in
        lane would hold it back, unseen."""
        for name in changes:
            if name not in KEYS:
                raise ConfigError(f"unknown key {name!r}; there are: {', '.join(sorted(KEYS))}")
        rate = "requests_per_interval" in changes or "interval_seconds" in changes
        base = replace(self, min_interval_seconds=None) if rate else self
        return replace(base, assumed=False, **changes)


@dataclass(slots=True, frozen=True)
class LaneLimits:
    """Limits that an operator gives a lane instead of the configured ones; None: as configured.

    A rate is given as a whole: with any of the first three, what is configured of them does not
    count.
    """

    requests_per_interval: int | None = None
    interval_seconds: float | None = None
    min_interval_seconds: float | None = None
    max_parallel: int | None = None
    requests_per_day: int | None = None

    def __post_init__(self) -> None:
        if self.config.is_auto:  # where they are checked
            raise ConfigError("auto is configured, not given: unset max_parallel to go by it again")
        if not self.given():
            raise ConfigError(f"give at least one of {', '.join(LIMITS)}")

    @property
    def config(self) -> LaneConfig:
        return LaneConfig(**self.given())

    def given(self) -> dict[str, Any]:
        """What is not as configured."""
        values = {name: getattr(self, name) for name in LIMITS}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def paced(self) -> bool:
        """Whether they say anything of the rate."""
        return any(name in RATE for name in self.given())


RATE = ("requests_per_interval", "interval_seconds", "min_interval_seconds")
TOKEN_RATES = ("tokens_per_interval", "input_tokens_per_interval", "output_tokens_per_interval")
LIMITS = (*RATE, "max_parallel", "requests_per_day")
"""What can be changed while jobs run."""

KEYS = [field.name for field in fields(LaneConfig) if field.name != "assumed"]
"""What can be configured."""

PROFILES = "profiles"
"""A lane's changes by credential: {environment variable: {key: value}}, for those that are set."""

_SWITCHES = ("credentials", "assumed")
_TEXTS = ("health_url", "parent")
_CHOICES = {"window": ("sliding", "bucket"), "oversized": ("refuse", "alone")}
_NEEDED = (
    "auto_min",
    "auto_max",
    "breaker_first_seconds",
    "breaker_cap_seconds",
    "probe_seconds",
    *_SWITCHES,
    *_CHOICES,
)
_WHOLE = (
    *("requests_per_interval", "max_parallel", "auto_min", "auto_max"),
    *("requests_per_day", "tokens_per_day"),
)


def check_value(name: str, value: Any) -> None:
    """ConfigError unless `value` can be the value of a lane's key `name`."""
    if value is None:
        if name in _NEEDED:
            raise ConfigError(f"{name} cannot be left empty")
        return
    if name in _SWITCHES:
        if not isinstance(value, bool):
            raise ConfigError(f"{name} must be true or false, not {value!r}")
        return
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise ConfigError(f"{name} must be {' or '.join(_CHOICES[name])}, not {value!r}")
        return
    if name in _TEXTS:
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{name} must be a text, not {value!r}")
        return
    if name == "max_parallel" and value == AUTO:
        return
    whole = name in _WHOLE or name in TOKEN_RATES
    kinds = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, kinds):
        what = "a whole number" if whole else "a number"
        what += " or auto" if name == "max_parallel" else ""
        raise ConfigError(f"{name} must be {what}, not {value!r}")
    if name == "min_interval_seconds" and value == 0:
        return
    if not 1e-6 <= value <= 1e9:
        raise ConfigError(f"{name} must be over 0 and at most a billion, not {value!r}")


BUILT_IN: dict[str, LaneConfig] = {
    "semantic_scholar": LaneConfig(
        requests_per_interval=100, interval_seconds=300.0, min_interval_seconds=3.0, max_parallel=1
    ),
    "openalex": LaneConfig(
        requests_per_interval=10, interval_seconds=1.0, min_interval_seconds=0.1, max_parallel=2
    ),
    "crossref": LaneConfig(requests_per_interval=5, interval_seconds=1.0, max_parallel=1),
    "arxiv": LaneConfig(min_interval_seconds=3.0, max_parallel=1),
    # Refused requests do not block it: it has no key, and answers 403 where JSON is switched off.
    "searxng": LaneConfig(min_interval_seconds=1.0, max_parallel=2, credentials=False),
    # Searches of research tasks: each asks its providers and reads pages in lanes of their own.
    "search": LaneConfig(min_interval_seconds=0.0, max_parallel=2, credentials=False),
    "embedder": LaneConfig(min_interval_seconds=0.0, max_parallel=4),
    # Refused requests do not block it: S3 also answers 403 where an object is missing.
    "blobs": LaneConfig(min_interval_seconds=0.0, max_parallel=16, credentials=False),
    # What others have stored in a bucket, and name as a document; as above.
    "bucket:*": LaneConfig(min_interval_seconds=0.0, max_parallel=16, credentials=False),
    # Documents of one's own: only so that searches do not take the machine for themselves.
    "documents": LaneConfig(min_interval_seconds=0.0, max_parallel=4, credentials=False),
    "browser": LaneConfig(min_interval_seconds=1.0, max_parallel=1),
    "browser.*": LaneConfig(
        min_interval_seconds=1.0, max_parallel=1, parent="browser", credentials=False
    ),
    # What models are asked for has its own lane each, also on one server, and the parent has room
    # for all: scans that are read for minutes do not take the place of what somebody waits for.
    "llm": LaneConfig(min_interval_seconds=0.0, max_parallel=16),
    "llm.ingest": LaneConfig(
        min_interval_seconds=0.0, max_parallel=2, timeout_seconds=300.0, parent="llm"
    ),
    "llm.plan": LaneConfig(
        min_interval_seconds=0.0, max_parallel=4, timeout_seconds=20.0, parent="llm"
    ),
    "llm.search": LaneConfig(
        min_interval_seconds=0.0, max_parallel=8, timeout_seconds=20.0, parent="llm"
    ),
    "llm.answer": LaneConfig(
        min_interval_seconds=0.0, max_parallel=2, timeout_seconds=60.0, parent="llm"
    ),
    "llm.*": LaneConfig(min_interval_seconds=0.0, max_parallel=4, parent="llm"),
    # Searches for answers, where a service of its own makes them.
    "librarian": LaneConfig(min_interval_seconds=0.0, max_parallel=16),
    "fetch": LaneConfig(min_interval_seconds=0.0, max_parallel=16),
    "host:*": LaneConfig(
        min_interval_seconds=1.0, max_parallel=2, parent="fetch", credentials=False
    ),
}
"""What people use most. Names with `*` are patterns: each name that matches gets its own lane."""
