"""Output of commands: tables for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
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


Row = Mapping[str, str]
"""A row of a table: the text of its cells by column."""


def state_style(cell: str) -> str | None:
    return STATE_STYLES.get(cell.split(" ")[0])


class Looks(NamedTuple):
    """Layout of columns, by name. Those in neither `fold` nor `cut` are never shortened, even if
    the terminal is too narrow; without a terminal none is."""

    right: Collection[str] = ()
    fold: Collection[str] = ()
    cut: Collection[str] = ()
    styles: Mapping[str, Callable[[str], str | None]] = {
        "state": state_style,
        "status": state_style,
    }


PLAIN = Looks()


def is_terminal(stream: IO[str] | None = None) -> bool:
    """Whether `stream` (stdout) is a terminal that supports more than plain text."""
    stream = sys.stdout if stream is None else stream
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def console(stream: IO[str] | None = None) -> Console:
    from rich.console import Console

    return Console(file=stream or sys.stdout, highlight=False)


def print_json(value: Any) -> None:
    """Print the whole output of a command as one JSON value."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, default=plain, indent=indent) + "\n")


def print_json_line(value: Any) -> None:
    """Print one of several JSON values, each on its own line."""
    sys.stdout.write(json.dumps(value, default=plain) + "\n")


def print_event(event: str, view: Any = None, /, **more: Any) -> None:
    """Print one of several events, each on its own line: a view, and further fields."""
    known = {} if view is None else fields_of(view)
    print_json_line({"event": event, **known, **more})


def say(text: str = "") -> None:
    """Print a line of output for people."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Print a line to stderr: hints, warnings, progress."""
    sys.stderr.write(text + "\n")


def print_table(rows: Sequence[Row], looks: Looks = PLAIN) -> None:
    """Print a table on a terminal, else aligned text that can be cut and searched."""
    if is_terminal():
        console().print(rich_table(rows, looks))
        return
    names = list(rows[0])
    cells = [[name.upper() for name in names], *([row[name] for name in names] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = []
        for cell, width, name in zip(line, widths, names, strict=True):
            blanks = " " * (width - _width(cell))
            padded.append(blanks + cell if name in looks.right else cell + blanks)
        say("  ".join(padded).rstrip())


def _width(cell: str) -> int:
    """Width in columns: ideographs, kana and hangul take two."""
    return len(cell) + sum(east_asian_width(character) in "WF" for character in cell)


def rich_table(rows: Sequence[Row], looks: Looks = PLAIN) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    def text(name: str, cell: str) -> Text:
        fold, style = name in looks.fold, looks.styles.get(name)
        overflow: Literal["fold", "ellipsis"] = "fold" if fold else "ellipsis"
        styled = style and style(cell)
        return Text(cell, style=styled or "", no_wrap=not fold, overflow=overflow)

    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False, header_style="bold"
    )
    for name in rows[0]:
        whole = name not in looks.fold and name not in looks.cut  # the others give way first
        table.add_column(name, justify="right" if name in looks.right else "left", no_wrap=whole)
    for row in rows:
        table.add_row(*(text(name, cell) for name, cell in row.items()))
    return table


def print_fields(fields: Mapping[str, str]) -> None:
    """Print labelled values, one per line; empty ones are left out."""
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
