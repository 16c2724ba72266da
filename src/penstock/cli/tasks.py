"""`penstock tasks`: list, show, stop, resume, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from penstock.adapters.private_files import open_private
from penstock.cli.errors import ExitCode, InputError, UsageError
from penstock.cli.options import (
    BeforeOption,
    TaskOwnerOption,
    ThousandOption,
    flag,
    new_group,
    option,
)
from penstock.cli.output import note, plural, print_event, print_json, say
from penstock.cli.session import Session

group = new_group("List, show, stop, resume and export research tasks.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Task id.")]
Format = Literal["markdown", "json", "bibtex"]


@group.command("list")
def list_tasks(
    *,
    tenant: TaskOwnerOption = "default",
    limit: ThousandOption = 50,
    before: BeforeOption = None,
    session: Session,
) -> None:
    """List research tasks, newest first."""
    from penstock.cli.task_view import print_tasks

    with session.opened("research") as (app, run):
        found = run(app.research.tasks(tenant=tenant, limit=limit, before=before))
    nothing = "no tasks older than that" if before else "no tasks"
    session.show_list(found, print_tasks, nothing, limit=limit, cursor="task_id")


@group.command("show")
def show(
    *,
    task_id: IdArgument,
    tenant: TaskOwnerOption = "default",
    limit: int = option("N", "Maximum number of results.", default=50, min=0, max=1000),
    cursor: str | None = option("C", "Next page of results."),
    session: Session,
) -> None:
    """Show a task: its searches, results, errors, and what it is waiting for."""
    from penstock.cli.task_view import print_task

    with session.opened("research") as (app, run):
        view = run(app.research.status(task_id, limit=limit, cursor=cursor, tenant=tenant))
    if session.as_json:
        print_json(view)
        return
    print_task(view)
    if view.cursor is not None:
        note(f"there are more results: --cursor {view.cursor}")


@group.command("stop")
def stop(
    *,
    task_id: IdArgument,
    now: bool = flag("--now", "Stop running searches, and discard their results."),
    tenant: TaskOwnerOption = "default",
    session: Session,
) -> None:
    """Stop a task; the rest of it can be resumed.

    Queued searches are cancelled. Running ones finish with their pages and are stored, unless
    --now is given.
    """
    with session.opened("research") as (app, run):
        mode: Literal["immediate", "graceful"] = "immediate" if now else "graceful"
        stopped = run(app.research.stop(task_id, mode=mode, tenant=tenant))
    if session.as_json:
        print_json(stopped)
        return
    done, left = stopped.searches_done, stopped.searches_left
    cancelled = plural(stopped.cancelled, "job")
    say(f"{stopped.status}  {done}/{done + left} searches done, {cancelled} cancelled")
    if stopped.running:
        note(f"{plural(stopped.running, 'job')} will finish; penstock tasks show reports them")
    if stopped.resumable:
        note(f"to resume: penstock tasks resume {task_id}")


@group.command("resume")
def resume(
    *,
    task_id: IdArgument,
    watch: bool = flag("--watch", "Run it in this process, and show progress until it is done."),
    tenant: TaskOwnerOption = "default",
    session: Session,
) -> None:
    """Resume the unfinished part of a task.

    It is only queued: `penstock worker` does the work. With --watch, workers in this process do
    it, as with `penstock research`; this also works for a task that is not stopped but has no
    workers.
    """
    import logging

    with session.opened("research") as (app, run):
        resumed = run(app.research.resume(task_id, tenant=tenant))
        if session.as_json and watch:
            print_event("resumed", resumed)
        elif session.as_json:
            print_json(resumed)
        else:
            note(f"{resumed.status}, searches resumed: {resumed.queued}")
        code: int = ExitCode.OK
        if watch:
            from penstock.cli.task_run import work_on

            logging.getLogger("penstock").setLevel(logging.ERROR)
            code = run(work_on(app, task_id, tenant, as_json=session.as_json))
    raise typer.Exit(code)


@group.command("export")
def export(
    *,
    task_id: IdArgument,
    format: Format | None = typer.Option(None, help="[default: markdown]", show_default=False),
    output: Path | None = option("FILE", "Output file. [stdout]", "--output", "-o"),
    tenant: TaskOwnerOption = "default",
    session: Session,
) -> None:
    """Export a task as one text. --json is short for --format json."""
    if session.as_json and format not in (None, "json"):
        raise UsageError(f"--json means --format json, not {format}")
    chosen: Format = format or ("json" if session.as_json else "markdown")
    with session.opened("research") as (app, run):
        text = run(app.research.export(task_id, chosen, tenant=tenant))
    if output is None:
        say(text.removesuffix("\n"))
        return
    try:
        with open(output, "wb", opener=open_private) as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from None
