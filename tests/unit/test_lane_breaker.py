"""What a lane learns from how requests end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lanes import breaker
from penstock.lanes.breaker import FOR_EVER, PRAISE, SLOWEST, Fault
from penstock.lanes.limits import grant, next_chance
from penstock.lanes.state import LaneState
from penstock.model.lane import LaneConfig
from tests.support.lane_states import NOON, lane_state
from tests.support.windows import least_gap

FIRST, CAP = 1.0, 300.0


def opened(climbed: int = 0, **values: Any) -> LaneState:
    """A lane that two jobs, 1 and 2, have found unavailable, and then `climbed` tries."""
    lane = lane_state(**values)
    breaker.unavailable(lane, 1, 1, NOON)
    breaker.unavailable(lane, 2, 1, NOON)
    assert lane.open
    for job in range(100, 100 + climbed):
        fail_trial(lane, job, NOON)
    return lane


def trial_of(lane: LaneState) -> int | None:
    return lane.trial


def fail_trial(lane: LaneState, job: int, now: float) -> Fault:
    lane.trial = job
    return breaker.unavailable(lane, job, 1, now).fault


def test_two_different_jobs_open_the_breaker() -> None:
    lane = lane_state()
    assert breaker.unavailable(lane, 1, 5, NOON).fault is Fault.JOB
    assert lane.step == 0
    assert (lane.suspect, lane.suspect_token) == (1, 5)

    lesson = breaker.unavailable(lane, 2, 9, NOON)
    assert lesson == (Fault.LANE, [(1, 5)]), "who failed first gets its attempt back"
    assert lane.open
    assert lane.suspect is None
    assert lane.last_trial == 2


def test_one_job_alone_never_opens_the_breaker() -> None:
    lane = lane_state()
    for run in range(1, 50):
        assert breaker.unavailable(lane, 1, run, NOON + run).fault is Fault.JOB
        assert (lane.suspect, lane.suspect_token) == (1, run)

    assert not lane.open


def test_two_failures_far_apart_make_no_outage() -> None:
    lane = lane_state()
    breaker.unavailable(lane, 1, 1, NOON)
    assert breaker.suspected(lane, NOON + 299)
    assert not breaker.suspected(lane, NOON + 301)
    assert breaker.unavailable(lane, 2, 1, NOON + 301) == (Fault.JOB, ())
    assert (lane.open, lane.suspect) == (False, 2)


def test_success_between_two_failures_clears_the_suspicion() -> None:
    lane = lane_state()
    for job in range(1, 20):
        assert breaker.unavailable(lane, job, 1, NOON).fault is Fault.JOB
        breaker.succeeded(lane)

    assert not lane.open
    assert lane.suspect is None


@given(
    first=st.floats(0.01, 10.0),
    factor=st.floats(1.0, 1000.0),
    tries=st.integers(1, 30),
)
def test_tries_wait_twice_as_long_each_time_up_to_the_cap(
    first: float, factor: float, tries: int
) -> None:
    cap = first * factor
    lane, now = opened(breaker_first=first, breaker_cap=cap), NOON
    for step in range(tries):
        wait = lane.retry_at - now
        whole = min(cap, first * 2.0**step)
        assert 0.8 * whole - 1e-6 <= wait <= whole + 1e-6
        now = lane.retry_at
        assert fail_trial(lane, 3 + step, now) is Fault.LANE


def test_ladder_of_the_defaults_is_1_2_4_to_300_seconds_and_ten_tries_in_five_minutes() -> None:
    config = LaneConfig()
    assert (config.breaker_first_seconds, config.breaker_cap_seconds) == (FIRST, CAP)
    lane, now, tries = opened(), NOON, 0
    while (now := lane.retry_at) <= NOON + 300.0:
        tries += 1
        fail_trial(lane, 10 + tries, now)

    assert tries <= 10


def test_waits_of_many_lanes_differ() -> None:
    """Lanes that opened together do not try together for ever."""
    assert len({opened().retry_at for _ in range(50)}) > 40


def test_ladder_climbed_for_years_stays_at_the_cap() -> None:
    lane = opened(climbed=10_000)
    assert fail_trial(lane, 3, NOON) is Fault.LANE
    assert 0.8 * CAP <= lane.retry_at - NOON <= CAP


def test_late_failures_of_requests_already_under_way_do_not_climb() -> None:
    """Ten requests were open when the service went away: that is one failure, not ten."""
    lane = opened()
    step, retry_at = lane.step, lane.retry_at
    for job in range(3, 13):
        assert breaker.unavailable(lane, job, 1, NOON + 0.1).fault is Fault.LANE

    assert (lane.step, lane.retry_at) == (step, retry_at)


def test_failed_trial_is_over_and_remembered_so_that_the_next_uses_another_job() -> None:
    lane = opened()
    assert fail_trial(lane, 7, NOON) is Fault.LANE
    assert (lane.trial, lane.last_trial) == (None, 7)


def test_success_closes_the_breaker_and_forgets_the_ladder() -> None:
    lane = opened()
    for job in range(3, 9):
        fail_trial(lane, job, NOON)
    lane.trial = 9
    breaker.succeeded(lane)

    assert not lane.open
    assert {lane.trial, lane.last_trial, lane.suspect, lane.probe_ok} == {None}
    assert len(grant([lane], 5, NOON)) == 5, "all may start at once"
    breaker.unavailable(lane, 1, 1, NOON)
    breaker.unavailable(lane, 2, 1, NOON)
    assert lane.retry_at - NOON <= FIRST, "the next outage starts at the bottom"


def test_trial_that_tells_nothing_frees_the_way_for_the_next_and_does_not_climb() -> None:
    """As after a 4xx, a cancellation or a bug in the handler."""
    lane = opened()
    lane = replace(lane, trial=7)
    step, retry_at = lane.step, lane.retry_at
    breaker.abandoned(lane, 8)
    assert lane.trial is not None, "not its trial"
    breaker.abandoned(lane, 7)

    assert trial_of(lane) is None
    assert (lane.step, lane.retry_at) == (step, retry_at)
    assert len(grant([lane], 5, lane.retry_at)) == 1


def test_what_tells_nothing_never_counts_against_a_lane() -> None:
    lane = lane_state()
    for job in range(100):
        breaker.abandoned(lane, job)

    assert lane == lane_state()


def test_probe_that_fails_makes_a_suspected_outage_one() -> None:
    lane = lane_state()
    breaker.unavailable(lane, 1, 1, NOON)
    lesson = breaker.probed(lane, False, NOON)

    assert lane.open
    assert lesson.spared == [(1, 1)], "its attempt is to be returned"
    assert lane.last_trial == 1
    assert 0.8 * FIRST <= lane.retry_at - NOON <= FIRST


def test_probe_that_fails_without_a_suspicion_opens_nothing() -> None:
    lane = lane_state()
    breaker.probed(lane, False, NOON)
    assert not lane.open


def test_probe_that_fails_does_not_climb_the_ladder() -> None:
    lane = opened()
    step, retry_at = lane.step, lane.retry_at
    for n in range(10):
        breaker.probed(lane, False, NOON + n)

    assert (lane.step, lane.retry_at) == (step, retry_at)


def test_probe_that_turns_from_failing_to_passing_brings_the_next_try_forward() -> None:
    lane = opened(climbed=8)
    assert lane.retry_at > NOON + 100
    breaker.probed(lane, False, NOON + 1)
    breaker.probed(lane, True, NOON + 4)

    assert lane.retry_at == NOON + 4
    assert lane.open, "only a real request closes it"
    assert grant([lane], 5, NOON + 4) == [NOON + 4], "one try"


def test_probe_that_passes_all_along_changes_nothing() -> None:
    """The service accepts connections and is broken all the same."""
    lane = opened(climbed=8)
    retry_at = lane.retry_at
    for n in range(10):
        breaker.probed(lane, True, NOON + n)

    assert lane.retry_at == retry_at


def test_probe_that_passed_once_brings_forward_only_one_try() -> None:
    lane = opened(climbed=8)
    breaker.probed(lane, False, NOON)
    breaker.probed(lane, True, NOON + 3)
    fail_trial(lane, 3, NOON + 3)
    retry_at = lane.retry_at
    breaker.probed(lane, True, NOON + 6)

    assert lane.retry_at == retry_at > NOON + 100


def test_probe_never_delays_a_try() -> None:
    lane = opened()
    breaker.probed(lane, False, NOON)
    breaker.probed(lane, True, NOON + 50)
    assert lane.retry_at <= NOON + FIRST


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
    assert breaker.refused(lane, 3, 13) == (Fault.LANE, [(1, 11), (2, 12)])


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


def test_refusal_and_429_end_a_trial_without_climbing() -> None:
    for limited in (False, True):
        lane = opened()
        step = lane.step
        lane.trial = 7
        if limited:
            breaker.rate_limited(lane, 7, 1.0, None, NOON)
        else:
            breaker.refused(lane, 7, 0)
        assert (trial_of(lane), lane.step) == (None, step)


NEWS = st.lists(
    st.tuples(
        st.sampled_from(["ok", "down", "down", "429", "401", "nothing", "probe +", "probe -"]),
        st.integers(1, 4),
        st.floats(0.0, 5.0),
    ),
    max_size=80,
)


@given(news=NEWS)
def test_whatever_happens_there_is_a_next_chance_and_one_try_at_a_time(
    news: list[tuple[str, int, float]],
) -> None:
    """No sequence of endings leaves a lane that never starts anything again, except one that
    waits for a person."""
    lane, now = lane_state(), NOON
    for what, job, wait in news:
        now += wait
        lane.in_flight = 0
        if lane.open and lane.trial is None and grant([lane], 5, now):
            lane.trial = job
            assert grant([lane], 5, now) == [], "a second try beside the first"
        match what:
            case "ok":
                breaker.succeeded(lane)
                assert not lane.open
            case "down":
                breaker.unavailable(lane, job, 1, now)
            case "429":
                breaker.rate_limited(lane, job, wait, None, now)
            case "401":
                breaker.refused(lane, job, 0)
            case "nothing":
                breaker.abandoned(lane, job)
            case _:
                breaker.probed(lane, what == "probe +", now)
        assert lane.retry_at <= now + lane.breaker_cap
    lane.in_flight, lane.trial = 0, None
    at = next_chance([lane], now)
    assert at is not None
    if lane.blocked_why == "credentials" and lane.blocked_until >= FOR_EVER:
        return
    assert at <= now + lane.breaker_cap + 5.0 + lane.spacing * SLOWEST
    assert grant([lane], 1, at + 1e-6) != []
