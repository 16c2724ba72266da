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
from penstock.cli.output import note, print_json, print_json_line, say
from penstock.cli.session import opened
from penstock.cli.text import plural

group = new_group("List, show, stop, resume and export research tasks.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A task's id.")]
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
    """List research tasks, the newest first."""
    from penstock.cli.task_view import print_tasks

    with opened(queue, config, "research") as (app, run):
        found = run(app.research.tasks(tenant=tenant, limit=limit, before=before))
    if as_json:
        print_json([task.as_dict() for task in found])
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
        int, typer.Option("--limit", metavar="N", min=0, max=1000, help="Of results.")
    ] = 50,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="C", help="The next results.")
    ] = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a task: its searches, what they found, what went wrong, what it waits for."""
    from penstock.cli.task_view import print_task

    with opened(queue, config, "research") as (app, run):
        view = run(app.research.status(task_id, limit=limit, cursor=cursor, tenant=tenant))
    if as_json:
        print_json(view.as_dict())
        return
    print_task(view)
    if view.cursor is not None:
        note(f"there are more results: --cursor {view.cursor}")


@group.command("stop")
def stop(
    task_id: IdArgument,
    now: Annotated[
        bool,
        typer.Option("--now", help="Do not let running searches finish; drop what they found."),
    ] = False,
    tenant: TaskOwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a task; what is left of it can be resumed.

    Queued searches are cancelled. Running ones finish with their pages and are stored, unless
    --now.
    """
    with opened(queue, config, "research") as (app, run):
        mode: Literal["immediate", "graceful"] = "immediate" if now else "graceful"
        stopped = run(app.research.stop(task_id, mode=mode, tenant=tenant))
    if as_json:
        print_json(stopped.as_dict())
        return
    done, left = stopped.searches_done, stopped.searches_left
    cancelled = plural(stopped.cancelled, "job")
    say(f"{stopped.status}  {done}/{done + left} searches done, {cancelled} cancelled")
    if stopped.running:
        note(f"{plural(stopped.running, 'job')} may finish; penstock tasks show tells when")
    if stopped.resumable:
        note(f"to go on: penstock tasks resume {task_id}")


@group.command("resume")
def resume(
    task_id: IdArgument,
    watch: Annotated[
        bool, typer.Option("--watch", help="Work on it here, and show it until it is finished.")
    ] = False,
    tenant: TaskOwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with what is unfinished of a task.

    It only queues it: `penstock worker` does the work. With --watch workers in this process do, as
    with `penstock research`; also for a task that is not stopped and that nobody works on.
    """
    import logging

    with opened(queue, config, "research") as (app, run):
        resumed = run(app.research.resume(task_id, tenant=tenant))
        if as_json:
            tell = print_json_line if watch else print_json
            tell({"event": "resumed", **resumed.as_dict()} if watch else resumed.as_dict())
        else:
            note(f"{resumed.status}, searches that go on: {resumed.queued}")
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
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Else standard output.")
    ] = None,
    tenant: TaskOwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all of a task as one text. --json is --format json."""
    if as_json and format not in (None, "json"):
        raise UsageError(f"--json is --format json, and not {format}")
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
