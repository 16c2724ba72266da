"""Tells lanes that learn their limits how long requests took, and what providers said is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from penstock.model.lane import LaneConfig
from penstock.ports.lanes import Report

if TYPE_CHECKING:
    from penstock.ports.bill import Bill

KEPT = 10_000
"""Lanes of which it is remembered whether they learn."""


class Heard(NamedTuple):
    """The request that was made with the start of a job: its duration, and its bill."""

    took: float
    """Seconds; below 0: its requests are told of with permits of their own."""
    bill: Bill | None


ELSEWHERE = Heard(-1.0, None)


class LaneTimes:
    """Knows which lanes learn; of all others nothing is measured or told."""

    def __init__(self, lane_config: Callable[[str], LaneConfig]) -> None:
        self._lane_config = lane_config
        self._learns: dict[str, bool] = {}

    def learns(self, lane: str) -> bool:
        """Whether `max_parallel` of the lane or its parent is learnt."""
        known = self._learns.get(lane)
        if known is None:
            if len(self._learns) >= KEPT:
                self._learns.clear()
            config = self._lane_config(lane)
            known = config.is_auto
            if config.parent is not None:
                known = known or self._lane_config(config.parent).is_auto
            self._learns[lane] = known
        return known

    def told(self, report: Report, lane: str, took: float, bill: Bill | None = None) -> Report:
        """The report with what `lane` learns from, if it does."""
        if took < 0 or report.told or not self.learns(report.lane or lane):
            return report
        if bill is None or bill.headers is None:
            return report._replace(took=took)
        from penstock.text.rate_limit_headers import left_of

        left, spent = left_of(bill.headers), bill.spent or bill.amount
        if left is None:
            return report._replace(took=took)
        size = float(spent.tokens) if spent is not None else 0.0
        return report._replace(took=took, left=(*left, size))
