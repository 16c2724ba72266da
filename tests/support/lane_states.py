"""Lane rows for tests of pure logic, as an adapter would load them."""

from __future__ import annotations

from typing import Any

from penstock.lanes.state import LaneState, limits_of
from penstock.model.lane import LaneConfig

NOON = 20_000 * 86400.0 + 43_200.0
"""A time that lies far from midnight (UTC)."""


def lane_state(config: LaneConfig | None = None, name: str = "lane", **values: Any) -> LaneState:
    """A lane in which nothing has happened yet, with `values` changed."""
    config = config or LaneConfig(min_interval_seconds=0.0, max_parallel=10)
    given = limits_of(name, config)
    del given["health_url"], given["probe_seconds"]  # the probe's, not the rules'
    return LaneState(**{**given, **values})
