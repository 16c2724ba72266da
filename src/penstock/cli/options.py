"""Options that several commands share."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

import typer

from penstock.cli.errors import UsageError
from penstock.model.job import PriorityName

HELP_NAMES = ["-h", "--help"]

AppArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="MODULE:APP",
        help="The Penstock object, e.g. shop:app. Omit to run only the built-in jobs.",
    ),
]
QueueOption = Annotated[
    str | None,
    typer.Option(
        "--queue",
        metavar="URL",
        help="Queue URL, e.g. sqlite:///jobs.db or redis://localhost:6379/0.",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="Settings file. [./penstock.yaml, if it exists]"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print results and errors as JSON.")]
KindOption = Annotated[
    str | None,
    typer.Option("--kind", metavar="PATTERN", help="Only this kind, or a pattern: 'ingest.*'."),
]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", metavar="T", help="Only jobs of this tenant.")
]
LogOption = Annotated[
    str | None, typer.Option("--log", metavar="L", help="Only jobs that report to this log.")
]
LaneOption = Annotated[
    str | None, typer.Option("--lane", metavar="NAME", help="Only jobs in this lane.")
]
PriorityOption = Annotated[
    PriorityName | None, typer.Option("--priority", help="Only jobs of this priority.")
]
AfterOption = Annotated[
    str | None,
    typer.Option(
        "--enqueued-after", metavar="TIME", help="Enqueued at or after: 2030-01-31T09:00."
    ),
]
EarlierOption = Annotated[
    str | None,
    typer.Option(
        "--enqueued-before", metavar="TIME", help="Enqueued before: 2030-01-31T09:00Z (UTC)."
    ),
]
OwnerOption = Annotated[
    str, typer.Option("--tenant", metavar="T", help="Tenant that owns the documents.")
]
TaskOwnerOption = Annotated[
    str, typer.Option("--tenant", metavar="T", help="Tenant that owns the tasks.")
]
AnswerOwnerOption = Annotated[
    str, typer.Option("--tenant", metavar="T", help="Tenant that owns the answers.")
]
CollectionOption = Annotated[
    str, typer.Option("--collection", metavar="NAME", help="Collection of the document.")
]
MetadataOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata",
        metavar="KEY=VALUE",
        help="Metadata: a string, a number, true or false; repeatable.",
    ),
]
LimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="Maximum number.")
]
ThousandOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=1000, help="Maximum number.")
]
BeforeOption = Annotated[
    str | None,
    typer.Option("--before", metavar="ID", help="Next page: entries older than this."),
]


def new_typer(*, epilog: str | None = None) -> typer.Typer:
    """A Typer without panels, completion and tracebacks of its own."""
    return typer.Typer(
        add_completion=False,
        epilog=epilog,
        # Plain help loads in half the time, and is the same in a pipe and on a terminal.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": HELP_NAMES},
    )


def new_group(about: str) -> typer.Typer:
    """A Typer for subcommands; alone it shows its help."""
    group = new_typer()
    group.callback(invoke_without_command=True, help=about)(show_help)
    return group


def show_help(ctx: typer.Context) -> None:
    """Show the help when no subcommand was given."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit


def hand_down(ctx: typer.Context, **given: Any) -> None:
    """Options given before a command are the defaults of those after it."""
    given = {name: value for name, value in given.items() if value}

    def defaults(group: Any) -> dict[str, Any]:
        return {
            name: given | (defaults(command) if hasattr(command, "commands") else {})
            for name, command in group.commands.items()
        }

    if given and ctx.invoked_subcommand is not None:
        ctx.default_map = defaults(ctx.command)


def time_of(option: str, text: str | None) -> datetime | None:
    """A time as given, local unless it names a zone; UsageError for what is none."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{option} must be a time such as 2030-01-31T09:00, not {text!r}"
        ) from None


def seconds_of(option: str, text: str | None) -> float | None:
    """The same, in seconds since 1970."""
    at = time_of(option, text)
    return None if at is None else at.timestamp()


def metadata_of(given: list[str] | None) -> dict[str, Any]:
    """`KEY=VALUE` as given, taken apart; UsageError for what has no `=`."""
    pairs: dict[str, Any] = {}
    for one in given or ():
        key, equals, value = one.partition("=")
        if not key or not equals:
            raise UsageError(f"--metadata takes KEY=VALUE, not {one!r}")
        pairs[key] = _value_of(value)
    return pairs


def _value_of(text: str) -> Any:
    """A number, true or false as JSON writes it is one, as over HTTP; quotes make a text of it.
    All else is a text as it stands, also 007 and 1.10."""
    if text[:1] not in tuple('"-0123456789tf'):
        return text
    try:
        value = json.loads(text)
        if isinstance(value, str) or json.dumps(value, allow_nan=False) == text:
            return value
    except ValueError:
        pass
    return text
