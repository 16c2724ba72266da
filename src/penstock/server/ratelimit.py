"""Rate limits per API key, in one server process.

A generic cell rate algorithm: for each key one number, the time at which its allowance will be
whole again. A request moves it on by one interval, and is refused if that were further ahead than
the burst allows. So in any stretch of time no key gets more than its burst and its rate.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

MINUTE = 60 * 10**9
SECOND = 10**9
POLICY = "key"
"""What the limit is called in the header fields."""


@dataclass(slots=True, frozen=True)
class Limit:
    per_minute: int
    burst: int
    """How many may come at once after a pause; from 1 up to a minute's worth."""

    def __post_init__(self) -> None:
        if not 1 <= self.burst <= self.per_minute:
            raise ValueError(f"burst is from 1 to {self.per_minute}, not {self.burst!r}")

    @property
    def interval(self) -> int:
        """Nanoseconds from one request to the next. Rounded up, so that no minute has more."""
        return -(-MINUTE // self.per_minute)


@dataclass(slots=True, frozen=True)
class Allowance:
    """Whether a request may be made, and what its answer says about the next ones."""

    allowed: bool
    limit: Limit
    remaining: int
    """Requests that may be made at once."""
    reset: int
    """Seconds until there is one more of them; 0 when there are as many as there can be."""
    retry_after: int | None
    """For a refused one: seconds after which it is allowed, if no other takes its place."""

    def headers(self) -> dict[str, str]:
        """RateLimit and RateLimit-Policy as in draft-ietf-httpapi-ratelimit-headers-10, and
        Retry-After where the request is refused."""
        fields = {
            "RateLimit-Policy": f'"{POLICY}";q={self.limit.per_minute};w=60',
            "RateLimit": f'"{POLICY}";r={self.remaining};t={self.reset}',
        }
        if self.retry_after is not None:
            fields["Retry-After"] = str(self.retry_after)
        return fields


class RateLimiter:
    """Counts for each key. At most `most_keys` are remembered: with more in use at a time, the one
    unused for longest starts afresh, so memory is bounded and nobody is refused for another's
    sake."""

    def __init__(
        self, *, most_keys: int = 10_000, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._most_keys = most_keys
        self._clock = clock  # whole nanoseconds: sums of floats would let one too many through
        self._whole_at: OrderedDict[str, int] = OrderedDict()

    def take(self, key: str, limit: Limit) -> Allowance:
        """Count a request of `key`, unless it is over the limit: what is refused is not counted."""
        now = self._clock()
        interval, room = limit.interval, limit.interval * limit.burst
        # Under a slower limit than it has now, a key may have come to owe more than there is room.
        whole_at = min(max(self._whole_at.pop(key, now), now), now + room)
        allowed = whole_at + interval <= now + room
        if allowed:
            whole_at += interval
        self._whole_at[key] = whole_at
        if len(self._whole_at) > self._most_keys:
            self._whole_at.popitem(last=False)
        owed = whole_at - now
        wait = whole_at + interval - room - now
        return Allowance(
            allowed=allowed,
            limit=limit,
            remaining=(room - owed) // interval,
            reset=_seconds(owed % interval or min(owed, interval)),
            retry_after=None if allowed else max(1, _seconds(wait)),
        )


def _seconds(nanoseconds: int) -> int:
    return -(-nanoseconds // SECOND)
