"""What a lane learns from how requests end."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.lanes import breaker
from penstock.lanes.breaker import FOR_EVER, SLOWEST, Fault
from penstock.lanes.limits import grant, next_chance
from penstock.lanes.state import LaneState
from penstock.model.lane import LaneConfig
from tests.support.lane_states import NOON, lane_state

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
    assert lesson == (Fault.LANE, [(1, 5, 1)]), "who failed first gets its attempt back"
    assert lane.open
    assert lane.suspect is None
    assert lane.last_trial == 2


def test_every_run_of_the_suspect_that_failed_counts_once() -> None:
    lane = lane_state()
    for token in (5, 6, 6, 8):
        breaker.unavailable(lane, 1, token, NOON)

    assert breaker.unavailable(lane, 2, 9, NOON).spared == [(1, 8, 3)]
    assert lane.suspect_failures == 0


def test_suspect_of_a_version_that_does_not_count_gets_its_attempt_back() -> None:
    lane = lane_state()
    lane.suspect, lane.suspect_token, lane.suspect_at = 1, 5, NOON

    assert breaker.unavailable(lane, 2, 9, NOON).spared == [(1, 5, 1)]


def test_refusals_are_stored_as_the_version_before_reads_them_and_every_run_counts_once() -> None:
    lane = lane_state()
    for job, token in ((1, 5), (1, 5), (1, 6), (2, 9)):
        assert breaker.refused(lane, job, token).fault is Fault.JOB
    assert [(job, token) for job, token in json.loads(lane.refusers)] == [(1, 5), (1, 6), (2, 9)]

    assert breaker.refused(lane, 3, 1) == (Fault.LANE, [(1, 6, 2), (2, 9, 1)])


def test_failures_before_a_success_or_long_ago_are_the_jobs_own() -> None:
    lane = lane_state()
    breaker.unavailable(lane, 1, 1, NOON)
    breaker.succeeded(lane)
    breaker.unavailable(lane, 1, 2, NOON)
    later = NOON + breaker.SUSPICION_SECONDS
    breaker.unavailable(lane, 1, 3, later)

    assert breaker.unavailable(lane, 2, 9, later).spared == [(1, 3, 1)]


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
    assert lesson.spared == [(1, 1, 1)], "its attempt is to be returned"
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
