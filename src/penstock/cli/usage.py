"""`penstock usage`: what was spent, from the ledger."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

from penstock.cli.errors import UsageError
from penstock.cli.options import flag, option
from penstock.cli.output import Looks, Row, note, print_json, print_table, printable
from penstock.cli.session import Session

if TYPE_CHECKING:
    from penstock.wire.usage import UsageView


class By(StrEnum):
    """Parts that the usage can be told by."""

    DAY = "day"
    TENANT = "tenant"
    TASK = "task"
    JOB = "job"
    KIND = "kind"
    LANE = "lane"
    MODEL = "model"


def show_usage(
    *,
    by: By = typer.Option(By.DAY, help="What to sum up by."),
    tenant: str | None = option("T", "Only usage of this tenant."),
    since: str | None = option("DAY", "First day, in UTC: 2026-01-31."),
    until: str | None = option("DAY", "Last day, in UTC."),
    as_csv: bool = flag("--csv", "Print CSV."),
    session: Session,
) -> None:
    """Show the tokens and the money that requests have used.

    Costs come from the providers' answers, else from the `prices` of penstock.yaml; where there
    is no price they are unknown. RESERVED counts requests that never told their use, such as
    those of killed runs: they are charged with what was reserved for them.
    """
    from penstock.wire.usage import usage_csv, usage_list

    if as_csv and session.as_json:
        raise UsageError("--csv and --json cannot be combined")
    with session.opened() as (app, run):
        sums = run(app.usage(by.value, tenant=tenant, since=since, until=until))
    found = usage_list(by.value, sums)
    if as_csv:
        sys.stdout.write(usage_csv(found))
    elif session.as_json:
        print_json(found)
    elif not found.usage:
        note("nothing was used" + (" that matches" if tenant or since or until else ""))
    else:
        rows = [_row(by.value, one) for one in found.usage]
        print_table(rows, Looks(right=[name for name in rows[0] if name != by.value]))


def _row(by: str, one: UsageView) -> Row:
    return {
        by: printable(one.name) or "-",
        "requests": f"{one.requests:,}",
        "tokens": f"{one.tokens:,}",
        "input": f"{one.input_tokens:,}",
        "output": f"{one.output_tokens:,}",
        "cost": _cost(one),
        "reserved": f"{one.reserved:,}",
    }


def _cost(one: UsageView) -> str:
    if one.cost is None:
        return "unknown"
    known = f"{one.cost:,.6f}".rstrip("0")
    known += "0" * max(0, 2 - len(known.partition(".")[2]))
    return f"{known} + {one.unpriced:,} unknown" if one.unpriced else known
