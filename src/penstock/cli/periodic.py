"""`penstock periodic`: periodic jobs and their ticks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.cli.output import Column, print_table
from penstock.cli.session import Session
from penstock.cli.text import moment

if TYPE_CHECKING:
    from penstock.engine.ticker import PeriodicKind


def list_periodic(*, session: Session) -> None:
    """List periodic jobs with their last and next tick.

    Shows the periodic kinds of the worker processes that are running now. While jobs of earlier
    ticks are unfinished, ticks are skipped unless the kind allows overlap.
    """
    with session.opened() as (app, run):
        kinds = run(app.periodic())
    session.show_list(kinds, _print_kinds, "no worker process has periodic jobs")


def _print_kinds(kinds: Sequence[PeriodicKind]) -> None:
    columns = [Column("kind"), Column("schedule"), Column("last tick"), Column("next tick")]
    columns += [Column("unfinished", right=True), Column("processes", right=True)]
    rows = [
        [
            one.kind,
            one.schedule,
            moment(one.last),
            moment(one.next),
            str(one.unfinished),
            str(one.processes),
        ]
        for one in kinds
    ]
    print_table(columns, rows)
