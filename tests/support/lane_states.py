"""Lane rows for tests of pure logic, as an adapter would load them."""

from __future__ import annotations

from typing import Any

from penstock.lanes.state import LaneState
from penstock.model.lane import LaneConfig

NOON = 20_000 * 86400.0 + 43_200.0
"""A time that lies far from midnight (UTC)."""


def lane_state(config: LaneConfig | None = None, name: str = "lane", **values: Any) -> LaneState:
    """A lane in which nothing has happened yet, with `values` changed."""
    config = config or LaneConfig(min_interval_seconds=0.0, max_parallel=10)
    given: dict[str, Any] = {
        "name": name,
        "parent": config.parent,
        "spacing": config.spacing,
        "tolerance": config.tolerance,
        "max_parallel": config.parallel,
        "per_day": config.requests_per_day,
        "timeout": config.timeout_seconds,
        "breaker_first": config.breaker_first_seconds,
        "breaker_cap": config.breaker_cap_seconds,
    }
    return LaneState(**{**given, **values})
