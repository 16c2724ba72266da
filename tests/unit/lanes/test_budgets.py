"""Budgets never let more be begun than they have, and begin anew with each period."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ValidationError
from penstock.lanes import budgets
from penstock.model.budget import FOREVER, BudgetConfig, Period, check_payer, payers

NOW = datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp()
PERIODS = st.sampled_from(["hour", "day", "week", "month", "total"])
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"])


@given(PERIODS, ZONES, st.floats(0, 4e9))
def test_periods_follow_each_other_without_a_gap(per: str, zone: str, now: float) -> None:
    begins, ends = budgets.period(per, zone, now)
    assert begins <= now < ends
    if per != "total":
        assert budgets.period(per, zone, ends)[0] == ends
        assert budgets.period(per, zone, begins) == (begins, ends)


def test_a_day_is_one_of_its_time_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    begins, ends = budgets.period("day", "Europe/Berlin", NOW + 86400)  # clocks are changed
    assert datetime.fromtimestamp(begins, berlin).hour == 0
    assert ends - begins == 23 * 3600


REQUESTS = st.lists(st.tuples(st.integers(0, 500), st.floats(0, 1)), max_size=60)


@given(REQUESTS, st.integers(0, 2000))
def test_it_is_overspent_by_no_more_than_the_last_reservation(
    requests: list[tuple[int, float]], limit: int
) -> None:
    """Where each uses no more than it has reserved."""
    state = budgets.fresh("tenant:a", BudgetConfig(tokens=limit), NOW)
    used, largest = 0, 0
    for reserved, share in requests:
        if state.closed(NOW):
            assert used >= limit
            continue
        budgets.spend(state, NOW, reserved, 0)
        really = int(reserved * share)
        budgets.spend(state, NOW, really - reserved, 0)
        used, largest = used + really, max(largest, reserved)
        assert state.tokens == used
    assert used < limit + max(1, largest)


def test_a_request_of_another_period_does_not_count() -> None:
    state = budgets.fresh("tenant:a", BudgetConfig(cost=1.0), NOW)
    budgets.spend(state, NOW, 10, 900_000, "llm")
    budgets.spend(state, NOW - 1, 10, 900_000)
    assert (state.cost, state.lanes, state.reached) == (900_000, ["llm"], False)
    assert budgets.warns(state)
    assert not budgets.warns(state)
    tomorrow = state.ends
    assert not budgets.roll(state, tomorrow - 0.001)
    assert budgets.roll(state, tomorrow)
    assert (state.cost, state.warned, state.begins) == (0, 0, tomorrow)
    budgets.spend(state, NOW, 0, -900_000)  # given back too late
    assert state.cost == 0


def test_what_is_spent_stays_spent_when_it_is_raised() -> None:
    state = budgets.fresh("tenant:a", BudgetConfig(cost=1.0, tokens=100), NOW)
    budgets.spend(state, NOW, 100, 0)
    assert state.closed(NOW)
    budgets.change(state, BudgetConfig(cost=1.0, tokens=101), NOW)
    assert (state.tokens, state.closed(NOW)) == (100, False)
    budgets.change(state, BudgetConfig(tokens=10, per="total"), NOW)
    assert (state.tokens, state.ends, state.closed(NOW)) == (100, FOREVER, True)
    assert "100 of 10 tokens spent in all; resumes when it is raised" in budgets.why(state)


PAYERS: dict[str, Period] = {"tenant:a": "hour", "task:a/1": "total"}


def test_of_two_budgets_the_one_that_lasts_longest_is_told() -> None:
    states = {
        payer: budgets.fresh(payer, BudgetConfig(tokens=0, per=per), NOW)
        for payer, per in PAYERS.items()
    }
    found = budgets.first_closed(states, payers("a", "1"), NOW)
    assert found is states["task:a/1"]
    assert budgets.first_closed(states, payers("b", None), NOW) is None


@pytest.mark.parametrize("payer", ["acme", "tenant:", "task:1", "key:1", "tenant:a\nb"])
def test_a_payer_is_a_tenant_or_a_task(payer: str) -> None:
    with pytest.raises(ValidationError, match="tenant:NAME or task:TENANT/ID"):
        check_payer(payer)


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({}, "needs cost, tokens or both"),
        ({"tokens": 1, "per": "year"}, "per"),
        ({"tokens": -1}, "tokens"),
        ({"cost": 1, "timezone": "Mars/Base"}, "no time zone"),
        ({"money": 1}, "'money' is not one of"),
    ],
)
def test_what_is_no_budget_is_refused(given_: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        BudgetConfig.parse(given_)
