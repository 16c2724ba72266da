"""Budgets: what payers may spend, and have spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.model.amounts import MICRO
from penstock.model.budget import FOREVER, BudgetState
from penstock.wire.view import WireView


@dataclass(slots=True, frozen=True)
class BudgetView(WireView):
    """A budget, and what is spent of it."""

    payer: str
    """`tenant:NAME` or `task:TENANT/ID`."""
    cost: float | None
    """What may be spent; None: no limit."""
    tokens: int | None
    per: str
    """hour, day, week, month or total."""
    timezone: str
    spent_cost: float
    """Spent or reserved in this period, as far as prices are known."""
    spent_tokens: int
    share: float
    """Of the limit that is nearest; 1 is all of it."""
    reached: bool
    """What would spend is paused."""
    begins: float
    """Since when it counts."""
    ends: float | None
    """When the next period begins; None: never."""
    lanes: Sequence[str]
    """In which something was spent of it: jobs in these lanes are paused, besides those in lanes
    that count tokens or money."""


@dataclass(slots=True, frozen=True)
class BudgetList(WireView):
    budgets: Sequence[BudgetView]
    """By payer."""


@dataclass(slots=True, frozen=True)
class BudgetRemoved(WireView):
    removed: str
    """Its payer."""


def budget_view(state: BudgetState) -> BudgetView:
    return BudgetView(
        payer=state.payer,
        cost=None if state.cost_limit is None else state.cost_limit / MICRO,
        tokens=state.tokens_limit,
        per=state.per,
        timezone=state.timezone,
        spent_cost=state.cost / MICRO,
        spent_tokens=state.tokens,
        share=round(state.share, 4),
        reached=state.reached,
        begins=state.begins,
        ends=None if state.ends >= FOREVER else state.ends,
        lanes=state.lanes,
    )


def budget_list(states: Sequence[BudgetState]) -> BudgetList:
    return BudgetList([budget_view(state) for state in states])
