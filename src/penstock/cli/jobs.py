"""`penstock jobs`: list, show, cancel, rerun, signal, follow, watch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.errors import ExitCode, InputError, NotFound, UsageError
from penstock.cli.options import BeforeOption, JobFilters, LimitOption, flag, new_group, option
from penstock.cli.output import plural, print_json
from penstock.cli.session import Session
from penstock.model.job import Job, JobState
from penstock.model.redact import hidden_job
from penstock.model.step import Step

if TYPE_CHECKING:
    from penstock.app import Penstock

group = new_group("List, show, cancel, signal, follow, watch and rerun jobs.")

JobArgument = Annotated[str, typer.Argument(metavar="ID", help="Job id, or its beginning or end.")]
JobsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Job ids, or their beginnings or ends.")
]

ID_DIGITS = 32
LEAST_DIGITS = 6
"""Minimum digits of a partial id."""
SEARCHED = 1000
"""Number of recent jobs or dead letters searched for a partial id."""


@group.command("list")
def list_jobs(
    *,
    state: list[JobState] | None = option(
        "STATE", "queued, running, completed, failed or cancelled; repeatable."
    ),
    filters: JobFilters,
    limit: LimitOption = 50,
    before: BeforeOption = None,
    session: Session,
) -> None:
    """List jobs, newest first, without payloads and results."""
    from penstock.ports.queue import JobFilter

    where = replace(filters.where, states=state or None)
    with session.opened() as (app, run):
        if before is not None:
            run(app.get(before))  # a page after a job that is gone would look like the end
        found = run(app.queue.find(where, limit, before))
    nothing = "no jobs match" if before or where != JobFilter() else "no jobs"
    show_jobs(session, app, found, nothing, limit)


def show_jobs(
    session: Session, app: Penstock, found: Sequence[Job], nothing: str, limit: int
) -> None:
    """Print a page of jobs, with secrets hidden for people."""
    from penstock.cli.job_view import print_jobs, summary

    names = app.config.logging.hidden_names
    session.show_list(
        found,
        lambda jobs: print_jobs([hidden_job(job, names) for job in jobs]),
        nothing,
        line=summary,
        limit=limit,
    )


@group.command("show")
def show(
    *,
    job_id: JobArgument,
    steps: bool = flag("--steps", "Also the steps it has recorded or begun."),
    session: Session,
) -> None:
    """Show a job in full, with payload and result; secrets are shown as ***.

    Six or more digits from the beginning or the end of an id are enough if they are unique among
    the newest 1,000 jobs.
    """
    with session.opened() as (app, run):
        [whole] = run(whole_ids(app, [job_id]))
        job = run(app.get(whole))
        found = run(app.steps(whole)) if steps else None
    show_job(session, app, job, found)


def show_job(
    session: Session, app: Penstock, job: Job, steps: Sequence[Step] | None = None
) -> None:
    """Print a job, with its steps if they are given, and with secrets hidden for people."""
    from penstock.cli.job_view import print_job, print_steps

    names = app.config.logging.hidden_names
    if session.as_json:
        also = {} if steps is None else {"steps": [step.as_dict() for step in steps]}
        print_json({**job.as_dict(), **also})
        return
    print_job(hidden_job(job, names))
    if steps is not None:
        print_steps(steps, names)


@group.command("cancel")
def cancel(
    *,
    job_ids: JobsArgument = None,
    every: bool = flag("--all", "All unfinished jobs."),
    filters: JobFilters,
    session: Session,
) -> None:
    """Cancel jobs by id or by filter, together with their children that are not detached.

    Queued jobs are cancelled at once, running ones within a second. A job that has already
    finished is left as it is; if it was named, a message says so, and it is not an error.
    """
    from penstock.ports.queue import JobFilter
    from penstock.wire.jobs import ChangedJobs

    where = filters.where
    filtered = where != JobFilter()
    if job_ids and (every or filtered):
        raise UsageError("give ids, or --all or filters, not both")
    if job_ids:
        _cancel_named(job_ids, session)
        return
    if every == filtered:
        raise UsageError("give job ids, filters (--kind, --lane, ...) or --all")
    with session.opened() as (app, run):
        ids = run(app.queue.cancel(where))
    session.show(ChangedJobs(len(ids), ids, []), f"cancelled {plural(len(ids), 'job')}")


def _cancel_named(parts: list[str], session: Session) -> None:
    from penstock.ports.queue import JobFilter
    from penstock.wire.jobs import ChangedJobs, Refusal

    with session.opened() as (app, run):
        ids = run(whole_ids(app, parts))
        cancelled = set(run(app.queue.cancel(JobFilter(ids=ids))))
        jobs = run(app.queue.get(ids))
    found = [jobs[job_id] for job_id in ids if job_id in jobs]
    others = [job for job in found if job.id not in cancelled]
    refused = [Refusal(job.id, f"it is already {job.state}") for job in others]
    lines = [
        f"{job.id}  {'cancelled' if job.id in cancelled else f'already {job.state}'}"
        for job in found
    ]
    session.show(ChangedJobs(len(cancelled), sorted(cancelled), refused), *lines)
    if missing := [job_id for job_id in ids if job_id not in jobs]:
        raise NotFound(f"no job with id {', '.join(map(repr, missing))}")


@group.command("rerun")
def rerun(
    *,
    job_id: JobArgument,
    from_step: str | None = option(
        "NAME", "Take over what was recorded before this step; NAME#3 is the third of that name."
    ),
    session: Session,
) -> None:
    """Run a job again as a new one, and print its id.

    The same kind, payload, lane, priority and tenant, without its key, log and deadline. The old
    job stays as it is.
    """
    from penstock.api.tenant_view import TenantView

    with session.opened() as (app, run):
        [whole] = run(whole_ids(app, [job_id]))
        old = run(app.get(whole))
        job = run(TenantView(app, old.tenant).rerun(whole, from_step=from_step))
    session.show(job, job.id)


@group.command("signal")
def signal(
    *,
    job_id: JobArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name it waits for.")],
    payload: Annotated[
        str,
        typer.Argument(
            metavar="JSON",
            help="What it is told; true unless given. Not null: that stands for a timeout.",
        ),
    ] = "true",
    key: str | None = option("KEY", "The same key is the same signal."),
    session: Session,
) -> None:
    """Tell a job what it waits for with ctx.wait_for, or will wait for.

    A job that has finished takes no signals.
    """
    from penstock.text.json_text import value_of
    from penstock.wire.jobs import SignalStored

    told = value_of(payload, "the payload")
    with session.opened() as (app, run):
        [whole] = run(whole_ids(app, [job_id]))
        stored = run(app.signal(whole, name, told, key=key))
    session.show(SignalStored(stored), "sent" if stored else "sent before: it has this key")


@group.command("follow")
def follow(
    *,
    job_id: JobArgument,
    after: int | None = option("POSITION", "Only what comes after it; see the first column."),
    session: Session,
) -> None:
    """Follow the events of a job, from its first to its end.

    These are events that it emits, steps as they are recorded, its progress and its end, a line for
    each; with --json, a line of JSON. The exit code is 1 if it failed or was cancelled.
    """
    from penstock.cli.job_view import print_events

    with session.opened() as (app, run):
        [whole] = run(whole_ids(app, [job_id]))
        job = run(print_events(app, whole, after, as_json=session.as_json))
    if job.state is not JobState.COMPLETED:
        raise typer.Exit(ExitCode.UNSUCCESSFUL)


@group.command("watch")
def watch(
    *,
    job_ids: JobsArgument = None,
    until_idle: bool = flag("--until-idle", "Without ids: exit when no work is left."),
    session: Session,
) -> None:
    """Watch jobs until they finish.

    Without ids it shows the number of jobs in each state, until interrupted.

    With ids the exit code is 1 if one of them failed or was cancelled. When the output is not a
    terminal, every change is printed as a line; with --json, as a line of JSON.
    """
    from penstock.cli.watch import watch_counts, watch_jobs

    if job_ids and until_idle:
        raise UsageError("--until-idle cannot be combined with ids")
    with session.opened() as (app, run):
        if not job_ids:
            run(watch_counts(app, until_idle=until_idle, as_json=session.as_json))
            return
        ids = run(whole_ids(app, job_ids))
        jobs = run(watch_jobs(app, ids, as_json=session.as_json))
    if any(job.state is not JobState.COMPLETED for job in jobs):
        raise typer.Exit(ExitCode.UNSUCCESSFUL)


async def whole_ids(app: Penstock, parts: Sequence[str], *, dead: bool = False) -> list[str]:
    """Complete partial ids, without duplicates: to that of the one recent job (if `dead`, dead
    letter) whose id starts or ends with it. What is too short or too long for a part stays as it
    is."""
    known = await app.queue.get(list(parts))
    short = [part for part in parts if part not in known and LEAST_DIGITS <= len(part) < ID_DIGITS]
    if not short:
        return list(dict.fromkeys(parts))
    recent = await (app.dead_letters(limit=SEARCHED) if dead else app.jobs(limit=SEARCHED))
    ids = [job.id for job in recent]
    whole = {part: _whole(part, ids, "dead letters" if dead else "jobs") for part in short}
    return list(dict.fromkeys(whole.get(part, part) for part in parts))


def _whole(part: str, ids: list[str], what: str) -> str:
    found = [one for one in ids if one.startswith(part) or one.endswith(part)]
    if len(found) > 1:
        raise InputError(f"{len(found)} {what} have {part!r} in their id; give more of it")
    if not found:
        raise NotFound(f"none of the newest {SEARCHED:,} {what} has {part!r} in its id")
    return found[0]
