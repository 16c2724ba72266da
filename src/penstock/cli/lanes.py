"""`penstock lanes`: what they are doing; pause, resume, reset."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from penstock.cli.errors import NotFound
from penstock.cli.options import ConfigOption, JsonOption, QueueOption, hand_down, new_typer
from penstock.cli.output import note, print_json, say
from penstock.cli.session import opened
from penstock.cli.text import printable
from penstock.model.errors import LaneNotFound

group = new_typer()

NamesArgument = Annotated[list[str], typer.Argument(metavar="NAME", help="Names of lanes.")]


@group.callback(invoke_without_command=True)
def list_lanes(
    ctx: typer.Context,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """See, pause, resume and reset lanes.

    Without a command: the lanes in use, and for each the requests in flight and how many there
    may be, the starts per second it allows now, the jobs waiting in its line, whether its
    breaker is open, what blocks it and for how long, and the starts of this day (UTC).
    """
    hand_down(ctx, queue=queue, config=config, as_json=as_json)
    if ctx.invoked_subcommand is not None:
        return
    from penstock.cli.lane_view import as_dict, print_lanes

    with opened(queue, config) as (app, run):
        lanes = run(app.lane_infos())
    if as_json:
        print_json([as_dict(lane) for lane in lanes])
    elif not lanes:
        note("no lanes are in use")
    else:
        print_lanes(lanes)


@group.command("pause")
def pause(
    names: NamesArgument,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start nothing more in these lanes, until they are resumed.

    What runs goes on; what waits keeps its place. Pausing a parent stops its children too.
    """
    _steer("pause", "paused", names, queue, config, as_json=as_json)


@group.command("resume")
def resume(
    names: NamesArgument,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Lift a pause or a block, such as the one after refused credentials."""
    _steer("resume", "resumed", names, queue, config, as_json=as_json)


@group.command("reset")
def reset(
    names: NamesArgument,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resume, close the breaker, forget slow-downs and what was used today."""
    _steer("reset", "reset", names, queue, config, as_json=as_json)


def _steer(
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
                run(app.steer_lane(name, verb))
            except LaneNotFound:
                missing.append(name)
    steered = [name for name in names if name not in missing]
    if as_json:
        print_json({done: steered})
    else:
        for name in steered:
            say(f"{printable(name)}  {done}")
    if missing:
        raise NotFound(
            f"no lane {', '.join(map(repr, missing))} is in use; `penstock lanes` lists those "
            "that are"
        )
