"""`penstock dead-letters`: list, groups, show, redrive, discard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.errors import NotFound, UsageError
from penstock.cli.jobs import JobArgument, JobsArgument, show_job, show_jobs, whole_ids
from penstock.cli.options import (
    BeforeOption,
    KindOption,
    LimitOption,
    TenantOption,
    YesOption,
    confirm,
    flag,
    need_terminal,
    new_group,
    option,
)
from penstock.cli.output import Looks, age, plural, print_table, printable
from penstock.cli.session import Runner, Session
from penstock.model.job import JobState
from penstock.model.redact import hidden

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.ports.operators import DeadGroup
    from penstock.ports.queue import JobFilter

group = new_group("List, redrive and discard failed jobs.")

COUNTED = 100
"""Maximum dead letters counted exactly when asking whether to discard them."""

AllOption = Annotated[bool, typer.Option("--all", help="All dead letters, or all that match.")]


@dataclass(slots=True, frozen=True)
class DeadFilters:
    """Options that select dead letters."""

    kind: KindOption = None
    tenant: TenantOption = None
    error: str | None = option("TYPE", "Only this error type.")

    @property
    def where(self) -> JobFilter:
        from penstock.ports.queue import JobFilter

        return JobFilter(kind=self.kind, tenant=self.tenant, error_type=self.error)


@group.command("list")
def list_dead_letters(
    *, filters: DeadFilters, limit: LimitOption = 50, before: BeforeOption = None, session: Session
) -> None:
    """List dead letters, newest first."""
    from penstock.ports.queue import JobFilter

    where = filters.where
    with session.opened() as (app, run):
        if before is not None:
            run(app.get(before))
        found = run(app.dead_letters(where, limit=limit, before=before))
    nothing = "no dead letters" + (" match" if before or where != JobFilter() else "")
    show_jobs(session, app, found, nothing, limit)


@group.command("groups")
def list_groups(*, tenant: TenantOption = None, session: Session) -> None:
    """Group dead letters by kind and error type, most frequent first.

    Shows the count, when the first and the last failed, and the latest error message. Redrive a
    group with --kind and --error.
    """
    with session.opened() as (app, run):
        found = run(app.dead_groups(tenant))
        names = app.config.logging.hidden_names

    def table(groups: Sequence[DeadGroup]) -> None:
        rows = [
            {
                "kind": one.kind,
                "error": printable(one.error_type),
                "count": f"{one.count:,}",
                "first": f"{age(one.first_at)} ago",
                "last": f"{age(one.last_at)} ago",
                "newest": one.newest_id,
                "last error": printable(hidden(one.message, names)),
            }
            for one in groups
        ]
        print_table(rows, Looks(right=["count", "first", "last"], cut=["last error"]))

    session.show_list(found, table, "no dead letters" + (" match" if tenant else ""))


@group.command("show")
def show(*, job_id: JobArgument, session: Session) -> None:
    """Show a dead letter in full: payload, and how every attempt ended."""
    with session.opened() as (app, run):
        [whole] = run(whole_ids(app, [job_id], dead=True))
        job = run(app.get(whole))
    if job.state is not JobState.FAILED:
        raise NotFound(f"job {job_id} is {job.state}, not a dead letter; see penstock jobs show")
    show_job(session, app, job)


@group.command("redrive")
def redrive(
    *,
    job_ids: JobsArgument = None,
    every: AllOption = False,
    from_scratch: bool = flag("--from-scratch", "Drop the records of their steps."),
    filters: DeadFilters,
    session: Session,
) -> None:
    """Put dead letters back in the queue with fresh retries; their history is kept.

    What their steps have recorded is kept as well, and not done again, unless --from-scratch.
    """
    chosen = _chosen("redrive", job_ids, every, filters)
    with session.opened() as (app, run):
        where = run(_whole(app, chosen))
        changed = run(app.queue.redrive(where, from_scratch=from_scratch))
    _report("redriven", changed, where, session)


@group.command("discard")
def discard(
    *,
    job_ids: JobsArgument = None,
    every: AllOption = False,
    filters: DeadFilters,
    yes: YesOption = False,
    session: Session,
) -> None:
    """Delete dead letters permanently; asks for confirmation."""
    chosen = _chosen("discard", job_ids, every, filters)
    with session.opened() as (app, run):
        where = run(_whole(app, chosen))
        if not yes:
            _confirm(app, run, where)
        changed = run(app.queue.discard(where))
    _report("discarded", changed, where, session)


def _chosen(verb: str, ids: list[str] | None, every: bool, filters: DeadFilters) -> JobFilter:
    filtered = filters.kind or filters.tenant or filters.error
    if ids and (every or filtered):
        raise UsageError("give ids, or --all and filters, not both")
    if not (ids or every or filtered):
        raise UsageError(
            f"which dead letters? Give ids, a filter (--kind, --tenant, --error) or --all: "
            f"penstock dead-letters {verb} --all"
        )
    return replace(filters.where, ids=ids or None)


async def _whole(app: Penstock, chosen: JobFilter) -> JobFilter:
    """Return the same filters with complete ids."""
    if chosen.ids is None:
        return chosen
    return replace(chosen, ids=await whole_ids(app, chosen.ids, dead=True))


def _confirm(app: Penstock, run: Runner, where: JobFilter) -> None:
    need_terminal("discarding")
    if count := len(run(app.dead_letters(where, limit=COUNTED))):
        more = " or more" if count == COUNTED else ""
        dead_letters = f"{count}{more} dead letter{'' if count == 1 else 's'}"
        confirm(f"Discard {dead_letters} permanently?", "nothing discarded")


def _report(what: str, changed: list[str], where: JobFilter, session: Session) -> None:
    from penstock.wire.jobs import ChangedJobs

    count = plural(len(changed), "dead letter")
    session.show(ChangedJobs(len(changed), changed, []), f"{what} {count}")
    if missing := [job_id for job_id in where.ids or () if job_id not in set(changed)]:
        raise NotFound(f"no dead letter with id {', '.join(map(repr, missing))}")
