"""Output of commands: tables for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple
from unicodedata import east_asian_width

from penstock.wire.view import fields_of, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STATE_STYLES = {
    "queued": "cyan",
    "running": "yellow",
    "processing": "yellow",
    "completed": "green",
    "failed": "bold red",
    "cancelled": "magenta",
    "paused": "magenta",
}


class Column(NamedTuple):
    name: str
    right: bool = False
    fit: Literal["whole", "fold", "cut"] = "whole"
    """What a terminal that is too narrow does to it. Elsewhere every cell is whole."""
    style: Callable[[str], str | None] = lambda cell: None


def state_style(cell: str) -> str | None:
    return STATE_STYLES.get(cell.split(" ")[0])


def is_terminal(stream: IO[str] | None = None) -> bool:
    """Whether people look at `stream` (stdout) and want more than plain text."""
    stream = sys.stdout if stream is None else stream
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def console(stream: IO[str] | None = None) -> Console:
    from rich.console import Console

    return Console(file=stream or sys.stdout, highlight=False)


def print_json(value: Any) -> None:
    """The whole of a command's output as one JSON value."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, default=plain, indent=indent) + "\n")


def print_json_line(value: Any) -> None:
    """One of several JSON values, each on its own line."""
    sys.stdout.write(json.dumps(value, default=plain) + "\n")


def print_event(event: str, view: Any = None, /, **more: Any) -> None:
    """One of several events, each on its own line: a view, and what else is to be told."""
    known = {} if view is None else fields_of(view)
    print_json_line({"event": event, **known, **more})


def say(text: str = "") -> None:
    """A line of output for people."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A line beside the output, on stderr: hints, warnings, what goes on."""
    sys.stderr.write(text + "\n")


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal, else aligned text that can be cut and searched."""
    if is_terminal():
        console().print(rich_table(columns, rows))
        return
    widths = [max(map(_width, column)) for column in zip(*_all(columns, rows), strict=True)]
    for row in _all(columns, rows):
        cells = []
        for cell, width, column in zip(row, widths, columns, strict=True):
            blanks = " " * (width - _width(cell))
            cells.append(blanks + cell if column.right else cell + blanks)
        say("  ".join(cells).rstrip())


def _width(cell: str) -> int:
    """Columns it takes: ideographs, kana and hangul take two."""
    return len(cell) + sum(east_asian_width(character) in "WF" for character in cell)


def _all(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    return [[column.name.upper() for column in columns], *rows]


def rich_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        show_edge=False,
        header_style="bold",
    )
    for column in columns:
        table.add_column(
            column.name,
            justify="right" if column.right else "left",
            no_wrap=column.fit == "whole",  # the others give way first
        )
    for row in rows:
        cells = [
            Text(
                cell,
                style=column.style(cell) or "",
                no_wrap=column.fit != "fold",
                overflow="fold" if column.fit == "fold" else "ellipsis",
            )
            for cell, column in zip(row, columns, strict=True)
        ]
        table.add_row(*cells)
    return table


def print_fields(fields: Mapping[str, str]) -> None:
    """Labelled values, one a line; the empty ones are left out."""
    shown = {label: value for label, value in fields.items() if value}
    width = max(map(len, shown))
    for label, value in shown.items():
        indented = value.replace("\n", "\n" + " " * (width + 2))
        if is_terminal():
            from rich.text import Text

            style = state_style(value) if label in ("state", "status") else None
            line = Text.assemble((label.ljust(width), "bold"), "  ", (indented, style or ""))
            console().print(line, soft_wrap=True)
        else:
            say(f"{label.ljust(width)}  {indented}")
