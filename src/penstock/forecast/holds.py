"""The reasons for which lines wait, by the rules of lanes."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from penstock.lanes.breaker import FOR_EVER
from penstock.lanes.state import LaneState
from penstock.model.amounts import NOTHING, Amounts


class Hold(StrEnum):
    """The reason for which jobs wait."""

    NOTHING = "nothing"
    RATE = "rate"
    SLOTS = "slots"
    TOKENS = "tokens"
    DAY = "daily limit"
    WORKERS = "workers"
    TIME = "time"
    """They are scheduled for later, or sleep."""
    BLOCKED = "rate limited"
    BREAKER = "breaker open"
    PAUSED = "paused"
    CREDENTIALS = "credentials"
    SIGNAL = "signal"
    TOO_LARGE = "too large"
    """They reserve more than their lane ever has: they fail when they are claimed."""
    NOBODY = "no worker process"
    HORIZON = "horizon"
    """It takes longer than a forecast looks ahead."""


class HeldBy(NamedTuple):
    """The reason, and the lane that it is of: a line's own or the parent; '' for none."""

    hold: Hold
    lane: str = ""


def held_by(lanes: list[LaneState], amount: Amounts | None, now: float) -> HeldBy:
    """The reason for which the next job of a line is not started now. The rules that decide on
    starts are asked in the order in which they decide."""
    for lane in lanes:
        if lane.blocked_until >= FOR_EVER:
            return HeldBy(_for_ever(lane), lane.name)
        if lane.blocked_until > now:
            return HeldBy(Hold.BLOCKED, lane.name)
        if lane.open:
            return HeldBy(Hold.BREAKER, lane.name)
        if lane.left_today(now) < 1:
            return HeldBy(Hold.DAY, lane.name)
        if lane.slots_for_jobs(now) == 0:
            return HeldBy(Hold.SLOTS, lane.name)
    latest = max(lanes, key=lambda lane: lane.next_start)
    if any(lane.amounts is not None for lane in lanes):
        from penstock.lanes.amounts import DAY_WHY, room

        coming = room(lanes, amount or NOTHING, now)
        if coming.at > max(now, latest.next_start):
            return HeldBy(Hold.DAY if coming.why == DAY_WHY else Hold.TOKENS, coming.lane)
    return HeldBy(Hold.RATE if latest.next_start > now else Hold.WORKERS, latest.name)


def never(lanes: list[LaneState]) -> HeldBy | None:
    """The reason for which nothing starts in a lane for as long as nobody, or no service, does
    something about it; None: it goes on by itself."""
    for lane in lanes:
        if lane.blocked_until >= FOR_EVER:
            return HeldBy(_for_ever(lane), lane.name)
        if lane.open:
            return HeldBy(Hold.BREAKER, lane.name)
    return None


def _for_ever(lane: LaneState) -> Hold:
    return Hold.CREDENTIALS if lane.blocked_why == Hold.CREDENTIALS else Hold.PAUSED
