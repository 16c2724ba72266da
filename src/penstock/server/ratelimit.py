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
"""Name of the limit in the header fields."""


@dataclass(slots=True, frozen=True)
class Limit:
    per_minute: int
    burst: int
    """Requests that may come at once after a pause; from 1 up to a minute's worth."""

    def __post_init__(self) -> None:
        if not 1 <= self.burst <= self.per_minute:
            raise ValueError(f"burst is from 1 to {self.per_minute}, not {self.burst!r}")

    @property
    def interval(self) -> int:
        """Nanoseconds between two requests. Rounded up, so that no minute has more."""
        return -(-MINUTE // self.per_minute)


@dataclass(slots=True, frozen=True)
class Allowance:
    """Whether a request is allowed, and what the response says about the next ones."""

    allowed: bool
    limit: Limit
    remaining: int
    """Requests that are allowed at once."""
    reset: int
    """Seconds until one more is allowed; 0 at the maximum."""
    retry_after: int | None
    """For a rejected request: seconds until it is allowed, if no other comes first."""

    def headers(self) -> dict[str, str]:
        """Build RateLimit and RateLimit-Policy as in draft-ietf-httpapi-ratelimit-headers-10, and
        Retry-After for a rejected request."""
        fields = {
            "RateLimit-Policy": f'"{POLICY}";q={self.limit.per_minute};w=60',
            "RateLimit": f'"{POLICY}";r={self.remaining};t={self.reset}',
        }
        if self.retry_after is not None:
            fields["Retry-After"] = str(self.retry_after)
        return fields


class RateLimiter:
    """Counts per key. At most `most_keys` are tracked: if more are in use, the least recently used
    starts over, so memory is bounded and nobody is rejected because of another."""

    def __init__(
        self, *, most_keys: int = 10_000, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._most_keys = most_keys
        self._clock = clock  # whole nanoseconds: sums of floats would let one too many through
        self._whole_at: OrderedDict[str, int] = OrderedDict()

    def take(self, key: str, limit: Limit) -> Allowance:
        """Count a request of `key`, unless it is over the limit: rejected requests do not count."""
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
