"""`penstock lanes`: what they are doing; list, pause, resume, reset, set, unset, import."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from penstock.cli.errors import NotFound, UsageError
from penstock.cli.options import (
    ConfigOption,
    JsonOption,
    QueueOption,
    given,
    hand_down,
    new_typer,
    option,
)
from penstock.cli.output import note, print_json, printable, say
from penstock.cli.session import Session
from penstock.errors import LaneNotFound
from penstock.model.lane import LIMITS

group = new_typer()

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Lane name.")]
NamesArgument = Annotated[list[str], typer.Argument(metavar="NAME", help="Lane names.")]


@group.callback(invoke_without_command=True)
def lanes(
    ctx: typer.Context,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show, pause, resume and reset lanes, and override their limits.

    Without a command it lists the lanes in use: requests in flight and the maximum, the current
    rate in starts per second, waiting jobs, the state of the breaker, what blocks the lane and
    until when, the starts of the current day (UTC), learnt limits and since when they hold,
    overridden limits, and the tokens that requests reserve, by kind, if they do not say how many.
    """
    hand_down(ctx, queue=queue, config=config, as_json=as_json)
    if ctx.invoked_subcommand is None:
        list_lanes(session=Session(queue, config, as_json))


@group.command("list")
def list_lanes(*, session: Session) -> None:
    """List the lanes in use, as `penstock lanes` does."""
    from penstock.api.overview import lane_view
    from penstock.cli.lane_view import print_lanes

    with session.opened() as (app, run):
        found = run(app.lane_infos())
    session.show_list(found, print_lanes, "no lanes in use", line=lane_view)


@group.command("pause")
def pause(*, names: NamesArgument, session: Session) -> None:
    """Pause lanes: nothing starts in them until they are resumed.

    Running jobs continue, and waiting jobs keep their place. Pausing a parent also pauses its
    children.
    """
    _control("pause", "paused", names, session)


@group.command("resume")
def resume(*, names: NamesArgument, session: Session) -> None:
    """Resume lanes that are paused or blocked, for example after rejected credentials."""
    _control("resume", "resumed", names, session)


@group.command("reset")
def reset(*, names: NamesArgument, session: Session) -> None:
    """Resume lanes, close their breakers, and clear all that happened in them.

    That is throttling, daily counters, used amounts and learnt limits.
    """
    _control("reset", "reset", names, session)


@group.command("set")
def set_limits(
    *,
    name: NameArgument,
    requests_per_interval: int | None = typer.Option(None, metavar="N", min=1),
    interval_seconds: float | None = typer.Option(None, metavar="S", min=0),
    min_interval_seconds: float | None = typer.Option(None, metavar="S", min=0),
    max_parallel: int | None = typer.Option(None, metavar="N", min=1),
    requests_per_day: int | None = typer.Option(None, metavar="N", min=1),
    session: Session,
) -> None:
    """Override the configured limits of a lane.

    Overrides apply to all processes at once and survive restarts, until they are unset. Earlier
    overrides stay unless they are given again. Running jobs continue: with a lower
    --max-parallel nothing starts until enough of them have ended.
    """
    changes = given(
        requests_per_interval=requests_per_interval,
        interval_seconds=interval_seconds,
        min_interval_seconds=min_interval_seconds,
        max_parallel=max_parallel,
        requests_per_day=requests_per_day,
    )
    if not changes:
        raise UsageError("no limit given; see penstock lanes set --help")
    _limit(name, changes, session)


@group.command("unset")
def unset_limits(*, name: NameArgument, session: Session) -> None:
    """Reset a lane to its configured limits."""
    _limit(name, None, session)


@group.command("import")
def import_limits(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file with `apis`.")],
    output: Path | None = option("FILE", "Write to a new file instead.", "--output", "-o"),
    as_json: JsonOption = False,
) -> None:
    """Convert the rate limits of an academic_apis.yaml to a `lanes` section.

    The file has the limits of each API under `apis: NAME: rate_limit:`. The output belongs in
    penstock.yaml, or in a file that `lanes:` names there. Entries that are not limits, or that
    lanes do not support, are left out and reported.
    """
    from penstock.config.rate_limits import import_lanes

    imported = import_lanes(file)
    if as_json and output is None:
        print_json(imported)
        return
    import yaml  # here, because it takes its time

    text = yaml.safe_dump({"lanes": imported.lanes}, sort_keys=False, allow_unicode=True)
    if output is None:
        say(text.rstrip())
    else:
        _write(output, text)
    if as_json:
        from penstock.wire.view import fields_of

        print_json({**fields_of(imported), "output": str(output)})
        return
    for said in imported.notes:
        note(said)
    if imported.unknown_limits:
        unknown = ", ".join(imported.unknown_limits)
        note(f"skipped, not supported by lanes: {unknown}; supported: {', '.join(LIMITS)}")
    if imported.left_out:
        note(f"skipped, not a limit: {', '.join(imported.left_out)}")


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} already exists; choose another file") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def _limit(name: str, changes: Mapping[str, float] | None, session: Session) -> None:
    from penstock.api.overview import lane_view
    from penstock.cli.lane_view import in_words

    with session.opened() as (app, run):
        lane = run(app.limit_lane(name, changes))
    session.show(lane_view(lane), f"{printable(lane.name)}  {in_words(lane)}")


def _control(
    verb: Literal["pause", "resume", "reset"], done: str, names: list[str], session: Session
) -> None:
    controlled, missing = [], []
    with session.opened() as (app, run):
        for name in dict.fromkeys(names):
            try:
                run(app.control_lane(name, verb))
                controlled.append(name)
            except LaneNotFound:
                missing.append(repr(name))
    session.show({done: controlled}, *(f"{printable(name)}  {done}" for name in controlled))
    if missing:
        raise NotFound(
            f"no lane {', '.join(missing)} is in use; `penstock lanes` lists those that are"
        )
