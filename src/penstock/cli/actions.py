"""`penstock actions`: what callers of the server did."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from penstock.cli.options import (
    BeforeOption,
    ConfigOption,
    JsonOption,
    LimitOption,
    QueueOption,
)
from penstock.cli.output import Column, note, print_json, print_table
from penstock.cli.session import opened
from penstock.cli.text import moment, printable

STYLES = {"failed": "bold red", "partial": "yellow", "begun": "yellow", "done": "green"}


def list_actions(
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="T", help="Only actions of this tenant.")
    ] = None,
    limit: LimitOption = 50,
    before: BeforeOption = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the audit log: actions on jobs, lanes and documents over HTTP, newest first.

    Shows the API key, the target, the outcome and figures. Actions on the command line are not
    recorded: its users have full access to the queue.
    """
    with opened(queue, config, "keys") as (app, run):
        found = run(app.keys.store.actions(limit, before, tenant))
    if as_json:
        print_json(found)
        return
    if not found:
        note("nothing was done" + (" that matches" if tenant or before else ""))
        return
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
        for one in found
    ]
    print_table([*columns, Column("detail", fit="cut")], rows)
    if len(found) == limit:
        note(f"there may be more: --before {found[-1].id}")
