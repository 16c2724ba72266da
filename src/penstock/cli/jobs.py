"""`penstock jobs`: list, show, cancel, rerun, watch."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from penstock.cli.errors import ExitCode, NotFound, UsageError
from penstock.cli.options import (
    AfterOption,
    BeforeOption,
    ConfigOption,
    EarlierOption,
    JsonOption,
    KindOption,
    LaneOption,
    LimitOption,
    LogOption,
    PriorityOption,
    QueueOption,
    TenantOption,
    new_group,
    seconds_of,
)
from penstock.cli.output import note, print_json, say
from penstock.cli.session import opened
from penstock.cli.short_ids import whole_ids
from penstock.cli.text import plural
from penstock.model.job import JobState
from penstock.model.redact import hidden_job

group = new_group("List, show, cancel, watch and rerun jobs.")

JobArgument = Annotated[str, typer.Argument(metavar="ID", help="Job id, or its beginning or end.")]
StateOption = Annotated[
    list[JobState] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        help="queued, running, completed, failed or cancelled; repeatable.",
    ),
]


@group.command("list")
def list_jobs(
    state: StateOption = None,
    kind: KindOption = None,
    tenant: TenantOption = None,
    log: LogOption = None,
    lane: LaneOption = None,
    priority: PriorityOption = None,
    enqueued_after: AfterOption = None,
    enqueued_before: EarlierOption = None,
    limit: LimitOption = 50,
    before: BeforeOption = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, newest first, without payloads and results."""
    from penstock.cli.job_view import print_jobs, summary

    where: dict[str, Any] = {
        "states": state or None,
        "kind": kind,
        "tenant": tenant,
        "log": log,
        "lane": lane,
        "priority": priority,
        "enqueued_after": seconds_of("--enqueued-after", enqueued_after),
        "enqueued_before": seconds_of("--enqueued-before", enqueued_before),
    }
    with opened(queue, config) as (app, run):
        if before is not None:
            run(app.get(before))  # a page after a job that is gone would look like the end
        found = run(app.jobs(**where, limit=limit, before=before))
        names = app.config.logging.hidden_names
    if as_json:
        print_json([summary(job) for job in found])
    elif not found:
        note("no jobs match" if before or any(where.values()) else "no jobs")
    else:
        print_jobs([hidden_job(job, names) for job in found])
        if len(found) == limit:
            note(f"there may be more: --before {found[-1].id}")


@group.command("show")
def show(
    job_id: JobArgument,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a job in full, with payload and result; secrets are shown as ***.

    Six or more digits from the beginning or the end of an id are enough if they are unique among
    the newest 1,000 jobs.
    """
    from penstock.cli.job_view import print_job

    with opened(queue, config) as (app, run):
        [whole] = run(whole_ids(app, [job_id]))
        job = run(app.get(whole))
        names = app.config.logging.hidden_names
    if as_json:
        print_json(job)
    else:
        print_job(hidden_job(job, names))


@group.command("cancel")
def cancel(
    job_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Job ids, or their beginnings or ends."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All unfinished jobs.")] = False,
    kind: KindOption = None,
    tenant: TenantOption = None,
    log: LogOption = None,
    lane: LaneOption = None,
    priority: PriorityOption = None,
    enqueued_after: AfterOption = None,
    enqueued_before: EarlierOption = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel jobs by id or by filter, together with their children that are not detached.

    Queued jobs are cancelled at once, running ones within a second. A job that has already
    finished is left as it is; if it was named, a message says so, and it is not an error.
    """
    from penstock.model.job import Priority
    from penstock.ports.queue import JobFilter
    from penstock.wire.jobs import ChangedJobs

    where = JobFilter(
        kind=kind,
        tenant=tenant,
        log=log,
        lane=lane,
        priority=None if priority is None else Priority.parse(priority),
        enqueued_after=seconds_of("--enqueued-after", enqueued_after),
        enqueued_before=seconds_of("--enqueued-before", enqueued_before),
    )
    filtered = where != JobFilter()
    if job_ids and (every or filtered):
        raise UsageError("give ids, or --all or filters, not both")
    if not job_ids:
        if every == filtered:
            raise UsageError("give job ids, filters (--kind, --lane, ...) or --all")
        with opened(queue, config) as (app, run):
            ids = run(app.queue.cancel(where))
        if as_json:
            print_json(ChangedJobs(len(ids), ids, []))
        else:
            say(f"cancelled {plural(len(ids), 'job')}")
        return
    _cancel_named(job_ids, queue, config, as_json=as_json)


def _cancel_named(
    parts: list[str], queue: str | None, config: str | None, *, as_json: bool
) -> None:
    from penstock.ports.queue import JobFilter
    from penstock.wire.jobs import ChangedJobs, Refusal

    with opened(queue, config) as (app, run):
        ids = run(whole_ids(app, parts))
        cancelled = set(run(app.queue.cancel(JobFilter(ids=ids))))
        jobs = run(app.queue.get(ids))
    found = [jobs[job_id] for job_id in ids if job_id in jobs]
    if as_json:
        others = [job for job in found if job.id not in cancelled]
        refused = [Refusal(job.id, f"it is already {job.state}") for job in others]
        print_json(ChangedJobs(len(cancelled), sorted(cancelled), refused))
    else:
        for job in found:
            say(f"{job.id}  {'cancelled' if job.id in cancelled else f'already {job.state}'}")
    if missing := [job_id for job_id in ids if job_id not in jobs]:
        raise NotFound(f"no job with id {', '.join(map(repr, missing))}")


@group.command("rerun")
def rerun(
    job_id: JobArgument,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a job again as a new one, and print its id.

    The same kind, payload, lane, priority and tenant, without its key, log and deadline. The old
    job stays as it is.
    """
    from penstock.api.tenant_view import TenantView

    with opened(queue, config) as (app, run):
        [whole] = run(whole_ids(app, [job_id]))
        old = run(app.get(whole))
        job = run(TenantView(app, old.tenant).rerun(whole))
    if as_json:
        print_json(job)
    else:
        say(job.id)


@group.command("watch")
def watch(
    job_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Job ids, or their beginnings or ends."),
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Without ids: exit when no work is left.")
    ] = False,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch jobs until they finish.

    Without ids it shows the number of jobs in each state, until interrupted.

    With ids the exit code is 1 if one of them failed or was cancelled. When the output is not a
    terminal, every change is printed as a line; with --json, as a line of JSON.
    """
    from penstock.cli.watch import watch_counts, watch_jobs

    if job_ids and until_idle:
        raise UsageError("--until-idle cannot be combined with ids")
    with opened(queue, config) as (app, run):
        if not job_ids:
            run(watch_counts(app, until_idle=until_idle, as_json=as_json))
            return
        ids = run(whole_ids(app, job_ids))
        jobs = run(watch_jobs(app, ids, as_json=as_json))
    if any(job.state is not JobState.COMPLETED for job in jobs):
        raise typer.Exit(ExitCode.UNSUCCESSFUL)
