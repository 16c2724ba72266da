"""Amounts of a lane: whatever is reserved and settled when, no provider that counts refuses."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError, ValidationError
from penstock.lanes import amounts, breaker, permit, usual_amounts
from penstock.lanes.amounts import (
    GONE_SECONDS,
    OPEN_LEAST,
    OVERTAKEN,
    PARTS,
    Booking,
    refusal,
    room,
    settle,
    used_now,
)
from penstock.lanes.limits import grant
from penstock.lanes.state import DAY, LaneState
from penstock.lanes.view import control
from penstock.model.amounts import NOTHING, Amounts
from penstock.model.lane import SPARE, LaneConfig, LaneLimits
from penstock.ports.bill import Bill
from penstock.ports.lanes import LaneCommand, Permit, PermitRequest
from penstock.ports.receipts import Usage
from tests.support.lane_states import NOON, lane_state
from tests.support.token_windows import Asked, refills_enough, window_is_kept

WINDOW = 10.0
LIMIT = 1000
TOMORROW = NOON - NOON % DAY + DAY


def counting(name: str = "lane", **keys: Any) -> LaneState:
    """A lane that counts tokens of a window, or what `keys` say."""
    keys = keys or {"tokens_per_interval": LIMIT, "interval_seconds": WINDOW}
    return lane_state(LaneConfig(max_parallel=1000, min_interval_seconds=0.0, **keys), name)


def tokens(count: int, **more: int) -> Amounts:
    return Amounts.of(count)._replace(**more)


def book(
    lanes: list[LaneState], ref: int, amount: Amounts, now: float, patience: float = 0.05
) -> float | None:
    booking = Booking(ref, 0, amount, refusal(lanes, amount))
    lanes[0].in_flight = 0  # they are not what this is about
    return next(iter(grant(lanes, 1, now, ahead=patience, booking=booking)), None)


@st.composite
def asks(draw: st.DrawFn) -> list[tuple[float, int, float, float, float]]:
    """(seconds since the last one, bound, share of it that is used, seconds it is late, seconds it
    takes)"""
    bounds = st.integers(1, LIMIT * 98 // 100) | st.sampled_from([1, 50, 400, 980])
    waits = st.sampled_from([0.0, 0.0, 0.01, 0.3, 1.0, 4.0, 11.0]) | st.floats(0.0, 3.0)
    late = st.sampled_from([0.0, WINDOW * (SPARE - 1)]) | st.floats(0.0, WINDOW * (SPARE - 1))
    lasts = st.sampled_from([0.0, 0.2, 3.0, 30.0]) | st.floats(0.0, 12.0)
    one = st.tuples(waits, bounds, st.sampled_from([1.0, 0.33, 0.0]), late, lasts)
    return draw(st.lists(one, max_size=60))


def replay(lane: LaneState, asked: list[tuple[float, int, float, float, float]]) -> list[Asked]:
    """What reaches the provider: each is asked for until there is room, and settled at its end."""
    now, ends, sent = NOON, list[tuple[float, int, Amounts]](), list[Asked]()
    for ref, (wait, bound, share, late, lasts) in enumerate(asked):
        now += wait
        start = None
        while start is None:
            for end in sorted(one for one in ends if one[0] <= now):
                ends.remove(end)
                settle([lane], -end[1], 0, end[2], end[0])
            start = book([lane], -ref, tokens(bound), now)
            if start is None:
                at = room([lane], tokens(bound), now).at
                assert at > now
                now = min([at, *(end[0] for end in ends if end[0] > now)])
        used = tokens(math.ceil(bound * share))
        sent.append(Asked(start + late, used.tokens))
        ends.append((start + late + lasts, ref, used))
    return sent


@given(asked=asks())
def test_sliding_window_is_never_exceeded_where_the_bound_holds(asked: Any) -> None:
    assert window_is_kept(replay(counting(), asked), WINDOW, LIMIT)


@given(asked=asks())
def test_bucket_is_never_overdrawn_where_the_bound_holds(asked: Any) -> None:
    lane = counting(tokens_per_interval=LIMIT, interval_seconds=WINDOW, window="bucket")
    assert refills_enough(replay(lane, asked), WINDOW, LIMIT)


@pytest.mark.parametrize("window", ["sliding", "bucket"])
def test_nearly_all_of_what_is_allowed_can_be_used(window: str) -> None:
    lane = counting(tokens_per_interval=LIMIT, interval_seconds=WINDOW, window=window)
    sent = replay(lane, [(0.0, 10, 1.0, 0.0, 0.0)] * 2000)
    spent, lasted = sum(one.tokens for one in sent), sent[-1].at - NOON
    assert spent > 0.94 * LIMIT * lasted / WINDOW


def test_refund_goes_to_the_part_of_its_start_and_nowhere_once_that_is_over() -> None:
    lane = counting()
    book([lane], -1, tokens(900), NOON)
    book([lane], -2, tokens(100), NOON + 5)
    assert book([lane], -3, tokens(1), NOON + 6) is None
    settle([lane], -1, 0, tokens(300), NOON + 6)
    assert used_now(lane, NOON + 6).tokens == 400
    assert book([lane], -3, tokens(600), NOON + 6) == NOON + 6

    # What left the window is not given back to those that are in it now.
    assert book([lane], -4, tokens(1000), NOON + 30) == NOON + 30
    settle([lane], -2, 0, NOTHING, NOON + 30)
    settle([lane], -3, 0, NOTHING, NOON + 30)
    assert book([lane], -5, tokens(1), NOON + 30) is None


def test_refund_to_a_bucket_that_was_full_again_meanwhile_adds_nothing() -> None:
    lane = counting(tokens_per_interval=LIMIT, interval_seconds=WINDOW, window="bucket")
    book([lane], -1, tokens(500), NOON)
    # By now the provider's is full, as it would be without the first; then this one is taken.
    assert book([lane], -2, tokens(900), NOON + 9) == NOON + 9
    settle([lane], -1, 0, tokens(0), NOON + 9)
    assert book([lane], -3, tokens(200), NOON + 9) is None


def test_a_settlement_counts_once() -> None:
    lane = counting()
    book([lane], -1, tokens(600), NOON)
    for _ in range(3):
        settle([lane], -1, 0, tokens(200), NOON + 1)
    settle([lane], -7, 0, NOTHING, NOON + 1)
    assert used_now(lane, NOON + 1).tokens == 200


def test_what_is_used_beyond_the_bound_counts_when_it_is_known() -> None:
    lane = counting()
    book([lane], -1, tokens(100), NOON)
    settle([lane], -1, 0, tokens(1300), NOON + 9)
    assert used_now(lane, NOON + 10).tokens == 1300
    assert used_now(lane, NOON + 11).tokens == 1200
    assert room([lane], tokens(1), NOON + 11).at == pytest.approx(NOON + 9 + WINDOW, abs=0.5)


def test_where_nothing_is_told_the_reservation_stands() -> None:
    lane = counting()
    book([lane], -1, tokens(600), NOON)
    settle([lane], -1, 0, None, NOON + 1)
    assert used_now(lane, NOON + 1).tokens == 600
    settle([lane], -1, 0, NOTHING, NOON + 2)
    assert used_now(lane, NOON + 2).tokens == 600


def test_input_and_output_have_limits_of_their_own() -> None:
    lane = counting(
        input_tokens_per_interval=1000, output_tokens_per_interval=100, interval_seconds=WINDOW
    )
    asked = Amounts.of(input_tokens=100, output_tokens=60)
    assert book([lane], -1, asked, NOON) == NOON
    assert book([lane], -2, asked, NOON) is None
    assert book([lane], -3, Amounts.of(input_tokens=900, output_tokens=40), NOON) == NOON
    # Of a sum alone either part may be all of it.
    assert refusal([lane], Amounts.of(101)) is not None


def test_day_ends_and_gives_back_only_to_itself() -> None:
    lane = counting(tokens_per_day=1000, cost_per_day=2.5)
    money = Amounts.of(10, cost=1.0)
    assert book([lane], -1, money, NOON) == NOON
    assert book([lane], -2, money, NOON) == NOON
    assert book([lane], -3, money, NOON) is None
    assert room([lane], money, NOON).at == TOMORROW
    settle([lane], -1, 0, Amounts.of(10, cost=0.25), NOON + 1)
    assert book([lane], -3, money, NOON + 1) == NOON + 1

    assert book([lane], -4, tokens(900), TOMORROW + 1) == TOMORROW + 1
    settle([lane], -2, 0, NOTHING, TOMORROW + 2)
    assert book([lane], -5, tokens(101), TOMORROW + 2) is None


def test_parent_counts_for_all_its_children() -> None:
    parent = counting("parent")
    one, other = lane_state(name="one"), lane_state(name="other")
    assert book([one, parent], -1, tokens(600), NOON) == NOON
    assert book([other, parent], -2, tokens(600), NOON) is None
    settle([one, parent], -1, 0, tokens(100), NOON)
    assert book([other, parent], -2, tokens(600), NOON) == NOON
    assert used_now(parent, NOON).tokens == 700


def test_what_is_larger_than_the_window_is_refused_or_let_through_alone() -> None:
    assert refusal([counting()], tokens(LIMIT)) is None
    assert refusal([counting()], tokens(LIMIT + 1)) == (
        "1001 tokens in a window are more than lane lane has, 1000"
    )
    keys: dict[str, Any] = {"tokens_per_interval": LIMIT, "interval_seconds": WINDOW}
    for window in ("sliding", "bucket"):
        lane = counting(**keys, window=window, oversized="alone")
        book([lane], -1, tokens(10), NOON)
        assert refusal([lane], tokens(5000)) is None
        assert book([lane], -2, tokens(5000), NOON + 0.2) is None
        at = room([lane], tokens(5000), NOON + 0.2).at
        assert book([lane], -2, tokens(5000), at) == at
        assert book([lane], -3, tokens(1), at + 1) is None


def test_who_says_nothing_of_its_amount_waits_while_there_is_none() -> None:
    lane = counting()
    book([lane], -1, tokens(LIMIT), NOON)
    assert book([lane], -2, NOTHING, NOON + 1) is None
    settle([lane], -1, 0, tokens(999), NOON + 1)
    assert book([lane], -2, NOTHING, NOON + 1) == NOON + 1
    settle([lane], -2, 0, tokens(50), NOON + 2)
    assert used_now(lane, NOON + 2).tokens == 1049


def test_another_interval_forgets_nothing() -> None:
    lane = counting()
    book([lane], -1, tokens(700), NOON)
    lane.amounts = counting(tokens_per_interval=LIMIT, interval_seconds=2.0).amounts
    assert book([lane], -2, tokens(400), NOON + 9) is None
    assert room([lane], tokens(400), NOON + 9).at == pytest.approx(NOON + 11, abs=0.2)


def test_clock_that_was_set_back_holds_nothing_up_for_longer_than_a_window() -> None:
    lane = counting()
    lane.touched_at = NOON
    book([lane], -1, tokens(LIMIT), NOON)
    assert breaker.set_back(lane, NOON - 3600)
    assert book([lane], -2, tokens(1), NOON - 3600) is None
    assert room([lane], tokens(1), NOON - 3600).at == pytest.approx(NOON - 3590, abs=0.5)
    settle([lane], -1, 0, tokens(10), NOON - 3599)
    assert used_now(lane, NOON - 3599).tokens == 10


def test_reset_forgets_what_was_used() -> None:
    lane = counting()
    book([lane], -1, tokens(LIMIT), NOON)
    control(lane, LaneCommand.RESET)
    assert book([lane], -2, tokens(LIMIT), NOON) == NOON


def test_row_stays_small() -> None:
    lane = counting(tokens_per_interval=10**9, interval_seconds=WINDOW)
    lane.max_parallel = 10
    for n in range(3 * OPEN_LEAST):
        assert ask([lane], -n, None, NOON + n * 0.01, kind=f"kind {n}") is not None
    lane.keep()
    assert lane.used is not None
    _, _, _, _, parts, open_now, usual, _ = json.loads(lane.used)
    assert len(open_now) == OPEN_LEAST
    assert len(parts) <= math.ceil(PARTS * SPARE) + 3
    for one in open_now:
        settle([lane], one[0], 0, tokens(7), NOON + 8)
    lane.keep()
    usual = json.loads(lane.used)[6]
    assert len(usual) == usual_amounts.USUAL_KINDS


def test_as_many_as_may_be_under_way_are_given_back_what_they_did_not_use() -> None:
    lane = counting(tokens_per_interval=10**6, interval_seconds=WINDOW)
    lane.max_parallel = 600
    for n in range(600):
        assert book([lane], -n, tokens(1000), NOON) is not None
    for n in range(600):
        settle([lane], -n, 0, NOTHING, NOON + 1)
    assert used_now(lane, NOON + 1) == NOTHING


def ask(
    lanes: list[LaneState], ref: int, amount: Amounts | None, now: float, kind: str = "write"
) -> Permit | None:
    """As a job of this kind does; of another process each time."""
    lanes[0].in_flight = 0
    answer = permit.ask(
        lanes, PermitRequest("", ref, False, 0.05, 0, amount=amount, kind=kind), 1, [], now
    )
    return answer if isinstance(answer, Permit) else None


def test_request_that_says_nothing_reserves_what_is_usual_of_its_kind() -> None:
    lane = counting(tokens_per_interval=10**6, interval_seconds=WINDOW)
    assert ask([lane], -1, None, NOON) is not None
    assert used_now(lane, NOON) == NOTHING, "nothing is known of it"
    settle([lane], -1, 0, Amounts.of(input_tokens=300, output_tokens=40, cost=0.5), NOON + 1)
    for ref, kind in ((-2, "write"), (-3, "read")):
        assert ask([lane], ref, None, NOON + 20, kind) is not None
    assert used_now(lane, NOON + 20) == (340, 300, 40, 1_000_000)

    # Of a hundred the largest does not count; who says its amount teaches nothing.
    for ref in range(-102, -4):
        assert ask([lane], ref, None, NOON + 40) is not None
        settle([lane], ref, 0, tokens(7), NOON + 40)
    assert ask([lane], -200, tokens(5000), NOON + 40) is not None
    settle([lane], -200, 0, tokens(5000), NOON + 40)
    assert ask([lane], -201, None, NOON + 60) is not None
    assert used_now(lane, NOON + 60).tokens == 340
    settle([lane], -201, 0, tokens(7), NOON + 60)
    assert ask([lane], -202, None, NOON + 80) is not None
    assert used_now(lane, NOON + 80).tokens == 7


def test_usual_amount_is_the_p99_of_the_last_requests() -> None:
    known: list[list[Any]] = []
    assert usual_amounts.usual(known, "write") is None
    for n in range(usual_amounts.GENERATION):
        usual_amounts.learn(known, "write", tokens(n % 100))
    assert usual_amounts.usual(known, "write") == tokens(98)
    for _ in range(usual_amounts.GENERATION):
        usual_amounts.learn(known, "write", tokens(3))
    assert usual_amounts.usual(known, "write") == tokens(98)
    usual_amounts.learn(known, "write", tokens(3))
    assert usual_amounts.usual(known, "write") == tokens(3)
    assert len(json.dumps(known)) < 400


def test_what_is_usual_is_never_more_than_there_is() -> None:
    lane = counting()
    parent = counting("parent", tokens_per_interval=500, interval_seconds=WINDOW)
    assert ask([lane], -1, None, NOON) is not None
    settle([lane], -1, 0, tokens(9000), NOON)
    assert ask([lane, parent], -2, None, NOON + 30) is not None
    assert (used_now(lane, NOON + 30).tokens, used_now(parent, NOON + 30).tokens) == (500, 500)


def overtakers(lane: LaneState, *, large: int, small: int, seconds: float) -> float | None:
    """When a large request starts, while others make small ones as fast as there is room."""
    refs, now = iter(range(-1, -(10**6), -1)), NOON
    while now < NOON + seconds:
        while ask([lane], next(refs), tokens(small), now) is not None:
            pass
        if now > NOON + 1 and ask([lane], next(refs), tokens(large), now) is not None:
            return now
        now += WINDOW / PARTS
    return None


@pytest.mark.parametrize("window", ["sliding", "bucket"])
def test_large_request_is_not_overtaken_for_ever(window: str) -> None:
    lane = counting(tokens_per_interval=LIMIT, interval_seconds=WINDOW, window=window)
    started = overtakers(lane, large=900, small=10, seconds=10 * WINDOW)
    assert started is not None
    assert started - NOON < WINDOW * (OVERTAKEN + 1.5)


def test_who_waits_no_more_holds_nobody_up() -> None:
    lane = counting()
    assert ask([lane], -1, tokens(500), NOON) is not None
    later = NOON + OVERTAKEN * WINDOW
    for now in (later - 5, later - 3.5, later - 2, later - 1, later):
        assert ask([lane], -2, tokens(900), now) is None
    assert ask([lane], -3, tokens(10), later) is None
    assert ask([lane], -4, tokens(10), later + GONE_SECONDS + 0.1) is not None


def test_pace_that_an_operator_sets_leaves_starts_as_punctual_as_windows_need() -> None:
    lane = counting()
    lane.tolerance = LaneLimits(min_interval_seconds=0).config.tolerance
    held = ask([lane], -1, tokens(10), NOON)
    assert held is not None
    assert held.void_at - held.start_at <= WINDOW * (SPARE - 1)


@pytest.mark.parametrize(
    "keys",
    [
        {"tokens_per_interval": 10},
        {"interval_seconds": 10},
        {"tokens_per_interval": 1.5, "interval_seconds": 10},
        {"tokens_per_interval": 10, "interval_seconds": 0.01},
        {"tokens_per_interval": 10, "interval_seconds": 100_000},
        {"window": "fixed"},
        {"oversized": "never"},
        {"cost_per_day": -1},
    ],
)
def test_limits_that_cannot_be_kept_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        LaneConfig(**keys)


def test_tokens_alone_space_nothing_and_bound_how_late_a_start_may_be() -> None:
    config = LaneConfig(tokens_per_interval=10, interval_seconds=60)
    assert config.spacing == 0
    assert config.tolerance == pytest.approx(0.6)
    both = LaneConfig(tokens_per_interval=10, requests_per_interval=6, interval_seconds=60)
    assert both.spacing == pytest.approx(10.2)
    assert not LaneConfig(requests_per_interval=6, interval_seconds=60).has_amounts


@pytest.mark.parametrize(
    ("given", "amount"),
    [
        ({"tokens": 12}, (12, 12, 12, 0)),
        ({"input_tokens": 7, "output_tokens": 5}, (12, 7, 5, 0)),
        ({"tokens": 12, "output_tokens": 5}, (12, 7, 5, 0)),
        ({"tokens": 12, "input_tokens": 7}, (12, 7, 5, 0)),
        ({"input_tokens": 7}, (7, 7, 0, 0)),
        ({"cost": 0.0000011}, (0, 0, 0, 2)),
    ],
)
def test_parts_that_are_not_told_are_bounded_by_what_is(
    given: dict[str, Any], amount: tuple[int, ...]
) -> None:
    assert Amounts.of(**given) == amount
    assert Amounts.parse(given) == amount
    assert Amounts.read(Amounts.of(**given).text) == amount


@pytest.mark.parametrize("value", [-1, 1.5, "12", None, True, {"words": 3}, {"cost": -0.1}, 10**13])
def test_what_is_no_amount_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        Amounts.parse(value)


def test_bill_keeps_what_was_reserved_of_what_is_not_told() -> None:
    bill = Bill(Amounts.of(1200, cost=0.5))
    bill.used(900)
    assert bill.spent == Amounts.of(900, cost=0.5)
    bill = Bill(Amounts.of(1200, cost=0.5))
    bill.used(cost=0.25)
    assert bill.spent == Amounts.of(1200, cost=0.25)


@pytest.mark.parametrize(
    ("body", "spent"),
    [
        (b'{"usage": {"prompt_tokens": 7, "completion_tokens": 5}}', (12, 7, 5, 500_000)),
        (b'{"usage": {"input_tokens": 7, "output_tokens": 5}}', (12, 7, 5, 500_000)),
        (b'{"usage": {"prompt_tokens": 7, "total_tokens": 7}}', (7, 7, 0, 500_000)),
        (b'{"usage": {"cost": 0.25}}', (100, 100, 100, 250_000)),
        (b'{"usage": null}', None),
        (b'{"usage": {"prompt_tokens": "many"}}', None),
        (b'the "usage" of words', None),
        (b"[]", None),
    ],
)
def test_bill_is_read_from_the_answer(body: bytes, spent: tuple[int, ...] | None) -> None:
    bill = Bill(Amounts.of(100, cost=0.5))
    bill.read(body)
    assert bill.spent == spent


def test_bill_of_an_answer_without_usage_is_open() -> None:
    bill = Bill()
    bill.told(Usage())
    assert bill.spent is None
    assert amounts.used_now(lane_state(), NOON) == NOTHING


def test_bucket_leaves_room_for_a_request_that_is_late() -> None:
    lane = counting(tokens_per_interval=LIMIT, interval_seconds=WINDOW, window="bucket")
    most = LIMIT * 98 // 100
    assert refusal([lane], tokens(most + 1)) is not None
    assert book([lane], -1, tokens(most), NOON) == NOON
    at = room([lane], tokens(500), NOON + 4).at
    late = Asked(NOON + WINDOW * (SPARE - 1), most)
    assert refills_enough([late, Asked(at, 500)], WINDOW, LIMIT)


def test_start_that_may_be_late_is_counted_until_a_window_after_that() -> None:
    lane = counting()
    booking = Booking(-1, 0, tokens(LIMIT))
    assert grant([lane], 1, NOON, slack=3.0, booking=booking) == [NOON]
    assert book([lane], -2, tokens(1), NOON) is None
    assert room([lane], tokens(1), NOON).at >= NOON + 3 + WINDOW * SPARE
