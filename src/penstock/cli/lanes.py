"""`penstock lanes`: what they are doing; list, pause, resume, reset, set, unset, import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from penstock.cli.errors import NotFound, UsageError
from penstock.cli.options import ConfigOption, JsonOption, QueueOption, hand_down, new_typer
from penstock.cli.output import note, print_json, say
from penstock.cli.session import opened
from penstock.cli.text import printable
from penstock.errors import LaneNotFound
from penstock.model.lane import LIMITS

if TYPE_CHECKING:
    from penstock.ports.lanes import LaneInfo

group = new_typer()

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
    until when, the starts of the current day (UTC), and overridden limits.
    """
    hand_down(ctx, queue=queue, config=config, as_json=as_json)
    if ctx.invoked_subcommand is None:
        list_lanes(queue, config, as_json)


@group.command("list")
def list_lanes(
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the lanes in use, as `penstock lanes` does."""
    from penstock.api.overview import lane_view
    from penstock.cli.lane_view import print_lanes

    with opened(queue, config) as (app, run):
        lanes = run(app.lane_infos())
    if as_json:
        print_json([lane_view(lane) for lane in lanes])
    elif not lanes:
        note("no lanes in use")
    else:
        print_lanes(lanes)


@group.command("pause")
def pause(
    names: NamesArgument,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pause lanes: nothing starts in them until they are resumed.

    Running jobs continue, and waiting jobs keep their place. Pausing a parent also pauses its
    children.
    """
    _control("pause", "paused", names, queue, config, as_json=as_json)


@group.command("resume")
def resume(
    names: NamesArgument,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resume lanes that are paused or blocked, for example after rejected credentials."""
    _control("resume", "resumed", names, queue, config, as_json=as_json)


@group.command("reset")
def reset(
    names: NamesArgument,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resume lanes, close their breakers, and clear throttling and daily counters."""
    _control("reset", "reset", names, queue, config, as_json=as_json)


@group.command("set")
def set_limits(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lane name.")],
    requests_per_interval: Annotated[
        int | None, typer.Option("--requests-per-interval", metavar="N", min=1)
    ] = None,
    interval_seconds: Annotated[
        float | None, typer.Option("--interval-seconds", metavar="S", min=0)
    ] = None,
    min_interval_seconds: Annotated[
        float | None, typer.Option("--min-interval-seconds", metavar="S", min=0)
    ] = None,
    max_parallel: Annotated[int | None, typer.Option("--max-parallel", metavar="N", min=1)] = None,
    requests_per_day: Annotated[
        int | None, typer.Option("--requests-per-day", metavar="N", min=1)
    ] = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Override the configured limits of a lane.

    Overrides apply to all processes at once and survive restarts, until they are unset. Earlier
    overrides stay unless they are given again. Running jobs continue: with a lower
    --max-parallel nothing starts until enough of them have ended.
    """
    changes = {
        "requests_per_interval": requests_per_interval,
        "interval_seconds": interval_seconds,
        "min_interval_seconds": min_interval_seconds,
        "max_parallel": max_parallel,
        "requests_per_day": requests_per_day,
    }
    changes = {key: value for key, value in changes.items() if value is not None}
    if not changes:
        raise UsageError("no limit given; see penstock lanes set --help")
    with opened(queue, config) as (app, run):
        lane = run(app.limit_lane(name, changes))
    _show_limits(lane, as_json=as_json)


@group.command("unset")
def unset_limits(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lane name.")],
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reset a lane to its configured limits."""
    with opened(queue, config) as (app, run):
        lane = run(app.limit_lane(name, None))
    _show_limits(lane, as_json=as_json)


@group.command("import")
def import_limits(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file with `apis`.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a new file instead."),
    ] = None,
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


def _show_limits(lane: LaneInfo, *, as_json: bool) -> None:
    from penstock.api.overview import lane_view
    from penstock.cli.lane_view import in_words

    if as_json:
        print_json(lane_view(lane))
    else:
        say(f"{printable(lane.name)}  {in_words(lane)}")


def _control(
    verb: Literal["pause", "resume", "reset"],
    done: str,
    names: list[str],
    queue: str | None,
    config: str | None,
    *,
    as_json: bool,
) -> None:
    names = list(dict.fromkeys(names))
    missing = []
    with opened(queue, config) as (app, run):
        for name in names:
            try:
                run(app.control_lane(name, verb))
            except LaneNotFound:
                missing.append(name)
    controlled = [name for name in names if name not in missing]
    if as_json:
        print_json({done: controlled})
    else:
        for name in controlled:
            say(f"{printable(name)}  {done}")
    if missing:
        raise NotFound(
            f"no lane {', '.join(map(repr, missing))} is in use; `penstock lanes` lists those "
            "that are"
        )
