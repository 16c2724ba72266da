"""`penstock schedules`: when jobs are enqueued by the clock; list, set, show, pause, resume, run,
remove."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.enqueue import parse_payload
from penstock.cli.errors import InputError
from penstock.cli.options import (
    ConfigOption,
    JsonOption,
    QueueOption,
    flag,
    hand_down,
    new_typer,
    option,
)
from penstock.cli.output import Looks, moment, pretty, print_table, printable
from penstock.cli.session import Session
from penstock.model.job import PriorityName

if TYPE_CHECKING:
    from penstock.model.schedule import ScheduleInfo

group = new_typer()

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")]
OwnerOption = Annotated[
    str, typer.Option("--tenant", metavar="T", help="Tenant that owns the schedule.")
]


@group.callback(invoke_without_command=True)
def schedules(
    ctx: typer.Context,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make, change, pause, resume and run schedules, by which jobs are enqueued.

    Without a command it lists them: those made here or by programs, and those in the code of the
    app, as far as worker processes run that have told of them.
    """
    hand_down(ctx, queue=queue, config=config, as_json=as_json)
    if ctx.invoked_subcommand is None:
        list_schedules(tenant=None, session=Session(queue, config, as_json))


@group.command("list")
def list_schedules(
    *, tenant: str | None = option("T", "Only schedules of this tenant."), session: Session
) -> None:
    """List schedules, as `penstock schedules` does."""
    with session.opened() as (app, run):
        found = run(app.schedules.list(tenant=tenant))
    session.show_list(found, _print_schedules, "no schedules")


@group.command("set")
def set_schedule(
    *,
    name: NameArgument,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="Kind of the jobs.")],
    payload: str | None = typer.Argument(None, metavar="JSON", help="Payload, a JSON object. [{}]"),
    cron: str | None = option("EXPR", "A cron expression, such as '0 3 * * *'; or --every."),
    every: float | None = option("S", "Seconds between two jobs, 1 or more; or --cron."),
    timezone: str = option("ZONE", "Time zone of --cron, e.g. Europe/Zurich.", default="UTC"),
    priority: PriorityName = typer.Option("medium", help="Higher priority runs first."),
    overlap: bool = flag("--overlap", "Also while the job of the last tick has not finished."),
    catch_up: float | None = option("S", "Make up a tick that is no later than this. [3600]"),
    tenant: OwnerOption = "default",
    session: Session,
) -> None:
    """Make a schedule, or change the one of this name.

    What is not given is as it is by default, also for a schedule that is there. One that is paused
    stays paused. Some worker process has to run; it need not handle the kind.

    \b
    penstock schedules set nightly report '{"days": 1}' --cron "0 3 * * *" --timezone Europe/Zurich
    """
    try:
        arguments = parse_payload(payload) if payload is not None else {}
    except InputError as error:
        raise InputError(f"payload: {error}") from None
    with session.opened(create=True, told=True) as (app, run):
        made = run(
            app.schedules.set(
                name,
                kind,
                arguments,
                cron=cron,
                every=every,
                timezone=timezone,
                priority=priority,
                overlap=overlap,
                catch_up=catch_up,
                tenant=tenant,
            )
        )
    session.show(made, _line(made))


@group.command("show")
def show(*, name: NameArgument, tenant: OwnerOption = "default", session: Session) -> None:
    """Show a schedule with its payload."""
    with session.opened() as (app, run):
        found = run(app.schedules.get(name, tenant=tenant))
    session.show(
        found,
        f"name       {printable(found.name)}",
        f"tenant     {printable(found.tenant)}",
        f"kind       {printable(found.kind)}",
        f"payload    {pretty(found.payload)}",
        f"schedule   {found.schedule}{', in the code' if found.source == 'code' else ''}",
        f"priority   {found.priority}",
        f"last tick  {moment(found.last_at)}",
        f"last job   {found.last_job or '-'}",
        f"next tick  {_next(found)}",
    )


@group.command("pause")
def pause(*, name: NameArgument, tenant: OwnerOption = "default", session: Session) -> None:
    """Let a schedule enqueue nothing until it is resumed. Jobs that are there stay."""
    with session.opened() as (app, run):
        changed = run(app.schedules.pause(name, tenant=tenant))
    session.show(changed, _line(changed))


@group.command("resume")
def resume(*, name: NameArgument, tenant: OwnerOption = "default", session: Session) -> None:
    """Let a schedule go on with its next tick. Those in between are not made up."""
    with session.opened() as (app, run):
        changed = run(app.schedules.resume(name, tenant=tenant))
    session.show(changed, _line(changed))


@group.command("run")
def run_now(*, name: NameArgument, tenant: OwnerOption = "default", session: Session) -> None:
    """Enqueue a job of a schedule at once, besides its ticks, and print the job's id."""
    with session.opened() as (app, run):
        job = run(app.schedules.run_now(name, tenant=tenant))
    session.show(job, job.id)


@group.command("remove")
def remove(*, name: NameArgument, tenant: OwnerOption = "default", session: Session) -> None:
    """Delete a schedule. The jobs that it has enqueued stay."""
    with session.opened() as (app, run):
        run(app.schedules.remove(name, tenant=tenant))
    session.show({"removed": name}, f"{printable(name)}  removed")


def _line(one: ScheduleInfo) -> str:
    return f"{printable(one.name)}  {printable(one.kind)}  {one.schedule}  next: {_next(one)}"


def _next(one: ScheduleInfo) -> str:
    return "paused" if one.paused else moment(one.next_at)


def _print_schedules(found: Sequence[ScheduleInfo]) -> None:
    rows = [
        {
            "name": printable(one.name),
            "tenant": printable(one.tenant),
            "kind": printable(one.kind),
            "schedule": one.schedule,
            "source": one.source,
            "last tick": moment(one.last_at),
            "next tick": _next(one),
        }
        for one in found
    ]
    print_table(rows, Looks(fold=["name"]))
