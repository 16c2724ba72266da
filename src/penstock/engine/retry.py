"""When a failed job is run again."""

from __future__ import annotations

import random

from penstock.model.settings import Settings

_random = random.Random()  # noqa: S311 (jitter, not a secret)


def retry_delay(attempt: int, settings: Settings) -> float:
    """Seconds to wait after run number `attempt` failed: full jitter under a doubling cap.

    Full jitter because jobs that failed together should not come back together.
    """
    ceiling = settings.retry_base_seconds * 2.0 ** min(attempt - 1, 60)
    return _random.uniform(0, min(settings.retry_cap_seconds, ceiling))


def reconnect_delay(failures: int, settings: Settings) -> float:
    """Seconds before the next try to reach the queue; at least half of it is certain."""
    ceiling = settings.reconnect_first_seconds * 2.0 ** min(failures - 1, 60)
    return min(settings.reconnect_cap_seconds, ceiling) * _random.uniform(0.5, 1.0)
