"""`penstock status`: is the queue moving, and if not, why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.cli.output import Column, note, print_json, print_table, say
from penstock.cli.session import Session
from penstock.cli.text import age, printable
from penstock.model.job import JobState

if TYPE_CHECKING:
    from penstock.ports.operators import KindCounts, ProcessInfo


def show_status(*, session: Session) -> None:
    """Show the queue, the worker processes, and what needs attention.

    Jobs by kind and state, worker processes, and problems with what to do about each: queued
    jobs that no worker handles, lanes that are blocked or whose breaker is open, stuck workers,
    recent dead letters.
    """
    from penstock.api.attention import look
    from penstock.api.overview import overview
    from penstock.config import hide_secrets
    from penstock.wire.view import fields_of

    with session.opened() as (app, run):
        seen = run(look(app.queue, app.queue.now()))
        now = app.queue.now()
        url = hide_secrets(app.config.queue)
    if session.as_json:
        print_json({"queue": url, **fields_of(overview(None, seen.counts, now, seen))})
        return
    counts, processes = seen.counts, seen.processes
    oldest = [kind.oldest_queued_at for kind in counts if kind.oldest_queued_at is not None]
    say(f"queue          {printable(url)}")
    say(f"oldest queued  {age(min(oldest)) if oldest else '-'}")
    say()
    if counts:
        print_table(*counts_rows(counts))
    else:
        say("no jobs")
    say()
    if processes:
        print_table(_PROCESS_COLUMNS, [_process_row(process, now) for process in processes])
    else:
        say("no worker processes")
    if seen.attention:
        note("\nneeds attention:")
        for one in seen.attention:
            since = "" if one.since is None else f", for {age(one.since)}"
            note(f"- {one.what}: {printable(one.subject)}{since}; {printable(one.todo)}")


def counts_rows(counts: Sequence[KindCounts]) -> tuple[list[Column], list[list[str]]]:
    """A table of jobs per kind and state, and their sums."""
    columns = [Column("kind"), *(Column(state, right=True) for state in JobState)]
    columns += [Column("oldest queued", right=True)]
    rows = []
    for kind in counts:
        cells = [f"{kind.states.get(state, 0):,}" for state in JobState]
        oldest = "-" if kind.oldest_queued_at is None else age(kind.oldest_queued_at)
        rows.append([kind.kind, *cells, oldest])
    if len(counts) != 1:
        sums = [f"{sum(k.states.get(state, 0) for k in counts):,}" for state in JobState]
        rows.append(["all", *sums, ""])
    return columns, rows


_PROCESS_COLUMNS = [
    Column("host"),
    Column("pid", right=True),
    Column("state"),
    Column("busy", right=True),
    Column("parked", right=True),
    Column("stuck", right=True),
    Column("seen", right=True),
    Column("kinds", fit="fold"),
]


def _process_row(process: ProcessInfo, now: float) -> list[str]:
    from penstock.api.overview import process_state

    return [
        printable(process.host),
        str(process.pid),
        process_state(process, now),
        f"{process.status.get('busy', 0)} of {process.max_workers}",
        str(process.status.get("parked", 0)),
        str(process.status.get("stuck", 0)),
        f"{age(process.heartbeat_at)} ago",
        " ".join(process.kinds),
    ]
