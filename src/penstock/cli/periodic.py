"""`penstock periodic`: which jobs the clock enqueues, and when."""

from __future__ import annotations

from penstock.cli.options import ConfigOption, JsonOption, QueueOption
from penstock.cli.output import Column, note, print_json, print_table
from penstock.cli.session import opened
from penstock.cli.text import moment


def list_periodic(
    queue: QueueOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """List the kinds that are enqueued by the clock, with their last and next tick.

    Those that worker processes work on now, as each last told: some seconds ago. Unfinished are
    the jobs of earlier ticks; while there are any, ticks are skipped, unless the kind may overlap.
    """
    with opened(queue, config) as (app, run):
        kinds = run(app.periodic())
    if as_json:
        print_json(kinds)
    elif not kinds:
        note("no worker process works on a periodic kind")
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
