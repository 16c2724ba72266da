"""A clock that was ahead and is set back: lanes go on, and no limit is exceeded by it."""

import pytest

from penstock.adapters.queue_clock import ClockWatch
from penstock.lanes import breaker
from penstock.lanes.breaker import FOR_EVER
from penstock.lanes.limits import grant
from penstock.lanes.state import DAY, LaneState

NOON = 1_800_000_000.0 - 1_800_000_000.0 % DAY + DAY / 2
HOUR = 3600.0


def lane_of(**values: float) -> LaneState:
    lane = LaneState("api", None, 3.0, 0.03, 1)
    for name, value in values.items():
        setattr(lane, name, value)
    return lane


def started(lane: LaneState, now: float) -> list[float]:
    starts = grant([lane], 1, now)
    lane.in_flight, lane.touched_at = 0, now
    return starts


@pytest.mark.parametrize("ahead", [5.0, HOUR, 400 * DAY])
def test_rate_is_kept_and_no_more_than_one_interval_is_lost(ahead: float) -> None:
    lane = lane_of()
    assert started(lane, NOON + ahead)
    assert breaker.set_back(lane, NOON + 1)
    assert started(lane, NOON + 1) == []
    assert started(lane, NOON + 3.9) == []
    assert started(lane, NOON + 4)


def test_nothing_changes_where_the_clock_went_on() -> None:
    lane = lane_of()
    started(lane, NOON)
    before = lane.next_start
    assert not breaker.set_back(lane, NOON)
    assert not breaker.set_back(lane, NOON + HOUR)
    assert lane.next_start == before


def test_all_times_of_a_lane_are_as_far_ahead_as_they_were() -> None:
    then = NOON + HOUR
    lane = lane_of(
        touched_at=then,
        retry_at=then + 5,
        suspect_at=then - 5,
        blocked_until=then + 60,
        asked_until=then + 7,
    )
    assert breaker.set_back(lane, NOON)
    times = (lane.retry_at, lane.suspect_at, lane.blocked_until, lane.asked_until)
    assert times == (NOON + 5, NOON - 5, NOON + 60, NOON + 7)


def test_what_only_a_person_lifts_stays() -> None:
    lane = lane_of(touched_at=NOON + HOUR, blocked_until=FOR_EVER)
    assert breaker.set_back(lane, NOON)
    assert lane.blocked_until == FOR_EVER


@pytest.mark.parametrize("days", [1, 100])
def test_daily_limit_is_not_exceeded_and_has_its_next_day(days: int) -> None:
    lane = lane_of(per_day=10)
    then = NOON + days * DAY
    assert started(lane, then)
    assert breaker.set_back(lane, NOON)
    assert started(lane, NOON + HOUR) == [], "what was used of today is not known any more"
    for n in range(9):
        assert started(lane, NOON + DAY + n * HOUR)
    assert started(lane, NOON + DAY + 9 * HOUR) == []


def test_watch_notices_a_clock_that_was_set_back() -> None:
    watch = ClockWatch()
    assert watch.went_back(NOON), "it may have been before"
    assert not watch.went_back(NOON + HOUR)
    assert not watch.went_back(NOON + HOUR - 0.01)
    assert watch.went_back(NOON)
    assert not watch.went_back(NOON + 1)
