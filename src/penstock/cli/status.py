"""`penstock status`, `penstock periodic` and `penstock actions`: views for operators."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.cli.options import BeforeOption, LimitOption, option
from penstock.cli.output import Looks, Row, age, moment, print_json, print_table, printable, say
from penstock.cli.session import Session
from penstock.model.job import JobState

if TYPE_CHECKING:
    from penstock.engine.ticker import PeriodicKind
    from penstock.model.access import Action
    from penstock.ports.operators import KindCounts, ProcessInfo

STYLES = {"failed": "bold red", "partial": "yellow", "begun": "yellow", "done": "green"}


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
        print_table(*counts_table(counts))
    else:
        say("no jobs")
    say()
    if processes:
        right = ["pid", "busy", "parked", "stuck", "seen"]
        rows = [_process_row(process, now) for process in processes]
        print_table(rows, Looks(right, fold=["kinds"], styles={}))
    else:
        say("no worker processes")
    if seen.attention:
        say("\nneeds attention:")
        for one in seen.attention:
            since = "" if one.since is None else f", for {age(one.since)}"
            say(f"- {one.what}: {printable(one.subject)}{since}; {printable(one.todo)}")


def counts_table(counts: Sequence[KindCounts]) -> tuple[list[Row], Looks]:
    """Build a table of jobs per kind and state, with totals."""
    rows: list[Row] = []
    for kind in counts:
        cells = {str(state): f"{kind.states.get(state, 0):,}" for state in JobState}
        oldest = "-" if kind.oldest_queued_at is None else age(kind.oldest_queued_at)
        rows.append({"kind": kind.kind, **cells, "oldest queued": oldest})
    if len(counts) != 1:
        sums = {
            str(state): f"{sum(k.states.get(state, 0) for k in counts):,}" for state in JobState
        }
        rows.append({"kind": "all", **sums, "oldest queued": ""})
    return rows, Looks(right=[*map(str, JobState), "oldest queued"])


def _process_row(process: ProcessInfo, now: float) -> Row:
    from penstock.api.overview import process_state

    return {
        "host": printable(process.host),
        "pid": str(process.pid),
        "state": process_state(process, now),
        "busy": f"{process.status.get('busy', 0)} of {process.max_workers}",
        "parked": str(process.status.get("parked", 0)),
        "stuck": str(process.status.get("stuck", 0)),
        "seen": f"{age(process.heartbeat_at)} ago",
        "kinds": " ".join(process.kinds),
    }


def list_periodic(*, session: Session) -> None:
    """List periodic jobs with their last and next tick.

    Shows the periodic kinds of the worker processes that are running now. While jobs of earlier
    ticks are unfinished, ticks are skipped unless the kind allows overlap.
    """
    with session.opened() as (app, run):
        kinds = run(app.periodic())
    session.show_list(kinds, _print_kinds, "no worker process has periodic jobs")


def _print_kinds(kinds: Sequence[PeriodicKind]) -> None:
    rows = [
        {
            "kind": one.kind,
            "schedule": one.schedule,
            "last tick": moment(one.last),
            "next tick": moment(one.next),
            "unfinished": str(one.unfinished),
            "processes": str(one.processes),
        }
        for one in kinds
    ]
    print_table(rows, Looks(right=["unfinished", "processes"]))


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
    rows = [
        {
            "when": moment(one.at),
            "tenant": printable(one.tenant),
            "key": printable(one.key_name) or "-",
            "action": one.action,
            "subject": printable(one.subject),
            "outcome": str(one.outcome),
            "detail": printable(json.dumps(dict(one.detail), ensure_ascii=False))
            if one.detail
            else "",
        }
        for one in actions
    ]
    print_table(
        rows, Looks(fold=["subject"], cut=["key", "detail"], styles={"outcome": STYLES.get})
    )
