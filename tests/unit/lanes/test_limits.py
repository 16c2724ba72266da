"""What a lane grants: never above its limits, whatever is asked when, and hardly below them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lanes.limits import AHEAD_SECONDS, grant, next_chance
from penstock.lanes.state import DAY, LaneState
from penstock.model.lane import LaneConfig
from tests.support.lane_states import NOON, lane_state
from tests.support.rate_windows import least_gap, most_in_window

MIDNIGHT = NOON - NOON % DAY + DAY
ROUNDING = 1e-6
"""Seconds since 1970 are no more exact than this in a float."""


@st.composite
def rates(draw: st.DrawFn, *, least_interval: float = 0.1) -> LaneConfig:
    """A rate, with or without a minimum interval that may bind more or less than it."""
    requests = draw(st.integers(1, 20))
    interval = draw(st.floats(least_interval, 60.0))
    shares = st.just(0.0) | st.floats(0.01, 2.0)
    gap = draw(st.none() | shares.map(lambda share: share * interval / requests))
    return LaneConfig(
        requests_per_interval=requests,
        interval_seconds=interval,
        min_interval_seconds=gap,
        max_parallel=1000,
    )


Asks = list[tuple[float, int, float]]
"""(seconds since the last one, how many are wanted, how far ahead a start may lie)"""

ASKS: st.SearchStrategy[Asks] = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.001, 0.02, 0.05, 0.3, 1.0, 7.0]) | st.floats(0.0, 10.0),
        st.integers(1, 30),
        st.sampled_from([AHEAD_SECONDS, AHEAD_SECONDS, 0.0, 1.0]),
    ),
    max_size=60,
)


@given(config=rates(), asks=ASKS)
def test_no_window_holds_more_starts_than_the_rate_allows(config: LaneConfig, asks: Asks) -> None:
    lane, now = lane_state(config), NOON
    starts: list[float] = []
    for wait, wanted, ahead in asks:
        now += wait
        granted = grant([lane], wanted, now, ahead=ahead)
        lane.in_flight = 0
        assert len(granted) <= wanted
        assert all(now <= start <= now + ahead for start in granted)
        starts += granted

    assert starts == sorted(starts)
    assert config.interval_seconds is not None
    assert config.requests_per_interval is not None
    assert most_in_window(starts, config.interval_seconds) <= config.requests_per_interval
    assert least_gap(starts) >= (config.min_interval_seconds or 0.0) - ROUNDING


@given(gap=st.floats(0.001, 10.0), asks=ASKS)
def test_minimum_interval_alone_is_kept(gap: float, asks: Asks) -> None:
    lane = lane_state(LaneConfig(min_interval_seconds=gap, max_parallel=1000))
    now, starts = NOON, list[float]()
    for wait, wanted, ahead in asks:
        now += wait
        starts += grant([lane], wanted, now, ahead=ahead)

    assert least_gap(starts) >= gap


@given(slowdown=st.sampled_from([2.0, 8.0, 64.0]), gap=st.floats(0.01, 1.0), asks=ASKS.filter(bool))
def test_slowed_lane_keeps_the_longer_interval(slowdown: float, gap: float, asks: Asks) -> None:
    lane = lane_state(LaneConfig(min_interval_seconds=gap, max_parallel=1), slowdown=slowdown)
    now, starts = NOON, list[float]()
    for wait, wanted, ahead in asks:
        now += wait
        starts += grant([lane], wanted, now, ahead=ahead)
        lane.in_flight = 0

    assert least_gap(starts) >= gap * slowdown


@given(
    parallel=st.integers(1, 5),
    steps=st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8)), max_size=50),
)
def test_slots_are_never_exceeded_and_all_can_be_used(
    parallel: int, steps: list[tuple[int, int]]
) -> None:
    lane = lane_state(LaneConfig(min_interval_seconds=0.0, max_parallel=parallel))
    held = 0
    for wanted, given_back in steps:
        free = parallel - held
        granted = grant([lane], wanted, NOON)
        assert len(granted) == min(wanted, free)
        held += len(granted)
        assert lane.in_flight == held <= parallel
        freed = min(given_back, held)
        held -= freed
        lane.in_flight -= freed


def test_request_that_holds_a_slot_already_takes_rate_only() -> None:
    lane = lane_state(LaneConfig(min_interval_seconds=1.0, max_parallel=1))
    assert grant([lane], 1, NOON) == [NOON]
    assert lane.free_slots() == 0

    (start,) = grant([lane], 1, NOON, ahead=2.0, held=[lane.name])

    assert start >= NOON + 1.0
    assert lane.in_flight == 1, "no second slot is taken"
    assert grant([lane], 1, NOON, ahead=0.5, held=[lane.name]) == [], (
        "the rate binds it all the same"
    )


Family = list[tuple[int, float, int, float]]
"""(which child, seconds since the last ask, how many are wanted, how far ahead)"""

FAMILY: st.SearchStrategy[Family] = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from([0.0, 0.01, 0.05, 0.5]) | st.floats(0.0, 3.0),
        st.integers(1, 10),
        st.sampled_from([AHEAD_SECONDS, 1.0]),
    ),
    max_size=60,
)


@given(
    config=rates(), parallel=st.integers(1, 4), gap=st.just(0.0) | st.floats(0.01, 0.5), asks=FAMILY
)
def test_limits_of_a_parent_hold_for_all_its_children_together(
    config: LaneConfig, parallel: int, gap: float, asks: Family
) -> None:
    parent = lane_state(replace(config, max_parallel=parallel), "parent")
    own = LaneConfig(min_interval_seconds=gap, max_parallel=3, parent="parent")
    children = [lane_state(own, f"child{n}") for n in range(3)]
    now = NOON
    starts: list[list[float]] = [[], [], []]
    held: list[LaneState] = []
    for which, wait, wanted, ahead in asks:
        now += wait
        granted = grant([children[which], parent], wanted, now, ahead=ahead)
        starts[which] += granted
        held += [children[which]] * len(granted)
        assert len(held) == parent.in_flight <= parallel
        assert max(child.in_flight for child in children) <= 3
        if len(held) == parallel:
            held.pop(0).in_flight -= 1
            parent.in_flight -= 1

    assert config.interval_seconds is not None
    together = [start for some in starts for start in some]
    assert most_in_window(together, config.interval_seconds) <= (config.requests_per_interval or 0)
    for some in starts:
        assert least_gap(some) >= gap


@given(
    config=rates(),
    late=st.lists(st.floats(0.0, AHEAD_SECONDS), min_size=1, max_size=20),
    wanted=st.integers(1, 20),
)
def test_with_work_always_waiting_97_percent_of_what_binds_is_used(
    config: LaneConfig, late: list[float], wanted: int
) -> None:
    """Also when each look comes a little late, as it does on a busy machine."""
    lane, now = lane_state(config), NOON
    assert config.interval_seconds is not None
    assert config.requests_per_interval is not None
    binding = max(
        config.interval_seconds / config.requests_per_interval, config.min_interval_seconds or 0.0
    )
    starts: list[float] = []
    for n in range(300):
        starts += grant([lane], wanted, now)
        lane.in_flight = 0
        at = next_chance([lane], now)
        assert at is not None
        # Who looks less often than for every `wanted` starts cannot use them all.
        now = max(now, at) + min(late[n % len(late)], wanted * binding) + ROUNDING

    took = starts[-1] - starts[0]
    assert (len(starts) - 1) * binding >= 0.97 * took


def test_start_far_ahead_in_one_child_does_not_hold_up_the_others() -> None:
    """A job may wait a second for a slow host; the parent has room for all others meanwhile."""
    parent = lane_state(LaneConfig(min_interval_seconds=0.0, max_parallel=16), "fetch")
    slow = lane_state(LaneConfig(min_interval_seconds=1.0, max_parallel=2), "host:slow")
    other = lane_state(LaneConfig(min_interval_seconds=1.0, max_parallel=2), "host:other")
    assert grant([slow, parent], 1, NOON) == [NOON]
    (ahead,) = grant([slow, parent], 1, NOON + 0.1, ahead=1.0)
    assert ahead > NOON + 0.9

    assert grant([other, parent], 1, NOON + 0.2) == [NOON + 0.2]


def test_parent_with_a_rate_is_used_although_its_children_reserve_ahead() -> None:
    """Two slow children ask a second ahead, a quick one whenever it may."""
    config = LaneConfig(requests_per_interval=10, interval_seconds=1.0, max_parallel=1000)
    parent = lane_state(config, "parent")
    slow = [
        lane_state(LaneConfig(min_interval_seconds=0.9, max_parallel=1000), f"slow{n}")
        for n in range(2)
    ]
    quick = lane_state(LaneConfig(min_interval_seconds=0.0, max_parallel=1000), "quick")
    starts: list[float] = []
    for step in range(2000):
        now = NOON + step * 0.01
        for child in slow:
            starts += grant([child, parent], 1, now, ahead=1.0)
        starts += grant([quick, parent], 1, now)

    assert most_in_window(starts, 1.0) <= 10
    assert len(starts) >= 0.97 * 20.0 * 10


def test_daily_limit_ends_the_day_and_is_fresh_after_midnight() -> None:
    config = LaneConfig(min_interval_seconds=0.0, max_parallel=100, requests_per_day=5)
    lane = lane_state(config)
    assert len(grant([lane], 3, MIDNIGHT - 10)) == 3
    assert len(grant([lane], 10, MIDNIGHT - 5)) == 2
    assert grant([lane], 1, MIDNIGHT - 1) == []
    assert lane.left_today(MIDNIGHT - 1) == 0
    assert next_chance([lane], MIDNIGHT - 1) == MIDNIGHT

    assert lane.left_today(MIDNIGHT) == 5
    assert len(grant([lane], 10, MIDNIGHT)) == 5
    assert grant([lane], 1, MIDNIGHT + 3600) == []


def test_daily_limit_of_a_parent_holds_for_its_children() -> None:
    config = LaneConfig(min_interval_seconds=0.0, max_parallel=100, requests_per_day=5)
    parent = lane_state(config, "parent")
    children = [lane_state(name=f"child{n}") for n in range(3)]

    assert [len(grant([child, parent], 2, NOON)) for child in children] == [2, 2, 1]


def test_refused_grant_is_not_charged_to_the_day() -> None:
    config = LaneConfig(min_interval_seconds=1.0, max_parallel=100, requests_per_day=3)
    lane = lane_state(config)
    assert len(grant([lane], 1, NOON)) == 1
    for _ in range(10):
        assert grant([lane], 1, NOON) == []

    assert lane.left_today(NOON) == 2


@given(
    per_day=st.integers(1, 6),
    before=st.floats(0.0, 0.3),
    ahead=st.sampled_from([AHEAD_SECONDS, 1.0]),
)
def test_no_utc_day_holds_more_starts_than_its_limit(
    per_day: int, before: float, ahead: float
) -> None:
    """A start that is granted before midnight and lies after it belongs to the new day."""
    config = LaneConfig(min_interval_seconds=0.02, max_parallel=1000, requests_per_day=per_day)
    lane = lane_state(config, next_start=MIDNIGHT - before / 2)
    starts: list[float] = []
    for step in range(100):
        starts += grant([lane], 3, MIDNIGHT - before + step * 0.02, ahead=ahead)

    for day in (MIDNIGHT - DAY, MIDNIGHT):
        assert sum(day <= start < day + DAY for start in starts) <= per_day


@st.composite
def states(draw: st.DrawFn) -> LaneState:
    """A lane in any state that time alone can change."""
    config = LaneConfig(
        min_interval_seconds=draw(st.sampled_from([0.0, 0.02, 3.0])),
        max_parallel=draw(st.integers(1, 3)),
        requests_per_day=draw(st.none() | st.integers(1, 2)),
    )
    open_ = draw(st.booleans())
    return lane_state(
        config,
        next_start=NOON + draw(st.sampled_from([-1.0, 0.0, 0.04, 0.5])),
        blocked_until=NOON + draw(st.sampled_from([-5.0, 0.0, 2.0])),
        step=3 if open_ else 0,
        retry_at=NOON + draw(st.sampled_from([-1.0, 1.0])) if open_ else 0.0,
        day=int(NOON // DAY),
        used_today=draw(st.integers(0, 2)) if config.requests_per_day else 0,
    )


@given(lane=states(), parent=st.none() | states())
def test_next_chance_is_when_a_start_is_granted_and_not_before(
    lane: LaneState, parent: LaneState | None
) -> None:
    lanes = [lane] if parent is None else [lane, parent]
    at = next_chance(lanes, NOON)
    assert at is not None, "only time is in the way"
    if at > NOON:
        copies = [replace(one) for one in lanes]
        assert grant(copies, 1, at - 10 * ROUNDING) == [], "an earlier look is in vain"

    assert len(grant(lanes, 1, at + ROUNDING)) == 1, "a look at that time is not"


@pytest.mark.parametrize("whose", ["own", "parent"])
def test_lane_without_a_free_slot_has_no_next_chance_until_one_is_freed(whose: str) -> None:
    one_slot = LaneConfig(min_interval_seconds=0.0, max_parallel=1)
    full, free = lane_state(one_slot, in_flight=1), lane_state(one_slot)
    lanes = [full, free] if whose == "own" else [free, full]

    assert next_chance(lanes, NOON) is None
    assert grant(lanes, 1, NOON) == []


def test_lane_with_a_trial_under_way_has_no_next_chance_until_it_ends() -> None:
    lane = lane_state(step=2, retry_at=NOON - 1, trial=7, in_flight=1)
    assert next_chance([lane], NOON) is None
    assert grant([lane], 5, NOON) == []


def test_open_breaker_grants_one_try_when_its_time_has_come() -> None:
    lane = lane_state(step=1, retry_at=NOON)
    assert grant([lane], 5, NOON - 0.01) == []

    assert grant([lane], 5, NOON) == [NOON]


@pytest.mark.parametrize("whose", ["own", "parent"])
def test_blocked_lane_grants_nothing(whose: str) -> None:
    blocked, free = lane_state(blocked_until=NOON + 1), lane_state()
    lanes = [blocked, free] if whose == "own" else [free, blocked]

    assert grant(lanes, 5, NOON) == []
    assert grant(lanes, 5, NOON, held=[lane.name for lane in lanes]) == []
    assert len(grant(lanes, 5, NOON + 1)) == 5


def test_clock_that_steps_back_lets_nothing_through() -> None:
    lane = lane_state(LaneConfig(min_interval_seconds=1.0, max_parallel=10))
    starts = grant([lane], 1, NOON) + grant([lane], 5, NOON - 3600) + grant([lane], 5, NOON)

    assert starts == [NOON]
