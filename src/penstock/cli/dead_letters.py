"""`penstock dead-letters`: list, groups, show, redrive, discard."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.errors import NotFound, UsageError
from penstock.cli.options import (
    BeforeOption,
    ConfigOption,
    JsonOption,
    KindOption,
    LimitOption,
    QueueOption,
    TenantOption,
    new_group,
)
from penstock.cli.output import Column, note, print_json, print_table, say
from penstock.cli.session import Runner, opened
from penstock.cli.short_ids import whole_ids
from penstock.cli.text import age, plural, printable
from penstock.model.job import JobState
from penstock.model.redact import hidden, hidden_job

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.ports.queue import JobFilter

group = new_group("List, redrive and discard failed jobs.")

COUNTED = 100
"""Dead letters counted exactly when asking whether to discard them."""

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Job ids, or their beginnings or ends.")
]
AllOption = Annotated[bool, typer.Option("--all", help="All dead letters, or all that match.")]
ErrorOption = Annotated[
    str | None, typer.Option("--error", metavar="TYPE", help="Only this error type.")
]


@group.command("list")
def list_dead_letters(
    kind: KindOption = None,
    tenant: TenantOption = None,
    error: ErrorOption = None,
    limit: LimitOption = 50,
    before: BeforeOption = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List dead letters, newest first."""
    from penstock.cli.job_view import print_jobs, summary
    from penstock.ports.queue import JobFilter

    where = JobFilter(kind=kind, tenant=tenant, error_type=error)
    with opened(queue, config) as (app, run):
        if before is not None:
            run(app.get(before))
        found = run(app.dead_letters(where, limit=limit, before=before))
        names = app.config.logging.hidden_names
    if as_json:
        print_json([summary(job) for job in found])
    elif not found:
        note("no dead letters" + (" match" if kind or tenant or error or before else ""))
    else:
        print_jobs([hidden_job(job, names) for job in found])
        if len(found) == limit:
            note(f"there may be more: --before {found[-1].id}")


@group.command("groups")
def list_groups(
    tenant: TenantOption = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Group dead letters by kind and error type, most frequent first.

    Shows the count, when the first and the last failed, and the latest error message. Redrive a
    group with --kind and --error.
    """
    with opened(queue, config) as (app, run):
        found = run(app.dead_groups(tenant))
        names = app.config.logging.hidden_names
    if as_json:
        print_json(found)
    elif not found:
        note("no dead letters" + (" match" if tenant else ""))
    else:
        columns = [Column("kind"), Column("error"), Column("count", right=True)]
        columns += [Column("first", right=True), Column("last", right=True)]
        rows = [
            [
                one.kind,
                printable(one.error_type),
                f"{one.count:,}",
                f"{age(one.first_at)} ago",
                f"{age(one.last_at)} ago",
                one.newest_id,
                printable(hidden(one.message, names)),
            ]
            for one in found
        ]
        print_table([*columns, Column("newest"), Column("last error", fit="cut")], rows)


@group.command("show")
def show(
    job_id: Annotated[str, typer.Argument(metavar="ID", help="Job id, or its beginning or end.")],
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a dead letter in full: payload, and how every attempt ended."""
    from penstock.cli.job_view import print_job

    with opened(queue, config) as (app, run):
        [whole] = run(whole_ids(app, [job_id], dead=True))
        job = run(app.get(whole))
        names = app.config.logging.hidden_names
    if job.state is not JobState.FAILED:
        raise NotFound(f"job {job_id} is {job.state}, not a dead letter; see penstock jobs show")
    if as_json:
        print_json(job)
    else:
        print_job(hidden_job(job, names))


@group.command("redrive")
def redrive(
    job_ids: IdsArgument = None,
    every: AllOption = False,
    kind: KindOption = None,
    tenant: TenantOption = None,
    error: ErrorOption = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put dead letters back in the queue with fresh retries; their history is kept."""
    chosen = _chosen("redrive", job_ids, every, kind, tenant, error)
    with opened(queue, config) as (app, run):
        where = run(_whole(app, chosen))
        changed = run(app.queue.redrive(where))
    _report("redriven", changed, where, as_json=as_json)


@group.command("discard")
def discard(
    job_ids: IdsArgument = None,
    every: AllOption = False,
    kind: KindOption = None,
    tenant: TenantOption = None,
    error: ErrorOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete dead letters permanently; asks for confirmation."""
    chosen = _chosen("discard", job_ids, every, kind, tenant, error)
    with opened(queue, config) as (app, run):
        where = run(_whole(app, chosen))
        if not yes:
            _confirm(app, run, where)
        changed = run(app.queue.discard(where))
    _report("discarded", changed, where, as_json=as_json)


def _chosen(
    verb: str,
    ids: list[str] | None,
    every: bool,
    kind: str | None,
    tenant: str | None,
    error: str | None,
) -> JobFilter:
    from penstock.ports.queue import JobFilter

    filters = kind or tenant or error
    if ids and (every or filters):
        raise UsageError("give ids, or --all and filters, not both")
    if not (ids or every or filters):
        raise UsageError(
            f"which dead letters? Give ids, a filter (--kind, --tenant, --error) or --all: "
            f"penstock dead-letters {verb} --all"
        )
    return JobFilter(ids=ids or None, kind=kind, tenant=tenant, error_type=error)


async def _whole(app: Penstock, chosen: JobFilter) -> JobFilter:
    """The same with ids in full."""
    if chosen.ids is None:
        return chosen
    return replace(chosen, ids=await whole_ids(app, chosen.ids, dead=True))


def _confirm(app: Penstock, run: Runner, where: JobFilter) -> None:
    """Ask whoever sits at the terminal; Exit when they say no."""
    if not sys.stdin.isatty():
        raise UsageError("discarding cannot be undone; confirm with --yes")
    count = len(run(app.dead_letters(where, limit=COUNTED)))
    if count == 0:
        return
    more = " or more" if count == COUNTED else ""
    question = f"Discard {count}{more} dead letter{'' if count == 1 else 's'} permanently?"
    if not typer.confirm(question, err=True):
        note("nothing discarded")
        raise typer.Exit


def _report(what: str, changed: list[str], where: JobFilter, *, as_json: bool) -> None:
    from penstock.wire.jobs import ChangedJobs

    if as_json:
        print_json(ChangedJobs(len(changed), changed, []))
    else:
        say(f"{what} {plural(len(changed), 'dead letter')}")
    if missing := [job_id for job_id in where.ids or () if job_id not in set(changed)]:
        raise NotFound(f"no dead letter with id {', '.join(map(repr, missing))}")
