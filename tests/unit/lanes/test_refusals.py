"""What a lane learns from 429, 401 and 403."""

from __future__ import annotations

import pytest

from penstock.lanes import breaker
from penstock.lanes.breaker import FOR_EVER, PRAISE, SLOWEST, Fault
from penstock.lanes.limits import grant, next_chance
from penstock.model.lane import LaneConfig
from tests.support.lane_states import NOON, lane_state
from tests.support.rate_windows import least_gap


def test_rate_limited_lane_pauses_as_long_as_it_was_told() -> None:
    lane = lane_state()
    breaker.rate_limited(lane, 1, 7.0, None, NOON)

    assert (lane.blocked_until, lane.blocked_why) == (NOON + 7.0, "rate limited")
    assert grant([lane], 5, NOON + 6.9) == []
    assert next_chance([lane], NOON) == NOON + 7.0
    assert len(grant([lane], 5, NOON + 7.0)) == 5
    assert not lane.open
    assert lane.suspect is None, "a 429 is no outage"


def test_rate_limited_without_a_time_pauses_a_few_seconds_or_an_interval() -> None:
    quick, slow = lane_state(), lane_state(LaneConfig(min_interval_seconds=30.0))
    for lane in (quick, slow):
        breaker.rate_limited(lane, 1, None, None, NOON)

    assert quick.blocked_until == NOON + breaker.RATE_LIMITED_SECONDS
    assert slow.blocked_until >= NOON + 30.0


def test_shorter_pause_does_not_cut_a_longer_one() -> None:
    lane = lane_state()
    breaker.rate_limited(lane, 1, 60.0, None, NOON)
    breaker.rate_limited(lane, 2, 1.0, None, NOON)
    assert lane.blocked_until == NOON + 60.0

    lane.blocked_until, lane.blocked_why = FOR_EVER, "credentials"
    breaker.rate_limited(lane, 3, 1.0, None, NOON)
    assert lane.blocked_why == "credentials"


@pytest.mark.parametrize("parallel", [1, 4])
def test_repeated_429_doubles_the_interval_also_one_at_a_time(parallel: int) -> None:
    config = LaneConfig(min_interval_seconds=0.1, max_parallel=parallel)
    lane, now = lane_state(config), NOON
    breaker.rate_limited(lane, 1, 1.0, None, now)
    assert lane.slowdown == 1, "once can happen"
    for doubled in (2, 4, 8):
        now = lane.blocked_until
        breaker.rate_limited(lane, 1, 1.0, None, now)
        assert lane.slowdown == doubled

    now, starts = lane.blocked_until, list[float]()
    for step in range(100):
        starts += grant([lane], 1, now + step * 0.1)
        lane.in_flight = 0
    assert least_gap(starts) >= 0.8


def test_interval_is_not_doubled_without_end() -> None:
    lane = lane_state()
    for n in range(100):
        breaker.rate_limited(lane, n, 0.0, None, NOON + n)
    assert lane.slowdown == SLOWEST


@pytest.mark.parametrize("parallel", [1, 4])
def test_sustained_success_halves_the_interval_back(parallel: int) -> None:
    lane = lane_state(LaneConfig(min_interval_seconds=0.1, max_parallel=parallel), slowdown=8.0)
    for halved in (4.0, 2.0, 1.0, 1.0):
        for _ in range(PRAISE - 1):
            breaker.succeeded(lane)
        assert lane.slowdown == max(1.0, halved * 2 if lane.slowdown > 1 else 1.0)
        breaker.succeeded(lane)
        assert lane.slowdown == halved


def test_429s_with_a_few_successes_between_slow_the_lane_all_the_same() -> None:
    """A provider that allows less than was configured answers just so."""
    lane, now = lane_state(LaneConfig(min_interval_seconds=0.1)), NOON
    for _ in range(3):
        breaker.rate_limited(lane, 1, 1.0, None, now)
        for _ in range(PRAISE - 1):
            breaker.succeeded(lane)
        now = lane.blocked_until
    assert lane.slowdown == 4


def test_429_long_after_another_is_no_repetition() -> None:
    lane = lane_state()
    for n in range(10):
        breaker.rate_limited(lane, 1, 1.0, None, NOON + 10 * n)
        for _ in range(PRAISE):
            breaker.succeeded(lane)
    assert lane.slowdown == 1


def test_reset_header_says_how_long_a_429_lasts_where_retry_after_does_not() -> None:
    lane = lane_state()
    breaker.rate_limited(lane, 1, None, 90.0, NOON)
    assert lane.blocked_until == NOON + 90.0

    lane = lane_state()
    breaker.rate_limited(lane, 1, 5.0, 90.0, NOON)
    assert lane.blocked_until == NOON + 5.0


def test_reset_many_hours_away_is_when_the_providers_day_begins() -> None:
    lane = lane_state(LaneConfig(requests_per_day=3, min_interval_seconds=0.0, max_parallel=9))
    assert len(grant([lane], 5, NOON)) == 3
    assert lane.left_today(NOON) == 0
    breaker.rate_limited(lane, 1, None, 5 * 3600.0, NOON)

    assert lane.left_today(NOON + 5 * 3600.0 - 1) == 0
    assert lane.left_today(NOON + 5 * 3600.0) == 3, "not only at midnight UTC"
    assert lane.day_after(NOON + 5 * 3600.0) == NOON + 29 * 3600.0


def test_reset_of_a_short_window_leaves_the_day_alone() -> None:
    lane = lane_state(LaneConfig(requests_per_day=3, min_interval_seconds=0.0, max_parallel=9))
    assert len(grant([lane], 5, NOON)) == 3
    breaker.rate_limited(lane, 1, None, 60.0, NOON)
    assert lane.left_today(NOON + 61) == 0


def test_one_job_refused_again_and_again_does_not_block_the_lane() -> None:
    """It may have asked for what is forbidden to everybody."""
    lane = lane_state()
    for token in range(10):
        assert breaker.refused(lane, 7, token) == (Fault.JOB, ())


def test_first_two_to_be_refused_get_their_attempts_back_when_the_third_blocks_the_lane() -> None:
    lane = lane_state()
    breaker.refused(lane, 1, 11)
    breaker.refused(lane, 2, 12)
    assert breaker.refused(lane, 3, 13) == (Fault.LANE, [(1, 11, 1), (2, 12, 1)])


def test_refusals_say_nothing_in_a_lane_without_credentials() -> None:
    lane = lane_state(credentials=0)
    for job in range(10):
        assert breaker.refused(lane, job, 1) == (Fault.JOB, ())
    assert lane.blocked_until == 0.0


def test_another_429_starts_the_count_of_successes_again() -> None:
    lane = lane_state(slowdown=4.0)
    for _ in range(PRAISE - 1):
        breaker.succeeded(lane)
    breaker.rate_limited(lane, 1, 0.0, None, NOON)
    breaker.succeeded(lane)

    assert lane.slowdown == 4.0


def test_three_refusals_in_a_row_block_the_lane_and_two_do_not() -> None:
    lane = lane_state()
    assert breaker.refused(lane, 1, 0).fault is Fault.JOB
    assert breaker.refused(lane, 2, 0).fault is Fault.JOB
    assert lane.blocked_until == 0.0
    assert len(grant([lane], 1, NOON)) == 1

    assert breaker.refused(lane, 3, 0).fault is Fault.LANE
    assert lane.blocked_why == "credentials"
    assert grant([lane], 1, NOON + 10 * 365 * 86400) == [], "until a person acts"
    assert breaker.refused(lane, 4, 0).fault is Fault.LANE, "nothing dies of it from here on"


def test_success_between_refusals_starts_their_count_again() -> None:
    lane = lane_state()
    for job in range(20):
        breaker.refused(lane, job, 0)
        breaker.refused(lane, job, 0)
        breaker.succeeded(lane)

    assert lane.blocked_until == 0.0
