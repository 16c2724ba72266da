"""Limits that are learnt: the rule against a simulated service whose limit moves."""

import json

import pytest

from penstock.errors import ConfigError
from penstock.lanes import learnt, verdict
from penstock.lanes.breaker import set_back
from penstock.lanes.state import LaneState
from penstock.model.lane import LaneConfig, LaneLimits
from penstock.ports.lanes import News, Report
from tests.support.lane_states import NOON, lane_state
from tests.support.moving_limit import ANSWER_SECONDS, Tally, best_fixed, simulate

MOVES = [(20.0, 39), (20.0, 12), (20.0, 60)]


def auto(least: int = 1, most: int = 100) -> LaneState:
    config = LaneConfig(
        min_interval_seconds=0.0, max_parallel="auto", auto_min=least, auto_max=most
    )
    return lane_state(config)


def moved(lane: LaneState, *, queues: bool = False, spread: float = 0.3) -> Tally:
    """What the lane gets from a service whose limit moves."""

    def ended(now: float, took: float, ok: bool, in_flight: int) -> int:
        lane.in_flight = in_flight
        report = Report(News.SUCCESS if ok else News.RATE_LIMITED, took=took)
        verdict.learn(lane, 1, 1, 1, 1, report, NOON + now)
        assert verdict.teach([lane], report, NOON + now)
        assert lane.blocked_until <= NOON + now  # a 429 has it pause nothing
        assert lane.slowdown == 1
        return lane.max_parallel

    return simulate(MOVES, ended, lane.max_parallel, queues=queues, spread=spread)


def test_a_limit_that_moves_is_followed() -> None:
    lane = auto()

    ours, best = moved(lane), best_fixed(MOVES)
    assert ours.served > 0.85 * best.served
    assert ours.errors < 0.01
    at = [
        [value for when, value in ours.values if n * 20 + 10 < when < n * 20 + 20] for n in (0, 1)
    ]
    assert {39, 40} >= set(at[0])
    assert {12, 13} >= set(at[1])


def test_a_service_that_lets_requests_wait_is_not_flooded() -> None:
    lane = auto()

    ours, best = moved(lane, queues=True), best_fixed(MOVES, queues=True)
    assert ours.served > 0.85 * best.served
    assert ours.seconds / ours.served < 3 * ANSWER_SECONDS


def test_a_429_that_asks_for_no_pause_costs_none() -> None:
    """Whatever its other headers say: so its twin in Lua has it."""
    lane = auto()
    report = Report(News.RATE_LIMITED, 0.0, took=1.0, resets_after=30.0)
    learnt.hear(lane, report, NOON)
    assert learnt.read(lane).not_before == NOON


def test_a_lane_whose_bounds_are_low_stays_there() -> None:
    lane = auto(2, 9)

    ours = moved(lane)
    assert max(value for _, value in ours.values) == 9
    assert ours.refused == 0


def answers(lane: LaneState, count: int, took: float, now: float) -> float:
    for _ in range(count):
        now += took
        lane.in_flight = lane.max_parallel
        verdict.teach([lane], Report(News.SUCCESS, took=took / 2), now)
    return now


def test_a_service_that_becomes_slower_by_itself_keeps_its_requests() -> None:
    lane = auto(most=10)
    now = answers(lane, 200, 0.1, NOON)
    assert lane.max_parallel == 10

    now = answers(lane, 200, 1.0, now)
    assert lane.max_parallel == 10


def test_an_error_ends_the_round() -> None:
    lane = auto()
    now = NOON
    for _ in range(20):
        now = answers(lane, 7, 0.1, now)
        verdict.teach([lane], Report(News.UNAVAILABLE, took=0.05), now)
    assert lane.max_parallel == 4


def test_a_lane_that_is_not_full_stays_as_it_is() -> None:
    lane = auto()
    for n in range(100):
        lane.in_flight = 2
        verdict.teach([lane], Report(News.SUCCESS, took=0.1), NOON + n)
    assert lane.max_parallel == 4


def test_a_try_that_costs_a_pause_is_made_seldom() -> None:
    lane = auto(most=10)
    now = answers(lane, 200, 0.1, NOON)
    verdict.teach([lane], Report(News.RATE_LIMITED, retry_after=30.0, took=0.01), now + 1)

    answers(lane, 800, 0.1, now + 30)
    assert lane.max_parallel == 9
    answers(lane, 900, 1.0, now + 40)
    assert lane.max_parallel == 10


def test_at_its_least_a_lane_goes_slower_after_429s() -> None:
    lane = auto(1, 10)
    now = NOON
    for _ in range(9):
        now += 60
        report = Report(News.RATE_LIMITED, took=0.01)
        verdict.learn(lane, 1, 1, 1, 1, report, now)
        verdict.teach([lane], report, now)
    assert lane.max_parallel == 1
    assert lane.slowdown > 1


def test_what_is_left_bounds_what_is_started_until_it_is_reset() -> None:
    lane = auto()
    few = Report(News.SUCCESS, took=0.1, left=(2.0, 60.0, -1.0, 0.0, 0.0))
    verdict.teach([lane], few, NOON)
    assert lane.max_parallel == 2

    # This was said before, to a request that was answered later.
    older = few._replace(left=(3.0, 60.0, -1.0, 0.0, 0.0), took=5.0)
    verdict.teach([lane], older, NOON + 1)
    assert lane.max_parallel == 2
    none = few._replace(left=(0.0, 60.0, -1.0, 0.0, 0.0))
    verdict.teach([lane], none, NOON + 2)
    assert (lane.blocked_until, lane.blocked_why) == (NOON + 62, "rate limited")
    verdict.teach([lane], few._replace(left=None), NOON + 63)
    assert lane.max_parallel == 4


def test_tokens_that_are_left_are_counted_in_large_requests() -> None:
    lane = auto()
    told = Report(News.SUCCESS, took=0.1, left=(900.0, 60.0, 3500.0, 6.0, 1000.0))
    verdict.teach([lane], told, NOON)
    assert lane.max_parallel == 3

    verdict.teach([lane], told._replace(left=(900.0, 60.0, 0.0, 6.0, 10.0)), NOON + 1)
    assert lane.blocked_until == NOON + 7


def test_a_clock_that_is_set_back_does_not_stop_it() -> None:
    lane = auto()
    answers(lane, 20, 0.1, NOON)
    value = lane.max_parallel
    lane.touched_at = NOON + 2

    assert set_back(lane, NOON - 1000)
    answers(lane, 200, 0.1, NOON - 1000)
    assert lane.max_parallel > value


def test_a_lane_without_it_writes_and_loads_nothing() -> None:
    lane = lane_state()
    assert not verdict.teach([lane], Report(News.SUCCESS), NOON)
    assert (lane.auto, lane.learnt, lane.learnt_parallel, lane.knows) == (None, None, None, False)


def test_its_bounds_are_checked() -> None:
    with pytest.raises(ConfigError, match="auto_min is 5, more than auto_max, 3"):
        LaneConfig(max_parallel="auto", auto_min=5, auto_max=3)
    with pytest.raises(ConfigError, match="max_parallel must be a whole number or auto"):
        LaneConfig(max_parallel="many")
    with pytest.raises(ConfigError, match="auto is configured, not given"):
        LaneLimits(max_parallel="auto")  # type: ignore[arg-type]


def test_what_is_known_is_a_list_of_plain_values() -> None:
    lane = auto()
    answers(lane, 9, 0.1, NOON)
    assert lane.learnt is not None
    assert learnt.LaneKnowledge(*json.loads(lane.learnt)) == learnt.read(lane)
