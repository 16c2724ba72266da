"""`penstock actions`: what callers of the server did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.cli.options import BeforeOption, LimitOption, option
from penstock.cli.output import Column, print_table
from penstock.cli.session import Session
from penstock.cli.text import moment, printable

if TYPE_CHECKING:
    from penstock.model.access import Action

STYLES = {"failed": "bold red", "partial": "yellow", "begun": "yellow", "done": "green"}


def list_actions(
    *,
    tenant: str | None = option("T", "Only actions of this tenant."),
    limit: LimitOption = 50,
    before: BeforeOption = None,
    session: Session,
) -> None:
    """List the audit log: actions on jobs, lanes and documents over HTTP, newest first.

    Shows the API key, the target, the outcome and figures. Actions on the command line are not
    recorded: its users have full access to the queue.
    """
    with session.opened("keys") as (app, run):
        found = run(app.keys.store.actions(limit, before, tenant))
    nothing = "nothing was done" + (" that matches" if tenant or before else "")
    session.show_list(found, _print_actions, nothing, limit=limit)


def _print_actions(actions: Sequence[Action]) -> None:
    columns = [Column("when"), Column("tenant"), Column("key", fit="cut"), Column("action")]
    columns += [Column("subject", fit="fold"), Column("outcome", style=STYLES.get)]
    rows = [
        [
            moment(one.at),
            printable(one.tenant),
            printable(one.key_name) or "-",
            one.action,
            printable(one.subject),
            str(one.outcome),
            printable(json.dumps(dict(one.detail), ensure_ascii=False)) if one.detail else "",
        ]
        for one in actions
    ]
    print_table([*columns, Column("detail", fit="cut")], rows)
