"""`penstock budgets`: what tenants and tasks may spend; list, set, remove."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.errors import NotFound
from penstock.cli.options import (
    ConfigOption,
    JsonOption,
    QueueOption,
    given,
    hand_down,
    new_typer,
    option,
)
from penstock.cli.output import Looks, print_table, printable
from penstock.cli.session import Session
from penstock.errors import BudgetNotFound

if TYPE_CHECKING:
    from penstock.model.budget import BudgetState

group = new_typer()

PayerArgument = Annotated[
    str, typer.Argument(metavar="PAYER", help="tenant:NAME, or task:TENANT/ID.")
]


class Per(StrEnum):
    """Periods of a budget."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    TOTAL = "total"


@group.callback(invoke_without_command=True)
def budgets(
    ctx: typer.Context,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show, set and remove budgets of tenants and tasks.

    Without a command it lists them: what may be spent in a period, what is spent or reserved of
    it, and when the next period begins. While a budget is reached, what would spend is paused.
    """
    hand_down(ctx, queue=queue, config=config, as_json=as_json)
    if ctx.invoked_subcommand is None:
        list_budgets(session=Session(queue, config, as_json))


@group.command("list")
def list_budgets(*, session: Session) -> None:
    """List budgets, as `penstock budgets` does."""
    from penstock.wire.budgets import budget_view

    with session.opened() as (app, run):
        found = run(app.budgets.list())
    session.show_list(found, _print_budgets, "no budgets", line=budget_view)


@group.command("set")
def set_budget(
    *,
    payer: PayerArgument,
    cost: float | None = option("MONEY", "Money to spend, in the currency of your prices.", min=0),
    tokens: int | None = option("N", "Tokens to spend.", min=0),
    per: Per = typer.Option(Per.DAY, help="When it begins anew; total: never."),
    timezone: str = option("ZONE", "Time zone of the period: Europe/Berlin.", default="UTC"),
    session: Session,
) -> None:
    """Give a tenant or a task a budget, or another one.

    What is spent in this period stays spent. What a raised budget has room for goes on at once.
    """
    from penstock.wire.budgets import budget_view

    limits = given(cost=cost, tokens=tokens)
    with session.opened(create=True) as (app, run):
        state = run(app.budgets.set(payer, per=per.value, timezone=timezone, **limits))
    session.show(budget_view(state), f"{printable(payer)}  {_line(state)}")


@group.command("remove")
def remove_budget(*, payer: PayerArgument, session: Session) -> None:
    """Remove a budget: what it has paused goes on."""
    from penstock.wire.budgets import BudgetRemoved

    with session.opened() as (app, run):
        try:
            run(app.budgets.remove(payer))
        except BudgetNotFound:
            raise NotFound(
                f"{printable(payer)} has no budget; `penstock budgets` lists them"
            ) from None
    session.show(BudgetRemoved(payer), f"{printable(payer)}  removed")


def _line(state: BudgetState) -> str:
    from penstock.lanes.budgets import spent_of

    return spent_of(state) + (", reached" if state.reached else "")


def _print_budgets(found: Sequence[BudgetState]) -> None:
    from penstock.lanes.budgets import resumes, spent_of

    rows = [
        {
            "payer": printable(state.payer),
            "spent": spent_of(state).removesuffix(" spent"),
            "%": f"{100 * state.share:.0f}",
            "per": state.per,
            "begins anew": resumes(state) or "never",
            "state": "reached" if state.reached else "open",
        }
        for state in found
    ]
    styles = {"state": {"reached": "bold red"}.get}
    print_table(rows, Looks(["%"], fold=["payer"], styles=styles))
