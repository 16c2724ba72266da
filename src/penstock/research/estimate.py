"""Estimates how long searches will take, from the state of the lanes and from earlier searches.

Two things bound it: the rate of each provider (its lane's current interval, waiting jobs, and
blocks), and the number of concurrent searches, each as long as recent ones. The estimate is the
longer of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from penstock.ports.lanes import LaneInfo
from penstock.research.job_ids import SEARCH_LANE

FIRST_SECONDS = 5.0
"""Assumed duration of a search, until one has been measured."""


def estimate(
    searches: Sequence[Sequence[str]],
    lanes: Mapping[str, LaneInfo],
    parallel: int,
    seconds_taken: float | None,
    now: float,
) -> float:
    """Estimate the seconds until new searches are done. Each search is given by the lanes of its
    providers; `lanes` are those in use, and `parallel` is the number of concurrent searches."""
    if not searches:
        return 0.0
    waiting = (
        lanes[SEARCH_LANE].waiting + lanes[SEARCH_LANE].in_flight if SEARCH_LANE in lanes else 0
    )
    each = FIRST_SECONDS if seconds_taken is None else seconds_taken
    by_turns = (waiting + len(searches)) / parallel * each
    asked = Counter(lane for providers in searches for lane in providers)
    by_rate = max(
        (_wait(lanes.get(lane), count, now) for lane, count in asked.items()), default=0.0
    )
    return round(max(by_turns, by_rate), 1)


def _wait(lane: LaneInfo | None, count: int, now: float) -> float:
    """Seconds until that many more requests have been made in a lane."""
    if lane is None:  # never used: nobody is ahead, and its first requests tell
        return 0.0
    held = max(lane.blocked_until or now, lane.retry_at or now) - now
    return held + (lane.waiting + count) * lane.spacing
