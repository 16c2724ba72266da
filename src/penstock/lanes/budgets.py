"""Budgets: what a payer may spend in a period, and what is spent of it.

A budget is reached when as much as it allows is spent or reserved. Then nothing that would spend
for this payer is begun, until something that was reserved is given back, a new period begins, or
the budget is raised. So it is overspent by at most what was under way: requests that were begun
while there was something left.

What is entered in the ledger goes through here, in the same transaction. Lua has a twin of what
it needs (`adapters/redis/lua/common/budgets.lua`); a test compares them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo

from penstock.model.amounts import MICRO
from penstock.model.budget import FOREVER, BudgetConfig, BudgetState

WARNED_AT = 0.8
LANES_MOST = 64
"""Lanes that a budget knows to be spent in; the first ones."""
LOOK_SECONDS = 60.0
"""A line whose budget is reached is looked at again at least so often."""


def fresh(payer: str, config: BudgetConfig, now: float) -> BudgetState:
    """A budget that counts from now on."""
    _, ends = period(config.per, config.timezone, now)
    per, zone = config.per, config.timezone
    return BudgetState(payer, config.tokens, config.cost_limit, per, zone, now, ends)


def change(state: BudgetState, config: BudgetConfig, now: float) -> None:
    """Other limits. What was spent in this period stays spent, unless it is another period."""
    roll(state, now)
    if (state.per, state.timezone) != (config.per, config.timezone):
        state.per, state.timezone = config.per, config.timezone
        _, state.ends = period(config.per, config.timezone, now)
    state.tokens_limit, state.cost_limit = config.tokens, config.cost_limit
    state.warned = min(state.warned, _warning(state))


def roll(state: BudgetState, now: float) -> bool:
    """Begin a new period where one is over. Whether it was."""
    if now < state.ends:
        return False
    state.begins, state.ends = period(state.per, state.timezone, now)
    state.tokens = state.cost = 0
    state.warned = 0
    return True


def spend(state: BudgetState, at: float, tokens: int, cost: int, lane: str = "") -> None:
    """So much was reserved or used, or less than was, by a request that began at `at`. Of another
    period it does not count."""
    if at < state.begins:
        return
    state.tokens = max(0, state.tokens + tokens)
    state.cost = max(0, state.cost + cost)
    if lane and lane not in state.lanes and len(state.lanes) < LANES_MOST:
        state.lanes.append(lane)


def warns(state: BudgetState) -> bool:
    """Whether most of it is spent, or all, for the first time in this period."""
    if _warning(state) <= state.warned:
        return False
    state.warned = _warning(state)
    return True


def _warning(state: BudgetState) -> int:
    if state.reached:
        return 2
    return 1 if state.share >= WARNED_AT else 0


def first_closed(
    states: Mapping[str, BudgetState], of: Iterable[str], now: float
) -> BudgetState | None:
    """The budget that keeps a request of these payers from being made; of several the one that
    does so longest."""
    closed = [states[payer] for payer in of if payer in states and states[payer].closed(now)]
    return max(closed, key=lambda state: state.ends, default=None)


def why(state: BudgetState) -> str:
    """What a job that is paused waits for."""
    anew, again = resumes(state), "when it is raised"
    if anew:
        again = f"{anew}, or {again}"
    per = "in all" if state.per == "total" else f"this {state.per}"
    return f"budget {state.payer}: {spent_of(state)} {per}; resumes {again}"


def resumes(state: BudgetState) -> str:
    """When the next period begins, for people; empty: never."""
    if state.ends >= FOREVER:
        return ""
    moment = datetime.fromtimestamp(state.ends, _zone(state.timezone))
    return f"{moment:%Y-%m-%d %H:%M} {state.timezone}"


def spent_of(state: BudgetState) -> str:
    """For people."""
    parts = []
    if state.cost_limit is not None:
        parts.append(f"{state.cost / MICRO:,.2f} of {state.cost_limit / MICRO:,.2f}")
    if state.tokens_limit is not None:
        parts.append(f"{state.tokens:,} of {state.tokens_limit:,} tokens")
    return " and ".join(parts) + " spent"


def period(per: str, timezone: str, now: float) -> tuple[float, float]:
    """When the period that `now` is in begins and ends."""
    if per == "total":
        return 0.0, FOREVER
    if per == "hour":
        begins = math.floor(now / 3600) * 3600.0
        return begins, begins + 3600
    zone = _zone(timezone)
    day = datetime.fromtimestamp(now, zone).date()
    if per == "week":
        day -= timedelta(days=day.weekday())
        after = day + timedelta(days=7)
    elif per == "month":
        day = day.replace(day=1)
        after = (day + timedelta(days=31)).replace(day=1)
    else:
        after = day + timedelta(days=1)
    begins, ends = (
        datetime(one.year, one.month, one.day, tzinfo=zone).timestamp() for one in (day, after)
    )
    return begins, ends


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)
