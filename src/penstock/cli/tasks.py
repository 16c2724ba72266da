"""`penstock tasks`: list, show, stop, resume, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from penstock.adapters.private_files import open_private
from penstock.cli.errors import ExitCode, InputError, UsageError
from penstock.cli.options import (
    BeforeOption,
    ConfigOption,
    JsonOption,
    QueueOption,
    TaskOwnerOption,
    ThousandOption,
    new_group,
)
from penstock.cli.output import note, print_event, print_json, say
from penstock.cli.session import opened
from penstock.cli.text import plural

group = new_group("List, show, stop, resume and export research tasks.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Task id.")]
Format = Literal["markdown", "json", "bibtex"]


@group.command("list")
def list_tasks(
    tenant: TaskOwnerOption = "default",
    limit: ThousandOption = 50,
    before: BeforeOption = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List research tasks, newest first."""
    from penstock.cli.task_view import print_tasks

    with opened(queue, config, "research") as (app, run):
        found = run(app.research.tasks(tenant=tenant, limit=limit, before=before))
    if as_json:
        print_json(found)
    elif not found:
        note("no tasks older than that" if before else "no tasks")
    else:
        print_tasks(found)
        if len(found) == limit:
            note(f"there may be more: --before {found[-1].task_id}")


@group.command("show")
def show(
    task_id: IdArgument,
    tenant: TaskOwnerOption = "default",
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=0, max=1000, help="Maximum number of results."),
    ] = 50,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="C", help="Next page of results.")
    ] = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a task: its searches, results, errors, and what it is waiting for."""
    from penstock.cli.task_view import print_task

    with opened(queue, config, "research") as (app, run):
        view = run(app.research.status(task_id, limit=limit, cursor=cursor, tenant=tenant))
    if as_json:
        print_json(view)
        return
    print_task(view)
    if view.cursor is not None:
        note(f"there are more results: --cursor {view.cursor}")


@group.command("stop")
def stop(
    task_id: IdArgument,
    now: Annotated[
        bool,
        typer.Option("--now", help="Stop running searches, and discard their results."),
    ] = False,
    tenant: TaskOwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a task; the rest of it can be resumed.

    Queued searches are cancelled. Running ones finish with their pages and are stored, unless
    --now is given.
    """
    with opened(queue, config, "research") as (app, run):
        mode: Literal["immediate", "graceful"] = "immediate" if now else "graceful"
        stopped = run(app.research.stop(task_id, mode=mode, tenant=tenant))
    if as_json:
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
    task_id: IdArgument,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Run it in this process, and show progress until it is done."),
    ] = False,
    tenant: TaskOwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resume the unfinished part of a task.

    It is only queued: `penstock worker` does the work. With --watch, workers in this process do
    it, as with `penstock research`; this also works for a task that is not stopped but has no
    workers.
    """
    import logging

    with opened(queue, config, "research") as (app, run):
        resumed = run(app.research.resume(task_id, tenant=tenant))
        if as_json and watch:
            print_event("resumed", resumed)
        elif as_json:
            print_json(resumed)
        else:
            note(f"{resumed.status}, searches resumed: {resumed.queued}")
        code: int = ExitCode.OK
        if watch:
            from penstock.cli.task_run import work_on

            logging.getLogger("penstock").setLevel(logging.ERROR)
            code = run(work_on(app, task_id, tenant, as_json=as_json))
    raise typer.Exit(code)


@group.command("export")
def export(
    task_id: IdArgument,
    format: Annotated[  # noqa: A002 (the option's word)
        Format | None, typer.Option("--format", help="[default: markdown]", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file. [stdout]")
    ] = None,
    tenant: TaskOwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export a task as one text. --json is short for --format json."""
    if as_json and format not in (None, "json"):
        raise UsageError(f"--json means --format json, not {format}")
    chosen: Format = format or ("json" if as_json else "markdown")
    with opened(queue, config, "research") as (app, run):
        text = run(app.research.export(task_id, chosen, tenant=tenant))
    if output is None:
        say(text.removesuffix("\n"))
        return
    try:
        with open(output, "wb", opener=open_private) as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from None
