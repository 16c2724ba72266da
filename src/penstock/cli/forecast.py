"""`penstock forecast`: when the backlog is done, what it costs, what holds it up, and what if."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from penstock.cli.options import KindOption, TenantOption, option
from penstock.cli.output import is_terminal, print_json, printable, say
from penstock.cli.session import Session

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="LANE.KEY=VALUE",
        help="What if a lane had this limit: embedder.max_parallel=8; repeatable.",
    ),
]
QUIET_SECONDS = 1.0
"""Progress is shown of what takes longer."""


def show_forecast(
    *,
    kind: KindOption = None,
    tenant: TenantOption = None,
    changes: SetOption = None,
    workers: int | None = option("N", "What if each process had so many workers.", min=1),
    processes: int | None = option("N", "What if so many processes worked.", min=1),
    session: Session,
) -> None:
    """Forecast when the backlog is done, what it costs, and what holds it up.

    Runs the rules of lanes over the queued and running jobs in virtual time, with the live worker
    processes and the durations of past runs. Nothing is changed. --set takes the limits of
    lanes (max_parallel, requests_per_interval, tokens_per_interval, requests_per_day, ...), and
    LANE.resumed=true for a lane that is paused or blocked, or whose breaker is open.
    --kind and --tenant select whose end is told; all other jobs are in the way as ever. Jobs that
    are still to be enqueued, by running jobs too, are not part of it.
    """
    from penstock.forecast.what_if import parse_changes
    from penstock.forecast.words import in_words
    from penstock.wire.forecast import forecast_view

    asked = parse_changes(changes or ())
    shown = _Progress(quiet=session.as_json)
    with session.opened() as (app, run):
        told = run(
            app.forecast(
                kind=kind,
                tenant=tenant,
                changes=asked,
                workers=workers,
                processes=processes,
                progress=shown,
            )
        )
    shown.clear()
    if session.as_json:
        print_json(forecast_view(told))
        return
    for line in in_words(told):
        say(printable(line))


class _Progress:
    """A line on a terminal that is written again and again."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet or not is_terminal(sys.stderr)
        self._begun = time.monotonic()
        self._shown = ""

    def __call__(self, share: float) -> None:
        text = f"forecasting: {share:.0%}"
        if self._quiet or text == self._shown or time.monotonic() - self._begun < QUIET_SECONDS:
            return
        self._shown = text
        sys.stderr.write(f"\r{text}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * len(self._shown) + "\r")
