"""`penstock periodic`: periodic jobs and their ticks."""

from __future__ import annotations

from penstock.cli.options import ConfigOption, JsonOption, QueueOption
from penstock.cli.output import Column, note, print_json, print_table
from penstock.cli.session import opened
from penstock.cli.text import moment


def list_periodic(
    queue: QueueOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """List periodic jobs with their last and next tick.

    Shows the periodic kinds of the worker processes that are running now. While jobs of earlier
    ticks are unfinished, ticks are skipped unless the kind allows overlap.
    """
    with opened(queue, config) as (app, run):
        kinds = run(app.periodic())
    if as_json:
        print_json(kinds)
    elif not kinds:
        note("no worker process has periodic jobs")
    else:
        columns = [
            Column("kind"),
            Column("schedule"),
            Column("last tick"),
            Column("next tick"),
            Column("unfinished", right=True),
            Column("processes", right=True),
        ]
        print_table(
            columns,
            [
                [
                    kind.kind,
                    kind.schedule,
                    moment(kind.last),
                    moment(kind.next),
                    str(kind.unfinished),
                    str(kind.processes),
                ]
                for kind in kinds
            ],
        )
