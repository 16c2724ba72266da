"""Options that several commands share, and groups of them."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from penstock.cli.errors import UsageError
from penstock.model.job import PriorityName

if TYPE_CHECKING:
    from penstock.ports.queue import JobFilter

F = TypeVar("F", bound=Callable[..., Any])

HELP_NAMES = ["-h", "--help"]


def option(metavar: str, about: str, *names: str, default: Any = None, **settings: Any) -> Any:
    """Declare an option with a value, named like its parameter unless `names` are given."""
    return typer.Option(default, *names, metavar=metavar, help=about, **settings)


def flag(name: str, about: str, *, hidden: bool = False) -> Any:
    """Declare an option without a value, off by default. A `hidden` one is not for people."""
    return typer.Option(False, name, help=about, hidden=hidden)


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


def families_of(tools: str | None) -> tuple[str, ...] | None:
    """The value of --tools; UsageError for what there is not."""
    if tools is None:
        return None
    from penstock.errors import ConfigError
    from penstock.model.server import check_families

    families = tuple(name.strip() for name in tools.split(",") if name.strip())
    try:
        check_families(families)
    except ConfigError as error:
        raise UsageError(f"--tools: {error}") from None
    return families


def _owner_option(what: str) -> Any:
    return typer.Option("--tenant", metavar="T", help=f"Tenant that owns the {what}.")


OwnerOption = Annotated[str, _owner_option("documents")]
TaskOwnerOption = Annotated[str, _owner_option("tasks")]
AnswerOwnerOption = Annotated[str, _owner_option("answers")]
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
    str | None, typer.Option("--before", metavar="ID", help="Next page: entries older than this.")
]
ToolsOption = Annotated[
    str | None,
    typer.Option(
        "--tools",
        metavar="LIST",
        help="MCP tools to offer: own (those of the app), documents, research, answers. [all]",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@dataclass(slots=True, frozen=True)
class JobFilters:
    """Options that select jobs."""

    kind: KindOption = None
    tenant: TenantOption = None
    log: str | None = option("L", "Only jobs that report to this log.")
    lane: str | None = option("NAME", "Only jobs in this lane.")
    priority: PriorityName | None = typer.Option(None, help="Only jobs of this priority.")
    enqueued_after: str | None = option("TIME", "Enqueued at or after: 2030-01-31T09:00.")
    enqueued_before: str | None = option("TIME", "Enqueued before: 2030-01-31T09:00Z (UTC).")

    @property
    def where(self) -> JobFilter:
        from penstock.model.job import Priority
        from penstock.ports.queue import JobFilter

        after = time_of("--enqueued-after", self.enqueued_after)
        before = time_of("--enqueued-before", self.enqueued_before)
        return JobFilter(
            kind=self.kind,
            tenant=self.tenant,
            log=self.log,
            lane=self.lane,
            priority=None if self.priority is None else Priority.parse(self.priority),
            enqueued_after=None if after is None else after.timestamp(),
            enqueued_before=None if before is None else before.timestamp(),
        )


class Commands(typer.Typer):
    """A Typer whose commands may take groups of options: a parameter that is a dataclass becomes an
    option for each of its fields. Such commands have only keyword parameters."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        register = super().command(name, **settings)

        def decorate(function: F) -> F:
            register(_with_options(function))
            return function

        return decorate


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Convert the function for Typer, with an option for each field of a group."""
    groups: dict[str, Any] = {}
    parameters = []
    for one in inspect.signature(function, eval_str=True).parameters.values():
        if not is_dataclass(one.annotation):
            parameters.append(one)
            continue
        groups[one.name] = one.annotation
        types = get_type_hints(one.annotation, include_extras=True)
        parameters += [
            one.replace(name=field.name, default=field.default, annotation=types[field.name])
            for field in fields(one.annotation)
        ]

    @wraps(function)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        function(**values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {}  # they are evaluated in the signature
    return call


def new_typer(*, epilog: str | None = None) -> Commands:
    """Create a Typer without panels, completion and its own tracebacks."""
    return Commands(
        add_completion=False,
        epilog=epilog,
        # Plain help loads in half the time, and is the same in a pipe and on a terminal.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": HELP_NAMES},
    )


def new_group(about: str) -> Commands:
    """Create a Typer for subcommands; without one it shows its help."""
    group = new_typer()
    group.callback(invoke_without_command=True, help=about)(show_help)
    return group


def show_help(ctx: typer.Context) -> None:
    """Show the help when no subcommand was given."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit


def hand_down(ctx: typer.Context, **options: Any) -> None:
    """Use options given before a command as defaults of those after it."""
    handed = {name: value for name, value in options.items() if value}

    def defaults(group: Any) -> dict[str, Any]:
        return {
            name: handed | (defaults(command) if hasattr(command, "commands") else {})
            for name, command in group.commands.items()
        }

    if handed and ctx.invoked_subcommand is not None:
        ctx.default_map = defaults(ctx.command)


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def need_terminal(deed: str) -> None:
    """Raise UsageError if there is no terminal to confirm an irreversible action."""
    if not sys.stdin.isatty():
        raise UsageError(f"{deed} cannot be undone; confirm with --yes")


def confirm(question: str, refused: str) -> None:
    """Ask for confirmation on the terminal; raises Exit on no."""
    if not typer.confirm(question, err=True):
        typer.echo(refused, err=True)
        raise typer.Exit


def time_of(option: str, text: str | None) -> datetime | None:
    """Parse a time, local unless it names a zone; raises UsageError."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{option} must be a time such as 2030-01-31T09:00, not {text!r}"
        ) from None


def metadata_of(given: list[str] | None) -> dict[str, Any]:
    """Parse `KEY=VALUE`; raises UsageError if there is no `=`."""
    pairs: dict[str, Any] = {}
    for one in given or ():
        key, equals, value = one.partition("=")
        if not key or not equals:
            raise UsageError(f"--metadata takes KEY=VALUE, not {one!r}")
        pairs[key] = _value_of(value)
    return pairs


def _value_of(text: str) -> Any:
    """Parse a value: numbers, true and false as in JSON, as over HTTP; quotes make it a string.
    Everything else is a string as it stands, including 007 and 1.10."""
    if text[:1] not in tuple('"-0123456789tf'):
        return text
    try:
        value = json.loads(text)
        if isinstance(value, str) or json.dumps(value, allow_nan=False) == text:
            return value
    except ValueError:
        pass
    return text
